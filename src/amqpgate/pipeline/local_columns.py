"""Columns of the local engine: PySpark's names, each a term of DuckDB's SQL.

A term is text from the moment that it is made, so that a plan costs next to nothing. Names and values are
quoted here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

#: What Spark, and DuckDB, call the types of columns.
TYPES: Final = {
    "string": "VARCHAR",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMPTZ",
    "binary": "BLOB",
}


class SqlColumn:
    """A term, and the name that it has in an answer, if any. ``order`` is how `orderBy` takes it."""

    __slots__ = ("name", "order", "sql")

    def __init__(self, sql: str, name: str | None = None, order: str = "ASC NULLS FIRST") -> None:
        self.sql = sql
        self.name = name
        self.order = order

    def alias(self, name: str) -> SqlColumn:
        """The same by another name."""
        return SqlColumn(self.sql, name)

    def cast(self, kind: str) -> SqlColumn:
        """As that type, a name of Spark's."""
        return SqlColumn(f"CAST({self.sql} AS {TYPES[kind]})", self.name)

    def isin(self, *values: object) -> SqlColumn:
        """Whether it is one of these."""
        return SqlColumn(f"({self.sql} IN ({', '.join(value_of(value).sql for value in values)}))")

    def between(self, low: object, high: object) -> SqlColumn:
        """Whether it is within both."""
        return SqlColumn(f"({self.sql} BETWEEN {value_of(low).sql} AND {value_of(high).sql})")

    def isNull(self) -> SqlColumn:  # noqa: N802 - PySpark's name, as those below
        """Whether there is no value."""
        return SqlColumn(f"({self.sql} IS NULL)")

    def isNotNull(self) -> SqlColumn:  # noqa: N802
        """Whether there is a value."""
        return SqlColumn(f"({self.sql} IS NOT NULL)")

    def eqNullSafe(self, other: object) -> SqlColumn:  # noqa: N802
        """Whether both are the same, or both null."""
        return SqlColumn(f"({self.sql} IS NOT DISTINCT FROM {value_of(other).sql})")

    def startswith(self, text: str) -> SqlColumn:
        """Whether it begins so."""
        return SqlColumn(f"starts_with({self.sql}, {literal(text)})")

    def endswith(self, text: str) -> SqlColumn:
        """Whether it ends so."""
        return SqlColumn(f"ends_with({self.sql}, {literal(text)})")

    def over(self, window: Window) -> SqlColumn:
        """The function over the rows of a window."""
        return SqlColumn(f"{self.sql} OVER ({window.sql})")

    def __getitem__(self, key: str | int) -> SqlColumn:
        """The field of a structure, or the element of a list with that index; the first is 0."""
        if isinstance(key, str):
            return SqlColumn(f"struct_extract({self.sql}, {literal(key)})", key)
        return SqlColumn(f"list_extract({self.sql}, {key + 1})")

    def __invert__(self) -> SqlColumn:
        return SqlColumn(f"(NOT {self.sql})")

    @staticmethod
    def _infix(sign: str) -> Callable[[SqlColumn, object], SqlColumn]:
        return lambda self, other: SqlColumn(f"({self.sql} {sign} {value_of(other).sql})")

    @staticmethod
    def _behind(sign: str) -> Callable[[SqlColumn, object], SqlColumn]:
        return lambda self, other: SqlColumn(f"({value_of(other).sql} {sign} {self.sql})")

    __add__, __radd__ = _infix("+"), _behind("+")
    __sub__, __rsub__ = _infix("-"), _behind("-")
    __mul__, __rmul__ = _infix("*"), _behind("*")
    __truediv__, __rtruediv__ = _infix("/"), _behind("/")
    __mod__ = _infix("%")
    __and__, __or__ = _infix("AND"), _infix("OR")
    __lt__, __le__, __gt__, __ge__ = _infix("<"), _infix("<="), _infix(">"), _infix(">=")
    __eq__, __ne__ = _infix("="), _infix("<>")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class SqlCase(SqlColumn):
    """What holds under conditions, the first that is true; null where none is."""

    __slots__ = ("_cases",)

    def __init__(self, cases: str) -> None:
        super().__init__(f"CASE{cases} END")
        self._cases = cases

    def when(self, condition: SqlColumn, value: object) -> SqlCase:
        """One more."""
        return SqlCase(f"{self._cases} WHEN {condition.sql} THEN {value_of(value).sql}")

    def otherwise(self, value: object) -> SqlColumn:
        """What holds where none is true."""
        return SqlColumn(f"CASE{self._cases} ELSE {value_of(value).sql} END")


class Window:
    """Rows that a function looks at together."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    @staticmethod
    def partitionBy(*columns: SqlColumn | str) -> Window:  # noqa: N802
        """Those with the same values."""
        return Window(f"PARTITION BY {', '.join(column_of(column).sql for column in columns)}")

    def orderBy(self, *columns: SqlColumn | str) -> Window:  # noqa: N802
        """In that order."""
        return Window(f"{self.sql} ORDER BY {ordered(columns)}")


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL has it. What reads SQL would stop at a null byte."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def column_of(column: SqlColumn | str) -> SqlColumn:
    """The column of that name. A point leads into a structure."""
    if isinstance(column, SqlColumn):
        return column
    parts = column.split(".")
    return SqlColumn(".".join(map(quoted, parts)), parts[-1])


def value_of(value: object) -> SqlColumn:
    """A value of Python, or a column as it is."""
    match value:
        case SqlColumn():
            return value
        case None:
            return SqlColumn("NULL")
        case bool():
            return SqlColumn(str(value).upper())
        case int():
            return SqlColumn(f"({value})" if value < 0 else str(value))
        case float():
            # A number with a point would be a decimal.
            return SqlColumn(f"CAST('{value!r}' AS DOUBLE)")
        case str():
            return SqlColumn(literal(value))
        case datetime():
            return SqlColumn(f"TIMESTAMPTZ '{value.astimezone(UTC).isoformat(' ')}'")
    raise TypeError(f"{value!r} is no value of a plan")


def ordered(columns: Iterable[SqlColumn | str]) -> str:
    """What ORDER BY says."""
    return ", ".join(f"{one.sql} {one.order}" for one in map(column_of, columns))


def name_of(column: SqlColumn) -> str:
    """The name that it has."""
    assert column.name is not None, f"{column.sql} has no name"
    return column.name


def named(column: SqlColumn) -> str:
    """What SELECT says."""
    return f"{column.sql} AS {quoted(name_of(column))}"
