"""DuckDB in this process, with PySpark's data frames over it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import duckdb
import pyarrow
import sqlframe.base.util
from sqlframe.duckdb import DuckDBSession

from amqpgate.pipeline.contract import is_whole
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.kinds import DIGITS, Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlframe.duckdb import DuckDBDataFrame

    Batches = Iterator[pyarrow.RecordBatch]

#: What SQLFrame, and DuckDB, call the types of columns.
_SQL: Final = {
    "string": ("string", "VARCHAR"),
    "int16": ("smallint", "SMALLINT"),
    "int64": ("bigint", "BIGINT"),
    "bool": ("boolean", "BOOLEAN"),
    "timestamp[us, tz=UTC]": ("timestamp", "TIMESTAMPTZ"),
    "binary": ("binary", "BLOB"),
}
#: Rows of a batch that a function of Python gets.
_BATCH: Final = 10_000
_numbers = itertools.count()


# SQLFrame's own looks among all dialects of sqlglot, and loads them for that.
sqlframe.base.util.dialect_to_string = lambda dialect: type(dialect).__name__.lower()


@contextmanager
def explained(files: Iterable[str] = ()) -> Iterator[None]:
    """Turn what DuckDB and Arrow raise inside into a ``PipelineError``, which names the one of ``files`` that
    is damaged, if any: they do not."""
    try:
        yield
    except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
        why = str(error).partition("\n")[0]
        damaged = next((path for path in files if not is_whole(path.removeprefix("file://"))), None)
        raise PipelineError(why if damaged is None else f"{damaged} is damaged: {why}") from error


def start() -> DuckDBSession:
    """A session. Times are UTC, and nothing is fetched from anywhere."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "true"}
    )
    connection.execute("SET TimeZone = 'UTC'")
    return DuckDBSession(connection)


def frame_of(session: DuckDBSession, table: pyarrow.Table) -> DataFrame:
    """The rows of an Arrow table."""
    name = f"rows_{next(_numbers)}"
    _put(session, f"CREATE TABLE {name} AS", table)
    return cast("DataFrame", session.table(name))


def frame_of_batches(
    session: DuckDBSession, rows: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch]
) -> DataFrame:
    """The rows of batches, one at a time: DuckDB moves to a disk what is too much."""
    name = f"rows_{next(_numbers)}"
    _put(session, f"CREATE TABLE {name} AS", rows.empty_table())
    for batch in batches:
        _put(session, f"INSERT INTO {name}", batch)
    return cast("DataFrame", session.table(name))


def _put(session: DuckDBSession, where: str, rows: pyarrow.Table | pyarrow.RecordBatch) -> None:
    session._conn.register("coming", rows)
    session._conn.execute(f"{where} SELECT * FROM coming")  # noqa: S608 - all of it is ours
    session._conn.unregister("coming")


def files_of(
    session: DuckDBSession, files: Iterable[tuple[str, frozenset[str]]], rows: pyarrow.Schema
) -> DataFrame:
    """What is in Parquet files, of each its path and its columns, read by each plan that needs it. A column
    that a file does not have is null. Raises ``PipelineError`` for a path that DuckDB cannot be told."""
    alike: dict[frozenset[str], list[str]] = {}
    for path, names in files:
        alike.setdefault(names.intersection(rows.names), []).append(_literal(path))
    parts = (
        f"SELECT {', '.join(_column(field, names) for field in rows)} "  # noqa: S608 - all of it is quoted
        f"FROM read_parquet([{', '.join(paths)}], hive_partitioning = false)"
        for names, paths in alike.items()
    )
    name = f"files_{next(_numbers)}"
    session._conn.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")
    # SQLFrame would ask DuckDB, and translate each answer twice.
    session.catalog.add_table(name, {field.name: _SQL[str(field.type)][0] for field in rows})
    return cast("DataFrame", session.table(name))


def _column(field: pyarrow.Field, names: frozenset[str]) -> str:
    value = f'"{field.name}"' if field.name in names else "NULL"
    return f'CAST({value} AS {_SQL[str(field.type)][1]}) AS "{field.name}"'


def _literal(path: str) -> str:
    """A path that DuckDB takes by its letters, and not for a pattern."""
    if re.search(r"[*?\[]", path):
        if "\\" in path:
            raise PipelineError(f"{path} has a backslash, and one of * ? [, in its name: use --engine spark")
        path = re.sub(r"([*?\[])", r"[\1]", path)
    return "'" + path.replace("'", "''") + "'"


def computed(frame: DataFrame) -> DataFrame:
    """The frame with its rows in memory."""
    return frame_of(cast("DuckDBDataFrame", frame).session, arrow_of(frame))


def rows_of(frame: DataFrame) -> Iterator[dict[str, object]]:
    """All rows."""
    for batch in arrow_of(frame).to_batches(_BATCH):
        yield from batch.to_pylist()


def from_batches(
    frame: DataFrame,
    function: Callable[[Batches], Batches],
    added: Mapping[str, Kind],
) -> DataFrame:
    """The rows with what the function appends to batches of them."""
    table = arrow_of(frame)
    types = {
        "string": pyarrow.string(),
        "strings": pyarrow.list_(pyarrow.string()),
        "money": pyarrow.decimal128(38, DIGITS),
    }
    schema = pyarrow.schema([*table.schema, *((name, types[kind]) for name, kind in added.items())])
    batches = function(iter(table.to_batches(_BATCH)))
    return frame_of(cast("DuckDBDataFrame", frame).session, pyarrow.Table.from_batches(batches, schema))


def arrow_of(frame: DataFrame) -> pyarrow.Table:
    """Its rows. Not by SQLFrame, which asks DuckDB in a way that is deprecated."""
    duck = cast("DuckDBDataFrame", frame)
    return duck.session._conn.sql(duck.sql("duckdb", optimize=False, pretty=False)).to_arrow_table()
