"""Plans that two engines run: Spark's, and DuckDB's in this process.

A verb is written once, as a plan over data frames with the names of PySpark. `local_frames`, `local_columns`
and `local_functions` have the same names over DuckDB's SQL. ``F`` and ``Window`` are those of the engine in
force; frames of one engine do not mix with columns of the other. What the engines name otherwise is here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from amqpgate.pipeline.kinds import DIGITS, Kind

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame, Window
    from pyspark.sql import functions as F

    Batches: TypeAlias = Iterator[pyarrow.RecordBatch]

#: What runs a plan.
Engine: TypeAlias = Literal["spark", "local"]

_MICROS: Final = {"minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000}
#: Rows of an answer of Spark's that are here at a time.
_PART: Final = 10_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Spark's own threads, which hand over batches of a stream, see the default.
_ENGINE: Final[ContextVar[Engine]] = ContextVar("engine", default="spark")
_MODULES: Final[Mapping[Engine, tuple[str, str]]] = {
    "spark": ("pyspark.sql", "pyspark.sql.functions"),
    "local": ("amqpgate.pipeline.local_columns", "amqpgate.pipeline.local_functions"),
}


@contextmanager
def engine(name: Engine) -> Iterator[None]:
    """Plans are made for that engine inside."""
    before = _ENGINE.set(name)
    try:
        yield
    finally:
        _ENGINE.reset(before)


def current() -> Engine:
    """The engine in force."""
    return _ENGINE.get()


if not TYPE_CHECKING:

    class _InForce:
        """Names of a module or class of the engine in force."""

        def __init__(self, place: Callable[[Engine], Any]) -> None:
            self._place = place

        def __getattr__(self, name: str) -> Any:
            return getattr(self._place(_ENGINE.get()), name)

    F = _InForce(lambda name: importlib.import_module(_MODULES[name][1]))
    Window = _InForce(lambda name: importlib.import_module(_MODULES[name][0]).Window)


def with_columns(
    frame: DataFrame, function: Callable[[Batches], Batches], added: Mapping[str, Kind]
) -> DataFrame:
    """The frame with columns that a function of Arrow batches appends, in that order."""
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import from_batches

        return from_batches(frame, function, added)
    from pyspark.sql.types import ArrayType, DataType, DecimalType, StringType, StructField, StructType

    types: Mapping[Kind, DataType] = {
        "string": StringType(),
        "strings": ArrayType(StringType()),
        "money": DecimalType(38, DIGITS),
    }
    more = [StructField(name, types[kind]) for name, kind in added.items()]
    return frame.mapInArrow(function, StructType([*frame.schema.fields, *more]))


def window(time: str, per: Literal["minute", "hour", "day"]) -> Column:
    """The span of time that a record counts in, to group by; ``time`` may be such a span, too.

    On Spark a stream with a watermark needs just that; ``begin_of`` has its start.
    """
    if _ENGINE.get() == "local":
        return _begun(F.col(time), per).alias("window")
    return F.window(time, f"1 {per}")


def hour_of(time: str | Column) -> Column:
    """When its hour began, UTC, whichever time zone the session has."""
    if _ENGINE.get() == "local":
        return _begun(F.col(time) if isinstance(time, str) else time, "hour")
    return F.timestamp_seconds(F.floor(F.unix_seconds(time) / 3600) * 3600)


def _begun(time: Column, per: Literal["minute", "hour", "day"]) -> Column:
    """When DuckDB's minute, hour or day began, UTC."""
    # By numbers, which costs a third of what date_trunc does with a time zone; UTC has no odd lengths.
    micros = F.unix_micros(time)
    return F.call_function("make_timestamptz", micros - F.pmod(micros, F.lit(_MICROS[per])))


def local_begin_of(time: str, per: Literal["day", "month"], zone: str) -> Column:
    """When its day or month began in that time zone."""
    if _ENGINE.get() == "local":
        zone = zone.replace("'", "''")
        return F.expr(f"date_trunc('{per}', {time} AT TIME ZONE '{zone}') AT TIME ZONE '{zone}'")
    # By dates, which are the same in all sessions.
    seconds = F.unix_seconds(F.from_utc_timestamp(time, zone))
    date = F.date_from_unix_date(F.floor(seconds / 86_400).cast("int"))
    if per == "month":
        date = F.trunc(date, per)
    return F.to_utc_timestamp(F.timestamp_seconds(F.unix_date(date) * F.lit(86_400).cast("bigint")), zone)


def begin_of(window: str) -> Column:
    """When it begins."""
    return F.col(window if _ENGINE.get() == "local" else f"{window}.start")


def in_parts(
    frame: DataFrame,
    time: str,
    plan: Callable[[DataFrame], DataFrame],
    merge: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """What a plan makes of the frame, whose rows are sums over whole minutes of ``time``. DuckDB makes it of
    some records at a time where they are many, and ``merge`` has the rows of all these parts."""
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import in_parts as parts

        return parts(frame, time, plan, merge)
    return plan(frame)


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, computed once. For what is much smaller than the records."""
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import computed

        yield computed(frame)
        return
    frame = frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def times_of(frame: DataFrame) -> tuple[str, ...]:
    """The columns that are times."""
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import times_of as times

        return times(frame)
    from pyspark.sql.types import TimestampType

    return tuple(field.name for field in frame.schema if isinstance(field.dataType, TimestampType))


def arrow_of(frame: DataFrame) -> pyarrow.Table:
    """All rows in the frame's order, in memory; times are UTC."""
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import arrow_of as arrow

        return arrow(frame)
    return frame.toArrow()


@contextmanager
def reader_of(frame: DataFrame) -> Iterator[pyarrow.RecordBatchReader]:
    """All rows in the frame's order, of which some are here at a time; times are UTC."""
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import reader_of as reader

        with reader(frame) as batches:
            yield batches
        return
    import pyarrow

    schema = frame.limit(0).toArrow().schema
    rows = rows_of(frame)
    parts = iter(lambda: list(islice(rows, _PART)), [])
    yield pyarrow.RecordBatchReader.from_batches(
        schema, (pyarrow.RecordBatch.from_pylist(part, schema) for part in parts)
    )


def rows_of(frame: DataFrame, most: int | None = None) -> Iterator[dict[str, object]]:
    """All rows in the frame's order, or the first, part by part; times are UTC."""
    if most is not None:
        frame = frame.limit(most)
    if _ENGINE.get() == "local":
        from amqpgate.pipeline.local import rows_of as rows

        yield from rows(frame)
        return
    # Spark hands times out in the time zone of this process, and without saying so.
    times = times_of(frame)
    for row in frame.withColumns({name: F.unix_micros(name) for name in times}).toLocalIterator():
        told = row.asDict(recursive=True)
        yield told | {
            name: _EPOCH + timedelta(microseconds=told[name]) for name in times if told[name] is not None
        }


__all__ = ["F", "Window"]
