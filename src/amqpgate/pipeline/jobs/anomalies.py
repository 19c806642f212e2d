"""Anomalies: who left their own history, in rate or in reach, and who or what is new.

Each hour is compared with the median of the same hour of the weeks before. Hours without a record count as 0,
so that who falls silent is noticed, too. Counts are compared by twice their square root, in which chance
alone (Poisson's) has a spread of one (Anscombe, 1948). A tenth of the median is added to that: who always
sent exactly a thousand is not far out with a thousand and one. How much more than that a principal varies is
learnt from all of its hours, since those of one hour of the week are few. The score is how many standard
deviations of the normal distribution are as rare, so that a short history has to be left farther (Wallace,
1959).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from amqpgate.pipeline.frames import F, hour_of
from amqpgate.pipeline.jobs.topology import traffic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Scores beyond this are far out, on either side. Of 100,000 judged hours of traffic that does not change,
#: these were at most 6 where messages came by chance, and 40 where rates varied by three tenths as well; 820
#: where they varied as much as they are high.
FAR_OUT: Final = 4.0

#: Weeks of history below which an hour is not judged.
MIN_WEEKS: Final = 3

#: What is compared: messages published and received, and how many different things were done with how many
#: exchanges and queues.
METRICS: Final = ("sent", "received", "reach")

#: The columns of ``anomalies``.
SCHEMA: Final = (
    "kind string, user string, vhost string, hour timestamp, what string, value bigint, usual double, "
    "score double, weeks int"
)

_HOURS_OF_WEEK: Final = 168
#: A score has six digits behind the point.
_PLACES: Final = 1_000_000.0
_WHO: Final = ("user", "vhost")


def anomalies(usage: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """What is unusual from ``begin`` on, before ``end``, by what was before ``begin``.

    Both are whole hours, with a time zone.

    Columns: kind (``rate``, ``reach``, ``principal``, ``route``), user, vhost, hour, what, value, usual (the
    median), score (null of what is new; six digits behind the point), weeks of history. The farthest out
    first.
    """
    known = usage.where(F.col("user").isNotNull() & (F.coalesce("verdict", F.lit("allow")) == "allow"))
    return (
        far_out(scored(known, begin, end))
        .unionByName(_new(known, begin, end))
        .orderBy(F.desc_nulls_first(F.abs("score")), F.desc("value"), "kind", *_WHO, "hour", "what")
    )


def hourly(usage: DataFrame) -> DataFrame:
    """Per user, vhost and hour the `METRICS`. Queues that the broker names count once."""
    hour = hour_of("window_start")
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
    slots = _slots(history.join(first, [*_WHO]), begin)
    judged = (
        _window(usage, begin, end)
        .crossJoin(first)
        .withColumn("slot", _slot("hour"))
        .withColumn("weeks", _weeks("began", "slot", begin))
        .where(F.col("weeks") >= MIN_WEEKS)
        .join(now, [*_WHO, "hour"], "left")
    )
    compared = (
        _by_metric(judged, [*_WHO, "hour", "slot", "weeks"], lambda metric: F.coalesce(metric, F.lit(0)))
        .withColumn("value", F.col("value").cast("long"))
        .join(slots.select(*_WHO, "slot", "metric", "usual"), [*_WHO, "slot", "metric"], "left")
        .join(_spreads(slots), [*_WHO, "metric"], "left")
        .withColumn("usual", F.coalesce("usual", F.lit(0.0)))
    )
    return compared.withColumn("score", _score()).select(
        *_WHO, "hour", "metric", "value", "usual", "score", "weeks"
    )


def _slots(history: DataFrame, begin: datetime) -> DataFrame:
    """Each hour of the week that has a record: what it had in each week, and the median of that."""
    weekly = history.groupBy(*_WHO, "began", _slot("hour").alias("slot")).agg(
        *(F.collect_list(metric).alias(metric) for metric in METRICS)
    )
    weeks = weekly.withColumn("weeks", _weeks("began", "slot", begin))
    return _by_metric(weeks, [*_WHO, "slot", "weeks"], _with_zeros).withColumn(
        "usual", _median(F.col("value"))
    )


def _spreads(slots: DataFrame) -> DataFrame:
    """How far a principal's hours are from their medians: mean square, of how many, how many are free."""
    away = _root(F.col("one")) - _root(F.col("usual"))
    return (
        slots.where(F.array_max("value") > 0)
        .select(*_WHO, "metric", "slot", "usual", F.explode("value").alias("one"))
        .withColumn("square", away * away / _chance())
        .groupBy(*_WHO, "metric")
        .agg(
            F.avg("square").alias("square"),
            F.count("*").alias("many"),
            (F.count("*") - F.countDistinct("slot")).alias("free"),
        )
    )


