"""Data frames of the local engine: PySpark's names over DuckDB's SQL.

A frame is a step: SQL with the frames in it that it is made of. SQL of all steps is put together when rows
are asked for. What is summed up and then used more than once is computed once. Plans use these methods; the
test of both engines holds them to what Spark's do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import pyarrow

from amqpgate.pipeline.local_columns import (
    TYPES,
    SqlColumn,
    column_of,
    name_of,
    named,
    ordered,
    quoted,
    value_of,
)

if TYPE_CHECKING:
    import duckdb

_Name: TypeAlias = SqlColumn | str

#: How PySpark calls joins; those of which only the left rows come out.
_JOINS: Final = {"inner": "JOIN", "left": "LEFT JOIN", "left_semi": "SEMI JOIN", "left_anti": "ANTI JOIN"}
_LEFT_ALONE: Final = ("left_semi", "left_anti")


class SqlSession:
    """A connection to DuckDB, and the tables in it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._numbers = itertools.count()

    def stop(self) -> None:
        """End it."""
        self.connection.close()

    def new_name(self) -> str:
        """One that no table has."""
        return f"rows_{next(self._numbers)}"

    def table(self, name: str, columns: Iterable[str]) -> SqlFrame:
        """A table, or a view, that has these."""
        return SqlFrame(self, tuple(columns), (f"FROM {quoted(name)}",))

    def range(self, end: int) -> SqlFrame:
        """Numbers from 0 on."""
        return SqlFrame(self, ("id",), (f"FROM range({end}) AS numbers(id)",))

    def createDataFrame(self, rows: Sequence[Sequence[object]], schema: str) -> SqlFrame:  # noqa: N802
        """These rows. The schema is as Spark writes it: ``user string, messages bigint``."""
        fields = [field.split() for field in schema.split(",")]
        names = [name for name, _ in fields]
        nothing = ", ".join(f"CAST(NULL AS {TYPES[kind]}) AS {quoted(name)}" for name, kind in fields)
        values = ", ".join(f"({', '.join(value_of(value).sql for value in row)})" for row in rows)
        some = f" UNION ALL FROM (VALUES {values})" if rows else ""
        sql = f"FROM (SELECT {nothing} LIMIT 0){some}"
        return SqlFrame(self, tuple(names), (sql,))


