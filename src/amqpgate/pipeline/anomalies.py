"""Anomalies: who left their own history, in rate or in reach, and who or what is new.

Each hour is compared with the same hour of the weeks before: the modified z-score 0.6745 (x - median) / MAD
(Iglewicz and Hoaglin, 1993), of which more than 3.5 is far out. Hours without a record count as 0, so that
who falls silent is noticed, too. The MAD is taken to be at least one, and at least a tenth of the median: who
always sent exactly a thousand is not far out with a thousand and one.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from amqpgate.pipeline.frames import F
from amqpgate.pipeline.topology import traffic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Scores beyond this are far out, on either side.
FAR_OUT: Final = 3.5

#: Weeks of history below which an hour is not judged.
MIN_WEEKS: Final = 3

#: What is compared: messages published and received, and how many different things were done with how many
#: exchanges and queues.
METRICS: Final = ("sent", "received", "reach")

_HOURS_OF_WEEK: Final = 168
_WHO: Final = ("user", "vhost")


def anomalies(usage: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """What is unusual from ``begin`` on, before ``end``, by what was before ``begin``.

    Both are whole hours, with a time zone.

    Columns: kind (``rate``, ``reach``, ``principal``, ``route``), user, vhost, hour, what, value, usual (the
    median), score (null of what is new), weeks of history. The farthest out first.
    """
    known = usage.where(F.col("user").isNotNull() & (F.coalesce("verdict", F.lit("allow")) == "allow"))
    return (
        far_out(scored(known, begin, end))
        .unionByName(_new(known, begin, end))
        .orderBy(F.desc_nulls_first(F.abs("score")), F.desc("value"), "kind", *_WHO, "hour", "what")
    )


def hourly(usage: DataFrame) -> DataFrame:
    """Per user, vhost and hour the `METRICS`. Queues that the broker names count once."""
    hour = F.date_trunc("hour", "window_start")
    queue = F.when(F.col("queue").startswith("amq.gen-"), "amq.gen-").otherwise(F.col("queue"))
    each = usage.groupBy(*_WHO, hour.alias("hour"), "operation", "exchange", queue.alias("queue")).agg(
        F.sum("messages").alias("messages")
    )
    got = F.col("operation").isin("basic.deliver", "basic.get-ok")
    return each.groupBy(*_WHO, "hour").agg(
        F.sum(F.when(F.col("operation") == "basic.publish", F.col("messages")).otherwise(0)).alias("sent"),
        F.sum(F.when(got, F.col("messages")).otherwise(0)).alias("received"),
        F.count("*").alias("reach"),
    )


def scored(usage: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """Each hour of each principal that has a history, metric by metric.

    Columns: user, vhost, hour, metric, value, usual, score, weeks.
    """
    hours = hourly(usage)
    history, now = (
        hours.where(F.col("hour") < F.lit(begin)),
        hours.where((F.col("hour") >= F.lit(begin)) & (F.col("hour") < F.lit(end))),
    )
    first = history.groupBy(*_WHO).agg(F.min("hour").alias("began"))
    judged = _window(usage, begin, end).crossJoin(first)
    slots = history.groupBy(*_WHO, _slot("hour").alias("slot")).agg(
        *(F.collect_list(metric).alias(f"{metric}_before") for metric in METRICS)
    )
    compared = (
        judged.withColumn("slot", _slot("hour"))
        .withColumn("weeks", _weeks("began", "slot", begin))
        .where(F.col("weeks") >= MIN_WEEKS)
        .join(slots, [*_WHO, "slot"], "left")
        .join(now, [*_WHO, "hour"], "left")
    )
    metrics = F.explode(
        F.array(
            *(
                F.struct(
                    F.lit(metric).alias("metric"),
                    F.coalesce(metric, F.lit(0)).cast("long").alias("value"),
                    _with_zeros(f"{metric}_before").alias("before"),
                )
                for metric in METRICS
            )
        )
    )
    usual = _median(F.col("before"))
    deviation = _median(F.transform("before", lambda value: F.abs(value - F.col("usual"))))
    spread = F.greatest(deviation, F.col("usual") / 10, F.lit(1.0))
    return (
        compared.select(*_WHO, "hour", "weeks", metrics.alias("one"))
        .select(
            *_WHO,
            "hour",
            "weeks",
            *(F.col(f"one.{name}").alias(name) for name in ("metric", "value", "before")),
        )
        .withColumn("usual", usual)
        .withColumn("score", F.lit(0.6745) * (F.col("value") - F.col("usual")) / spread)
        .select(*_WHO, "hour", "metric", "value", "usual", "score", "weeks")
    )


def far_out(scores: DataFrame) -> DataFrame:
    """The hours that are."""
    return scores.where(F.abs("score") > FAR_OUT).select(
        F.when(F.col("metric") == "reach", "reach").otherwise("rate").alias("kind"),
        *_WHO,
        "hour",
        F.col("metric").alias("what"),
        "value",
        "usual",
        "score",
        "weeks",
    )


def _window(usage: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """The hours to judge."""
    last = F.lit(end) - F.expr("interval 1 hour")
    return usage.sparkSession.range(1).select(
        F.explode(F.sequence(F.lit(begin), last, F.expr("interval 1 hour"))).alias("hour")
    )


def _slot(hour: str) -> Column:
    """The hour of the week, 0 to 167."""
    return F.weekday(hour) * 24 + F.hour(hour)


def _weeks(began: str, slot: str, begin: datetime) -> Column:
    """How often the hour of the week came between the principal's first hour and ``begin``."""
    hours = F.floor((F.unix_seconds(F.lit(begin)) - F.unix_seconds(began)) / 3600)
    offset = F.pmod(F.col(slot) - _slot(began), F.lit(_HOURS_OF_WEEK))
    return F.when(hours > offset, F.floor((hours - 1 - offset) / _HOURS_OF_WEEK) + 1).otherwise(0).cast("int")


