"""What is refused most, by which rule, to whom, and whether that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from amqpgate.pipeline.frames import F, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The columns of ``denials``. ``times`` says how often, ``principals`` to how many users; ``users`` names
#: those with the most, at most ``MOST_USERS``. ``trend`` has ``times`` of each of ``PARTS`` equal parts of
#: the time from the first to the last event of that kind, the oldest first.
SCHEMA: Final = (
    "policy string, rule string, verdict string, operation string, vhost string, exchange string, "
    "queue string, times bigint, principals bigint, users array<string>, first timestamp, last timestamp, "
    "trend array<bigint>"
)

PARTS: Final = 8
MOST_USERS: Final = 5

_WHAT: Final = ("policy", "rule", "verdict", "operation", "vhost", "exchange", "queue")


def denials(events: DataFrame, kind: Literal["denied", "shadow"] = "denied") -> DataFrame:
    """Events of that kind as ``SCHEMA``: what was refused, or would be by policies in mode shadow.

    The most frequent first. Where neither policy nor rule refused it, the broker did; a rule without
    a policy is the gateway's own: ``default``, ``defaultAccess``, ``transform``.
    """
    chosen = events.filter(F.col("kind") == kind)
    bounds = chosen.agg(F.min("time").alias("begin"), F.max("time").alias("end"))
    by_user = (
        chosen.crossJoin(F.broadcast(bounds))
        .withColumn("part", _part())
        .groupBy(*_WHAT, "user")
        .agg(
            F.count("*").alias("times"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
            *(F.sum((F.col("part") == part).cast("bigint")).alias(f"part{part}") for part in range(PARTS)),
        )
        .withColumn(
            "place", F.row_number().over(Window.partitionBy(*_WHAT).orderBy(F.desc("times"), F.asc("user")))
        )
    )
    users = F.array_sort(F.collect_list(F.when(F.col("place") <= MOST_USERS, F.struct("place", "user"))))
    return (
        by_user.groupBy(*_WHAT)
        .agg(
            F.sum("times").alias("times"),
            F.count("*").alias("principals"),
            F.transform(users, lambda each: each["user"]).alias("users"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.array(*(F.sum(f"part{part}") for part in range(PARTS))).alias("trend"),
        )
        .orderBy(F.desc("times"), *_WHAT)
    )


def _part() -> Column:
    """The part of the time from ``begin`` to ``end`` that an event is in: 0 to ``PARTS - 1``."""
    since = F.unix_micros("time") - F.unix_micros("begin")
    whole = F.unix_micros("end") - F.unix_micros("begin") + 1
    return F.floor(since * PARTS / whole)
