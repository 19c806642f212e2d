"""DuckDB in this process, with data frames over it that have PySpark's names."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from uuid import uuid4

import duckdb
import pyarrow

from amqpgate.pipeline.batches import together
from amqpgate.pipeline.contract import is_whole
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.kinds import DIGITS, Kind
from amqpgate.pipeline.local_columns import literal, quoted
from amqpgate.pipeline.local_frames import SqlFrame, SqlSession
from amqpgate.pipeline.local_functions import col, lit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Batches = Iterator[pyarrow.RecordBatch]
    Rows: TypeAlias = pyarrow.Table | pyarrow.RecordBatch | pyarrow.RecordBatchReader

#: What DuckDB calls the types of columns.
_SQL: Final = {
    "string": "VARCHAR",
    "int16": "SMALLINT",
    "int64": "BIGINT",
    "bool": "BOOLEAN",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
    "binary": "BLOB",
}
#: What DuckDB has in memory, as Spark has here. It takes less where there is less: four fifths of a machine,
#: or of a container. Usage of 10 million records takes a tenth more CPU with 256 MB than with all it wants.
MOST_MEMORY: Final = "2 GiB"
#: Records that are summed up by minutes at a time. Those of a billion at once filled 30 GB of disk.
MOST_TOGETHER: Final = 20_000_000
_MINUTE: Final = 60_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Bytes of batches that become one: each that DuckDB takes costs 8 ms of CPU, and a small file is a batch.
_TOGETHER: Final = 8 << 20
#: So many at most: of a small file of lines Arrow keeps half a megabyte.
_MOST: Final = 32
#: Rows of a batch that a function of Python gets.
_BATCH: Final = 10_000


@contextmanager
def explained(files: Iterable[str] = ()) -> Iterator[None]:
    """Turn what DuckDB and Arrow raise inside into a ``PipelineError``, which names the one of ``files`` that
    is damaged, if any: they do not."""
    try:
        yield
    except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
        why = str(error).partition("\n")[0]
        if isinstance(error, duckdb.OutOfMemoryException):
            raise PipelineError(f"{why}: use --engine spark") from error
        damaged = next((path for path in files if not is_whole(path.removeprefix("file://"))), None)
        raise PipelineError(why if damaged is None else f"{damaged} is damaged: {why}") from error


def start() -> SqlSession:
    """A session. Times are UTC, and nothing is fetched from anywhere. What is more than `MOST_MEMORY` goes to
    a folder in that of temporary files (``TMPDIR``), which ends with the session."""
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "true",
            # Of each small file it would keep 39 KiB. The system has a cache of files.
            "enable_external_file_cache": "false",
            "temp_directory": f"{tempfile.gettempdir()}/amqpgate-{uuid4().hex}",
        }
    )
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    (most,) = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0]
    if _gibibytes(most) > _gibibytes(MOST_MEMORY):
        connection.execute(f"SET memory_limit = '{MOST_MEMORY}'")
    return SqlSession(connection)


def _gibibytes(text: str) -> float:
    """Of what DuckDB says: 18.7 GiB."""
    number, unit = text.split()
    return float(number) * {"GiB": 1, "TiB": 1 << 10}.get(unit, 0)


def frame_of(session: SqlSession, table: pyarrow.Table | pyarrow.RecordBatchReader) -> DataFrame:
    """The rows of an Arrow table."""
    return _frame(session, table.schema, [table])


def frame_of_batches(
    session: SqlSession, rows: pyarrow.Schema, batches: Iterable[pyarrow.RecordBatch]
) -> DataFrame:
    """The rows of batches, some at a time: DuckDB moves to a disk what is too much."""
    return _frame(session, rows, itertools.chain([rows.empty_table()], together(batches, _TOGETHER, _MOST)))


def _frame(session: SqlSession, rows: pyarrow.Schema, parts: Iterable[Rows]) -> DataFrame:
    """A table of these parts, of which the first makes it."""
    name = session.new_name()
    where = f"CREATE TABLE {name} AS"
    for part in parts:
        session.connection.register(f"{name}_arrow", part)
        session.connection.execute(f"{where} SELECT * FROM {name}_arrow")  # noqa: S608 - all of it is ours
        session.connection.unregister(f"{name}_arrow")
        where = f"INSERT INTO {name}"
    return cast("DataFrame", session.table(name, rows.names))


def files_of(
    session: SqlSession, files: Iterable[tuple[str, frozenset[str]]], rows: pyarrow.Schema
) -> DataFrame:
    """What is in Parquet files, of each its path and its columns, read by each plan that needs it. A column
    that a file does not have is null. Raises ``PipelineError`` for a path that DuckDB cannot be told."""
    alike: dict[frozenset[str], list[str]] = {}
    for path, names in files:
        alike.setdefault(names.intersection(rows.names), []).append(_place(path))
    parts = (
        f"SELECT {', '.join(_column(field, names) for field in rows)} "  # noqa: S608 - all of it is quoted
        f"FROM read_parquet([{', '.join(paths)}], hive_partitioning = false)"
        for names, paths in alike.items()
    )
    name = session.new_name()
    session.connection.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")
    return cast("DataFrame", session.table(name, rows.names))


def _column(field: pyarrow.Field, names: frozenset[str]) -> str:
    value = quoted(field.name) if field.name in names else "NULL"
    return f"CAST({value} AS {_SQL[str(field.type)]}) AS {quoted(field.name)}"


def _place(path: str) -> str:
    """A path that DuckDB takes by its letters, and not for a pattern."""
    if re.search(r"[*?\[]", path):
        if "\\" in path:
            raise PipelineError(f"{path} has a backslash, and one of * ? [, in its name: use --engine spark")
        path = re.sub(r"([*?\[])", r"[\1]", path)
    return literal(path)


def computed(frame: DataFrame) -> DataFrame:
    """The frame with its rows in memory."""
    steps = cast("SqlFrame", frame)
    name = steps.session.new_name()
    steps.session.connection.execute(f"CREATE TABLE {name} AS {steps.sql()}")
    return cast("DataFrame", steps.session.table(name, steps.names))


def in_parts(
    frame: DataFrame,
    time: str,
    plan: Callable[[DataFrame], DataFrame],
    merge: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """As `frames.in_parts`, with `MOST_TOGETHER` records at a time if they are evenly in their time."""
    steps = cast("SqlFrame", frame)
    asked = steps.session.connection.execute
    (count,) = asked(f"SELECT count(*) FROM ({steps.sql()})").fetchall()[0]  # noqa: S608 - names are quoted
    if count <= MOST_TOGETHER:
        return plan(frame)
    ends = f"SELECT epoch_us(min({quoted(time)})), epoch_us(max({quoted(time)})) FROM ({steps.sql()})"  # noqa: S608
    first, last = asked(ends).fetchall()[0]
    begin = first - first % _MINUTE
    # Files and row groups beyond these moments are passed over.
    width = -(-(last + 1 - begin) * MOST_TOGETHER // count // _MINUTE) * _MINUTE
    moment = col(time)
    marks = (*range(begin, last + 1, width), last + 1)
    bounds = [lit(_EPOCH + timedelta(microseconds=at)) for at in marks]
    found = [
        computed(plan(cast("DataFrame", steps.where((moment >= since) & (moment < until)))))
        for since, until in pairwise(bounds)
    ]
    return merge(reduce(lambda one, other: one.unionByName(other), found))


def times_of(frame: DataFrame) -> tuple[str, ...]:
    """The columns that are times."""
    steps = cast("SqlFrame", frame)
    found = steps.session.connection.execute(f"DESCRIBE {steps.sql()}").fetchall()
    return tuple(
        name for name, kind, *_ in found if kind == _SQL["timestamp[us, tz=UTC]"] or "TIME ZONE" in kind
    )


@contextmanager
def reader_of(frame: DataFrame) -> Iterator[pyarrow.RecordBatchReader]:
    """All rows, of which some are here at a time."""
    with cast("SqlFrame", frame).reader(_BATCH) as batches:
        yield batches


def rows_of(frame: DataFrame) -> Iterator[dict[str, object]]:
    """The same, as Python has them."""
    with reader_of(frame) as batches:
        for batch in batches:
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
    return frame_of(cast("SqlFrame", frame).session, pyarrow.Table.from_batches(batches, schema))


def arrow_of(frame: DataFrame) -> pyarrow.Table:
    """Its rows."""
    return cast("SqlFrame", frame).arrow()