def _with_zeros(values: str) -> Column:
    """The values of each week: those of weeks without a record are 0."""
    given = F.coalesce(F.col(values), F.array().cast("array<bigint>"))
    return F.concat(given, F.array_repeat(F.lit(0).cast("bigint"), F.col("weeks") - F.size(given)))


def _median(values: Column) -> Column:
    ordered = F.sort_array(values)
    low, high = F.floor((F.size(values) - 1) / 2), F.floor(F.size(values) / 2)
    return (F.get(ordered, low.cast("int")) + F.get(ordered, high.cast("int"))) / 2.0


# -- what is new -----------------------------------------------------------------------------


def _new(usage: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """Principals, and routes of known ones, that were not there before ``begin``."""
    start = F.col("window_start")
    before, now = (
        usage.where(start < F.lit(begin)),
        usage.where((start >= F.lit(begin)) & (start < F.lit(end))),
    )
    routes = _routes(now).join(_routes(before).drop("messages", "hour"), [*_WHO, "what"], "left_anti")
    known = before.select(*_WHO).distinct()
    strangers = (
        now.join(known, [*_WHO], "left_anti")
        .groupBy(*_WHO)
        .agg(F.sum("messages").alias("messages"), F.date_trunc("hour", F.min("window_start")).alias("hour"))
        .withColumn("what", F.lit("never seen before"))
    )
    return _said(strangers, "principal").unionByName(_said(routes.join(known, [*_WHO], "left_semi"), "route"))


def _routes(usage: DataFrame) -> DataFrame:
    """Who did what with which exchange or queue. ``*`` stands for ids in names."""
    key = F.when(F.col("operation") == "basic.publish", F.col("key"))
    what = F.concat_ws(
        " ",
        "operation",
        F.when(F.col("exchange") != "", F.concat(F.lit("exchange "), F.col("exchange"))),
        F.concat(F.lit("queue "), F.coalesce("queue", key)),
    )
    return (
        traffic(usage)
        .groupBy(*_WHO, what.alias("what"))
        .agg(F.sum("messages").alias("messages"), F.date_trunc("hour", F.max("last")).alias("hour"))
    )


def _said(found: DataFrame, kind: str) -> DataFrame:
    return found.select(
        F.lit(kind).alias("kind"),
        *_WHO,
        "hour",
        "what",
        F.col("messages").alias("value"),
        F.lit(None).cast("double").alias("usual"),
        F.lit(None).cast("double").alias("score"),
        F.lit(None).cast("int").alias("weeks"),
    )