class SqlRow:
    """A row of an answer: values by name, as attribute or key, or by place."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: tuple[object, ...]) -> None:
        self._places = places
        self._values = values

    def __getattr__(self, name: str) -> object:
        try:
            return self._values[self._places[name]]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, key: str | int) -> object:
        return self._values[self._places[key] if isinstance(key, str) else key]


@attrs.frozen(eq=False)
class SqlFrame:
    """Rows that a step of a plan has. ``is_large``: computing it twice costs twice."""

    session: SqlSession
    #: Its names.
    names: tuple[str, ...]
    #: Its SQL, with the frames that it is made of.
    parts: tuple[str | SqlFrame, ...]
    is_large: bool = False
    is_ordered: bool = False

    @property
    def columns(self) -> list[str]:
        """Its names."""
        return list(self.names)

    @property
    def sparkSession(self) -> SqlSession:  # noqa: N802 - PySpark's names, all of them
        """What it is of."""
        return self.session

    def select(self, *columns: _Name) -> SqlFrame:
        """These columns."""
        return self._selected([column_of(column) for column in columns])

    def withColumns(self, columns: Mapping[str, SqlColumn]) -> SqlFrame:  # noqa: N802
        """With these, which take the place of those that have their names."""
        found = {name: SqlColumn(quoted(name), name) for name in self.names}
        return self._selected((found | {name: one.alias(name) for name, one in columns.items()}).values())

    def withColumn(self, name: str, column: SqlColumn) -> SqlFrame:  # noqa: N802
        """With this one."""
        return self.withColumns({name: column})

    def withColumnsRenamed(self, names: Mapping[str, str]) -> SqlFrame:  # noqa: N802
        """With other names."""
        return self._selected(SqlColumn(quoted(name), names.get(name, name)) for name in self.names)

    def drop(self, *names: str) -> SqlFrame:
        """Without these."""
        return self.select(*(name for name in self.names if name not in names))

    def fillna(self, value: object, names: Sequence[str]) -> SqlFrame:
        """With that value where there is none in these."""
        filled = f", {value_of(value).sql})"
        return self.withColumns({name: SqlColumn(f"coalesce({quoted(name)}{filled}") for name in names})

    def where(self, condition: SqlColumn) -> SqlFrame:
        """The rows of which it is true."""
        return self._with(("SELECT * FROM ", self, f" WHERE {condition.sql}"))

    filter = where

    def groupBy(self, *columns: _Name) -> _Groups:  # noqa: N802
        """Rows with the same values, together."""
        return _Groups(self, [column_of(column) for column in columns])

    def agg(self, *columns: SqlColumn) -> SqlFrame:
        """One row of all."""
        return self.groupBy().agg(*columns)

    def distinct(self) -> SqlFrame:
        """Each row once."""
        return self._with(("SELECT DISTINCT * FROM ", self), is_large=True)

    def orderBy(self, *columns: _Name) -> SqlFrame:  # noqa: N802
        """In that order."""
        return self._with(("SELECT * FROM ", self, f" ORDER BY {ordered(columns)}"), is_ordered=True)

    def limit(self, most: int) -> SqlFrame:
        """The first."""
        parts = self.parts if self.is_ordered else ("SELECT * FROM ", self)
        return self._with((*parts, f" LIMIT {most}"), is_large=self.is_ordered)

    def union(self, other: SqlFrame) -> SqlFrame:
        """The rows of both, column by column."""
        return self._with(("SELECT * FROM ", self, " UNION ALL SELECT * FROM ", other))

    def unionByName(self, other: SqlFrame, allowMissingColumns: bool = False) -> SqlFrame:  # noqa: N802, N803
        """The rows of both, by the names of columns; null in those that one of them does not have."""
        names = (*self.names, *(name for name in other.names if name not in self.names))
        assert allowMissingColumns or len(names) == len(self.names) == len(other.names), (self, other)
        sides = (
            ", ".join(quoted(name) if name in one.names else f"NULL AS {quoted(name)}" for name in names)
            for one in (self, other)
        )
        first, second = (f"SELECT {columns} FROM " for columns in sides)  # noqa: S608 - names are quoted
        return self._with((first, self, f" UNION ALL {second}", other), names=names)

    def join(self, other: SqlFrame, on: Sequence[str] | Sequence[SqlColumn], how: str = "inner") -> SqlFrame:
        """With the rows of another that have the same in these columns, or of which these terms are true."""
        shared = {name for name in on if isinstance(name, str)}
        terms = (f"l.{quoted(one)} = r.{quoted(one)}" if isinstance(one, str) else one.sql for one in on)
        theirs = () if how in _LEFT_ALONE else tuple(name for name in other.names if name not in shared)
        columns = (*(f"l.{quoted(name)}" for name in self.names), *(f"r.{quoted(name)}" for name in theirs))
        return self._with(
            (
                f"SELECT {', '.join(columns)} FROM ",  # noqa: S608 - names are quoted
                self,
                f" AS l {_JOINS[how]} ",
                other,
                f" AS r ON {' AND '.join(terms)}",
            ),
            names=(*self.names, *theirs),
            is_large=True,
        )

    def crossJoin(self, other: SqlFrame) -> SqlFrame:  # noqa: N802
        """Each row with each of the other."""
        parts = ("SELECT * FROM ", self, " CROSS JOIN ", other)
        return self._with(parts, names=(*self.names, *other.names), is_large=True)

    def collect(self) -> list[SqlRow]:
        """All rows."""
        places = {name: place for place, name in enumerate(self.names)}
        table = self.arrow()
        columns = [column.to_pylist() for column in table.columns]
        return [SqlRow(places, row) for row in zip(*columns, strict=True)]

    def count(self) -> int:
        """How many rows there are."""
        (row,) = self.agg(SqlColumn("count(*)", "many")).collect()
        many = row[0]
        assert isinstance(many, int)
        return many

    def isEmpty(self) -> bool:  # noqa: N802
        """Whether there is none."""
        return not self._with(("SELECT 1 AS one FROM ", self, " LIMIT 1"), names=("one",)).collect()

    def arrow(self) -> pyarrow.Table:
        """All rows, in their order."""
        return self.session.connection.execute(self.sql()).to_arrow_table()

    @contextmanager
    def reader(self, rows: int) -> Iterator[pyarrow.RecordBatchReader]:
        """All rows, in their order, so many at a time. Other plans may run meanwhile."""
        with self.session.connection.cursor() as own:
            yield own.execute(self.sql()).to_arrow_reader(rows)

    def sql(self) -> str:
        """The whole plan."""
        uses: dict[int, int] = {}
        steps = list(_steps(self, uses))
        names = {id(step): f"step_{number}" for number, step in enumerate(steps)}
        large: dict[int, bool] = {}

        def text_of(step: SqlFrame) -> str:
            return "".join(part if isinstance(part, str) else names[id(part)] for part in step.parts)

        with_: list[str] = []
        for step in steps[:-1]:
            of_large = any(large[id(part)] for part in step.parts if isinstance(part, SqlFrame))
            is_kept = uses[id(step)] > 1 and (step.is_large or of_large)
            large[id(step)] = (step.is_large or of_large) and not is_kept
            kept = "" if is_kept else "NOT "
            with_.append(f"{names[id(step)]} AS {kept}MATERIALIZED ({text_of(step)})")
        return (f"WITH {', '.join(with_)} " if with_ else "") + text_of(steps[-1])

    def _selected(self, columns: Iterable[SqlColumn]) -> SqlFrame:
        chosen = list(columns)
        names = tuple(name_of(column) for column in chosen)
        return self._with((f"SELECT {', '.join(map(named, chosen))} FROM ", self), names=names)  # noqa: S608

    def _with(
        self,
        parts: tuple[str | SqlFrame, ...],
        *,
        names: tuple[str, ...] | None = None,
        is_large: bool = False,
        is_ordered: bool = False,
    ) -> SqlFrame:
        return SqlFrame(self.session, self.names if names is None else names, parts, is_large, is_ordered)


@attrs.frozen
class _Groups:
    """Rows of a frame that are put together."""

    frame: SqlFrame
    by: list[SqlColumn]

    def agg(self, *columns: SqlColumn) -> SqlFrame:
        """A row of each."""
        chosen = [*self.by, *columns]
        groups = f" GROUP BY {', '.join(str(1 + place) for place in range(len(self.by)))}" if self.by else ""
        return SqlFrame(
            self.frame.session,
            tuple(name_of(column) for column in chosen),
            (f"SELECT {', '.join(map(named, chosen))} FROM ", self.frame, groups),  # noqa: S608
            is_large=True,
        )


def _steps(frame: SqlFrame, uses: dict[int, int]) -> Iterator[SqlFrame]:
    """The frame and all that it is made of, each behind its own; and how many steps have it in them."""
    for part in frame.parts:
        if isinstance(part, SqlFrame):
            uses[id(part)] = uses.get(id(part), 0) + 1
            if uses[id(part)] == 1:
                yield from _steps(part, uses)
    yield frame
