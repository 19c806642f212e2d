"""What usage costs, by a table of prices: who is charged how much, by day or month.

Sums are whole numbers. Prices are applied to them once, at the end, in decimals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow

from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.frames import DIGITS, F, local_begin_of, with_columns
from amqpgate.pipeline.jobs.prices import BYTES, MESSAGES, SECONDS, Prices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Payer: TypeAlias = Literal["user", "group", "vhost"]

#: Whom costs are told of.
PAYERS: Final[tuple[Payer, ...]] = ("user", "group", "vhost")
#: The columns of ``costs``, with all three payers. Costs have nine digits behind the point.
SCHEMA: Final = (
    "start timestamp, user string, group string, vhost string, messages bigint, bytes bigint, "
    "connection_seconds bigint, messages_cost decimal(38,9), bytes_cost decimal(38,9), "
    "connections_cost decimal(38,9), cost decimal(38,9), currency string"
)
_SUMS: Final = ("messages", "bytes", "connection_seconds")
_COSTS: Final = ("messages_cost", "bytes_cost", "connections_cost", "cost")
_PASSED: Final = ("basic.publish", "basic.deliver", "basic.get-ok", "basic.return")
#: Of the engines' decimals.
_CONTEXT: Final = Context(prec=38)


def costs(
    usage: DataFrame,
    events: DataFrame,
    prices: Prices,
    per: Literal["day", "month"] = "month",
    zone: str = "UTC",
    by: Sequence[Payer] = PAYERS,
    span: Span | None = None,
) -> DataFrame:
    """Who is charged how much, as ``SCHEMA`` without the payers that are not in ``by``, in no order.

    Messages count where the window of their record began; those that were refused cost nothing. A connection
    counts from its ``session.open`` to its ``session.close``, in whole seconds; where the records have not
    both, from its first record or to its last. ``events`` may be of a longer time than the ``span`` that is
    charged, so that connections are known which are there all the time.
    """
    both = _passed(usage, per, zone)
    if prices.per_connection_hour:
        both = both.unionByName(_connected(usage, events, per, zone, span or Span()))
    grouped = with_columns(both, partial(_with_groups, prices), {"group": "string"})
    sums = grouped.groupBy("start", *by).agg(*(F.sum(name).alias(name) for name in _SUMS))
    priced = with_columns(sums, partial(_with_costs, prices), dict.fromkeys(_COSTS, "money"))
    return priced.withColumn("currency", F.lit(prices.currency))


def _passed(usage: DataFrame, per: Literal["day", "month"], zone: str) -> DataFrame:
    refused = F.coalesce(F.col("verdict") == "deny", F.lit(False))
    return (
        usage.filter(F.col("operation").isin(*_PASSED) & ~refused)
        .groupBy(local_begin_of("window_start", per, zone).alias("start"), "user", "vhost")
        .agg(F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
        .withColumn("connection_seconds", F.lit(0).cast("bigint"))
    )


def _sessions(usage: DataFrame, events: DataFrame) -> DataFrame:
    who = ("gateway", "session", "user", "vhost")
    of_usage = usage.select(
        *who, F.unix_seconds("first").alias("first"), F.unix_seconds("last").alias("last")
    )
    at = F.unix_seconds("time")
    of_events = events.select(*who, at.alias("first"), at.alias("last"))
    return (
        of_usage.unionByName(of_events)
        .filter(F.col("session").isNotNull())
        .groupBy(*who)
        .agg(F.min("first").alias("first"), F.max("last").alias("last"))
    )


def _connected(
    usage: DataFrame, events: DataFrame, per: Literal["day", "month"], zone: str, span: Span
) -> DataFrame:
    begins = _begins(usage, events, per, ZoneInfo(zone))
    if len(begins) < 2:
        return _passed(usage.limit(0), per, zone)
    low = begins[0] if span.since is None else _seconds_of(span.since)
    high = begins[-1] if span.until is None else _seconds_of(span.until)
    known = F.array(*(F.lit(begin).cast("bigint") for begin in begins))
    parts = (
        _sessions(usage, events)
        .withColumns(
            {
                "first": F.greatest(F.col("first"), F.lit(low).cast("bigint")),
                "last": F.least(F.col("last"), F.lit(high).cast("bigint")),
            }
        )
        .withColumn("place", F.explode(F.array(*map(F.lit, range(len(begins) - 1)))))
        .withColumn("began", F.get(known, F.col("place")))
        .withColumn(
            "seconds",
            F.least(F.col("last"), F.get(known, F.col("place") + 1))
            - F.greatest(F.col("first"), F.col("began")),
        )
        .filter(F.col("seconds") > 0)
    )
    return (
        parts.groupBy("began", "user", "vhost")
        .agg(F.sum("seconds").alias("connection_seconds"))
        .select(
            F.timestamp_seconds("began").alias("start"),
            *("user", "vhost"),
            F.lit(0).cast("bigint").alias("messages"),
            F.lit(0).cast("bigint").alias("bytes"),
            "connection_seconds",
        )
    )


def _begins(usage: DataFrame, events: DataFrame, per: Literal["day", "month"], zone: ZoneInfo) -> list[int]:
    """When the days or months of the records begin, and the one after them; in seconds since the epoch."""
    spans = [
        frame.agg(F.min(F.unix_seconds(first)).alias("first"), F.max(F.unix_seconds(last)).alias("last"))
        for frame, first, last in ((usage, "first", "last"), (events, "time", "time"))
    ]
    rows = [row for frame in spans for row in frame.collect() if row.first is not None]
    if not rows:
        return []
    first, last = min(row.first for row in rows), max(row.last for row in rows)
    day = datetime.fromtimestamp(first, zone).date()
    found: list[int] = []
    while not found or found[-1] <= last:
        day = day.replace(day=1) if per == "month" else day
        found.append(_seconds_of(datetime.combine(day, time(), zone)))
        day += timedelta(days=32 if per == "month" else 1)
    return found


def _seconds_of(moment: datetime) -> int:
    return int(moment.timestamp())


def _with_groups(prices: Prices, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    known: dict[str | None, str | None] = {}
    for batch in batches:
        users = batch["user"].to_pylist()
        known |= {user: prices.group_of(user) for user in {*users} - known.keys()}
        groups = pyarrow.array([known[user] for user in users], pyarrow.string())
        yield batch.append_column("group", groups)


def _with_costs(prices: Prices, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        columns = [
            [_cost(number, price, unit) for number in batch[name].to_pylist()]
            for name, price, unit in zip(
                _SUMS,
                (prices.per_million_messages, prices.per_gigabyte, prices.per_connection_hour),
                (MESSAGES, BYTES, SECONDS),
                strict=True,
            )
        ]
        columns.append([sum(parts, Decimal()) for parts in zip(*columns, strict=True)])
        for name, column in zip(_COSTS, columns, strict=True):
            batch = batch.append_column(name, pyarrow.array(column, pyarrow.decimal128(38, DIGITS)))
        yield batch


def _cost(number: int, price: Decimal, unit: int) -> Decimal:
    """What so many cost: exact, and rounded once, to the ninth digit behind the point."""
    exact = Fraction(price) * number / unit
    digits, rest = divmod(exact.numerator * 10**DIGITS, exact.denominator)
    up = 2 * rest > exact.denominator or (2 * rest == exact.denominator and digits % 2)
    return Decimal(digits + bool(up)).scaleb(-DIGITS, _CONTEXT)
