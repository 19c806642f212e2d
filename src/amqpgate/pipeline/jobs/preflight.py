"""Records to the requests that a newer RabbitMQ may take otherwise: who made them, how often, and when.

Declares come from events, as the broker has agreed to them, and connections of old clients. From usage come
basic.qos, queue.delete with conditions, and messages that are larger than RabbitMQ 4 takes. Names that differ
only by ids are one. At most `MOST` rows come to this process: those with the most requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

import attrs

from amqpgate.pipeline.frames import F
from amqpgate.pipeline.jobs.requests import told_in
from amqpgate.pipeline.jobs.topology import folded_name
from amqpgate.policy.tools.preflight import (
    LARGEST_BODY,
    OLD_VERSION,
    SMALLEST_FRAME,
    BrokerRequest,
    Kind,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

#: Rows that one process takes.
MOST: Final = 20_000

#: Of a declare, beside its arguments.
_DETAILS: Final = ("type", "durable", "exclusive", "auto_delete")


@attrs.frozen(kw_only=True)
class Seen:
    """A request, and who made it."""

    request: BrokerRequest
    user: str | None
    times: int
    first: datetime
    last: datetime


@attrs.frozen
class SeenRequests:
    """Those in the records."""

    requests: tuple[Seen, ...]
    #: Rows that were not looked at.
    left_out: int


def seen(
    usage: DataFrame, events: DataFrame, is_quorum: Callable[[str], bool] = lambda _: False
) -> SeenRequests:
    """What clients have declared, and asked for. ``is_quorum``: whether a queue is to be a quorum queue."""
    used = _asked(usage).unionByName(_large(usage), allowMissingColumns=True)
    frame = (
        _declares(events)
        .unionByName(used, allowMissingColumns=True)
        .unionByName(_connections(events), allowMissingColumns=True)
        .orderBy(F.desc("times"), "vhost", "user", "operation", "name", "arguments")
    )
    rows = frame.limit(MOST + 1).collect()
    left_out = frame.count() - MOST if len(rows) > MOST else 0
    found = (_seen(row, is_quorum) for row in rows[:MOST])
    return SeenRequests(tuple(_merged(found)), left_out)


def _declares(events: DataFrame) -> DataFrame:
    made = events.where(
        (F.col("kind") == "topology") & F.col("operation").isin("queue.declare", "exchange.declare")
    )
    return (
        made.select(
            "user",
            "vhost",
            "operation",
            F.coalesce("queue", "exchange").alias("name"),
            "arguments",
            *(F.get_json_object("detail", f"$.{name}").alias(name) for name in _DETAILS),
            "time",
        )
        .groupBy("user", "vhost", "operation", "name", "arguments", *_DETAILS)
        .agg(F.count("*").alias("times"), F.min("time").alias("first"), F.max("time").alias("last"))
    )


def _connections(events: DataFrame) -> DataFrame:
    """Those of which RabbitMQ 4 takes no others of their kind."""
    frame_max = F.get_json_object("detail", "$.frame_max").cast("int")
    opened = events.where(F.col("kind") == "session.open").withColumn("frame_max", frame_max)
    old = opened.where((F.col("amqp_version") == OLD_VERSION) | (F.col("frame_max") < SMALLEST_FRAME))
    columns = ("user", "vhost", "operation", "name", "amqp_version", "frame_max")
    return (
        old.withColumn("name", F.get_json_object("client", "$.product"))
        .withColumn("operation", F.lit("connection.open"))
        .groupBy(*columns)
        .agg(F.count("*").alias("times"), F.min("time").alias("first"), F.max("time").alias("last"))
    )


def _asked(usage: DataFrame) -> DataFrame:
    is_global = F.get_json_object("arguments", "$.global") == "true"
    asked = usage.where(
        ((F.col("operation") == "basic.qos") & is_global)
        | ((F.col("operation") == "queue.delete") & F.col("arguments").isNotNull())
    )
    return (
        asked.groupBy("user", "vhost", "operation", F.col("queue").alias("name"), "arguments")
        .agg(F.sum("requests").alias("times"), F.min("first").alias("first"), F.max("last").alias("last"))
    )  # fmt: skip


def _large(usage: DataFrame) -> DataFrame:
    """Messages that passed, where one was too large; how many were so is not recorded."""
    large = usage.where((F.col("operation") == "basic.publish") & (F.col("largest_body") > LARGEST_BODY))
    return (
        large.groupBy("user", "vhost", "operation", F.col("exchange").alias("name"))
        .agg(
            F.count("*").alias("times"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.max("largest_body").alias("largest_body"),
        )
    )  # fmt: skip


def _seen(row: Row, is_quorum: Callable[[str], bool]) -> Seen:
    kind = cast(Kind, row.operation)
    name = row["name"] or ""
    return Seen(
        request=BrokerRequest(
            kind=kind,
            vhost=row.vhost or "",
            name=folded_name(name) if kind.startswith("queue.") else name,
            durable=row.durable == "true",
            exclusive=row.exclusive == "true",
            type=row.type or "",
            auto_delete=row.auto_delete == "true",
            is_global=kind == "basic.qos",
            is_conditional=kind == "queue.delete",
            largest_body=row.largest_body or 0,
            amqp_version=row.amqp_version or "",
            frame_max=row.frame_max or 0,
            becomes_quorum=kind.startswith("queue.") and is_quorum(name),
            arguments=told_in(row.arguments or "{}") or {},
        ),
        user=row.user,
        times=row.times,
        # Spark hands times out in the time zone of this process.
        first=row.first.astimezone(UTC),
        last=row.last.astimezone(UTC),
    )


def _merged(found: Iterator[Seen]) -> Iterator[Seen]:
    """One for each request of a user, whatever ids were in its name."""
    known: dict[tuple[str | None, str], Seen] = {}
    for one in found:
        key = one.user, json.dumps(attrs.asdict(one.request), sort_keys=True, default=str)
        before = known.get(key)
        known[key] = one if before is None else attrs.evolve(
            before,
            times=before.times + one.times,
            first=min(before.first, one.first),
            last=max(before.last, one.last),
        )  # fmt: skip
    yield from known.values()