def _score() -> Column:
    # One more than there are, as if it had varied once as it should.
    free = 1.0 + F.coalesce("free", F.lit(0))
    squares = F.coalesce(F.col("square") * F.col("many"), F.lit(0.0))
    varies = F.greatest(F.lit(1.0), (1 + squares) / free)
    # The median is not exact, either.
    doubt = 1 + F.lit(1.57) / F.col("weeks")
    away = _root(F.col("value")) - _root(F.col("usual"))
    square = away * away / (_chance() * varies * doubt)
    score = F.signum(away) * F.sqrt(free * F.ln(1 + square / free)) * (8 * free + 1) / (8 * free + 3)
    # A mean of floats depends on the order that an engine happens to add them in.
    return F.floor(score * _PLACES + 0.5) / _PLACES


def _root(count: Column) -> Column:
    return 2 * F.sqrt(count + F.lit(0.375))


def _chance() -> Column:
    """The variance of the root that is not the principal's doing."""
    return 1 + F.col("usual") / 100


def _by_metric(frame: DataFrame, keys: Sequence[str], value: Callable[[str], Column]) -> DataFrame:
    """A row for each metric, with its ``value``."""
    each = F.explode(
        F.array(*(F.struct(F.lit(name).alias("metric"), value(name).alias("value")) for name in METRICS))
    )
    return frame.select(*keys, each.alias("one")).select(
        *keys, F.col("one.metric").alias("metric"), F.col("one.value").alias("value")
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
    """The hour of the week, 0 to 167. Weeks begin with a Thursday, as the epoch does."""
    return F.pmod(F.floor(F.unix_seconds(hour) / 3600), F.lit(_HOURS_OF_WEEK))


def _weeks(began: str, slot: str, begin: datetime) -> Column:
    """How often the hour of the week came between the principal's first hour and ``begin``."""
    hours = F.floor((F.unix_seconds(F.lit(begin)) - F.unix_seconds(began)) / 3600)
    offset = F.pmod(F.col(slot) - _slot(began), F.lit(_HOURS_OF_WEEK))
    return F.when(hours > offset, F.floor((hours - 1 - offset) / _HOURS_OF_WEEK) + 1).otherwise(0).cast("int")


def _with_zeros(values: str) -> Column:
    """The values of each week: those of weeks without a record are 0."""
    missing = F.col("weeks") - F.size(values)
    return F.concat(values, F.array_repeat(F.lit(0).cast("bigint"), missing))


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
        .agg(F.sum("messages").alias("messages"), hour_of(F.min("window_start")).alias("hour"))
        .withColumn("what", F.lit("never seen before"))
    )
    return _said(strangers, "principal").unionByName(_said(routes.join(known, [*_WHO], "left_semi"), "route"))


def _routes(usage: DataFrame) -> DataFrame:
    """Who did what with which exchange or queue, from which hour on. ``*`` stands for ids in names."""
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
        .agg(F.sum("messages").alias("messages"), hour_of(F.min("first")).alias("hour"))
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
