"""Who used how much: messages and bytes per principal, virtual host, exchange and time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from amqpgate.pipeline.frames import F, begin_of, in_parts, local_begin_of, window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The columns of ``usage_by``. ``published`` is what the principal sent, ``delivered`` what it got (also by
#: basic.get, and returned messages), ``refused`` what policies denied; all in messages. Bytes are of bodies.
#: Peaks are of both directions, in messages and bytes per second: the mean of the busiest minute.
SCHEMA: Final = (
    "start timestamp, user string, vhost string, exchange string, published bigint, published_bytes bigint, "
    "delivered bigint, delivered_bytes bigint, refused bigint, peak_messages_per_second double, "
    "peak_bytes_per_second double"
)

_SENT: Final = ("basic.publish",)
_GOT: Final = ("basic.deliver", "basic.get-ok", "basic.return")
_WHO: Final = ("user", "vhost", "exchange")
_SUMS: Final = ("published", "published_bytes", "delivered", "delivered_bytes", "refused")
_PEAKS: Final = ("peak_messages_per_second", "peak_bytes_per_second")


def usage_by(
    usage: DataFrame, per: Literal["minute", "hour", "day", "month"], zone: str = "UTC"
) -> DataFrame:
    """Usage records as ``SCHEMA``, in no order; only times with messages have a row.

    A record counts where its window began. Days and months are those of the time zone. ``usage`` may be a
    stream with a watermark for ``window_start``, but for months and for other zones than UTC.
    """
    return in_parts(usage, "window_start", partial(_usage_by, per=per, zone=zone), _together)


def _together(parts: DataFrame) -> DataFrame:
    """One row of several that parts of the time have, each with whole minutes."""
    sums = [F.sum(name).alias(name) for name in _SUMS]
    return parts.groupBy("start", *_WHO).agg(*sums, *(F.max(name).alias(name) for name in _PEAKS))


def _usage_by(usage: DataFrame, per: Literal["minute", "hour", "day", "month"], zone: str) -> DataFrame:
    refused = F.coalesce(F.col("verdict") == "deny", F.lit(False))
    sent, got = F.col("operation").isin(*_SENT), F.col("operation").isin(*_GOT)
    # Each step of a plan costs DuckDB's frames as much as thousands of records: there are as few as can be.
    minutes = (
        usage.filter(sent | got)
        .groupBy(window("window_start", "minute"), *_WHO)
        .agg(
            F.sum(F.when(sent & ~refused, F.col("messages")).otherwise(0)).alias("published"),
            F.sum(F.when(sent & ~refused, F.col("bytes")).otherwise(0)).alias("published_bytes"),
            F.sum(F.when(got & ~refused, F.col("messages")).otherwise(0)).alias("delivered"),
            F.sum(F.when(got & ~refused, F.col("bytes")).otherwise(0)).alias("delivered_bytes"),
            F.sum(F.when(refused, F.col("messages")).otherwise(0)).alias("refused"),
        )
    )
    peaks = {
        "peak_messages_per_second": (F.col("published") + F.col("delivered")) / 60,
        "peak_bytes_per_second": (F.col("published_bytes") + F.col("delivered_bytes")) / 60,
    }
    if per == "minute":
        return minutes.select(
            begin_of("window").alias("start"),
            *_WHO,
            *_SUMS,
            *(peak.alias(name) for name, peak in peaks.items()),
        )
    aggregates = [F.sum(name).alias(name) for name in _SUMS]
    aggregates += [F.max(peak).alias(name) for name, peak in peaks.items()]
    if per == "month" or (per == "day" and zone != "UTC"):
        begun = minutes.withColumn("begun", begin_of("window"))
        return begun.groupBy(local_begin_of("begun", per, zone).alias("start"), *_WHO).agg(*aggregates)
    spans = minutes.groupBy(window("window", per), *_WHO).agg(*aggregates)
    return spans.select(begin_of("window").alias("start"), *_WHO, *_SUMS, *peaks)
