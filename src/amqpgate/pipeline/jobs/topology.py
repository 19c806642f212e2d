"""Topology: records to the graph of who sends what to whom (`graph`).

Messages come from usage, what was declared from events. Names and keys that differ only by ids are one
(`names`, `templates`), and of traffic and of declarations at most `MAX_EDGES` rows come to this process:
those with the most messages, and the latest. How many do not is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from amqpgate.pipeline.frames import F, with_columns
from amqpgate.pipeline.jobs import names, templates
from amqpgate.pipeline.jobs.graph import (
    Declared,
    DeniedEdge,
    Edge,
    Node,
    NodeKind,
    ReplayedBinding,
    Topology,
    merged,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame, Row

#: Rows of traffic, and of declared things, that one process takes.
MAX_EDGES: Final = 20_000

#: The columns of `traffic` and of `declarations`.
TRAFFIC_SCHEMA: Final = (
    "user string, vhost string, operation string, exchange string, queue string, key string, "
    "messages bigint, bytes bigint, first timestamp, last timestamp"
)
DECLARATIONS_SCHEMA: Final = (
    "vhost string, thing string, exchange string, queue string, destination string, routing_key string, "
    "last timestamp, is_there boolean, type string, is_fleeting boolean, dead_letters_to string, "
    "alternate string"
)

#: What stands for a piece that differs.
_ANY: Final = "*"
#: Names and keys of which it is remembered what they are folded to: one record of many has another.
_MOST_FOLDED: Final = 1 << 15

_MESSAGES: Final = ("basic.publish", "basic.deliver", "basic.get-ok", "basic.consume", "basic.get")
_MAKES: Final = ("exchange.declare", "queue.declare", "queue.bind", "exchange.bind")
_ENDS: Final = ("exchange.delete", "queue.delete", "queue.unbind", "exchange.unbind")

#: What is one thing: its names; a binding its arguments as well.
_THING: Final = ("vhost", "thing", "exchange", "queue", "destination", "routing_key")


def topology(usage: DataFrame, events: DataFrame) -> Topology:
    """The graph of what is in the records."""
    rows, left_out = _most(traffic(usage))
    edges = [edge for row in rows for edge in _edges_of(row)]
    things, more = _most(declarations(events))
    declared: dict[Node, Declared] = {}
    bindings: dict[tuple[Node, Node, str], ReplayedBinding] = {}
    for row in _still_there(things):
        if row.thing == "binding":
            binding = _binding(row)
            bindings.setdefault((binding.source, binding.target, binding.key), binding)
        else:
            node = _node(row.thing, row)
            one = Declared(node=node, last=_time(row.last), type=row.type, is_fleeting=row.is_fleeting)
            declared.setdefault(node, one)
            edges += _leads(row)
    edges += [
        Edge(
            kind="bound" if one.target.kind == "queue" else "fed",
            source=one.source,
            target=one.target,
            keys=(one.key,),
            last=one.last,
        )
        for one in bindings.values()
    ]
    return Topology(
        merged(edges),
        tuple(declared.values()),
        tuple(bindings.values()),
        left_out + more,
        min((_time(row.first) for row in rows), default=None),
        max((_time(row.last) for row in rows), default=None),
    )


def _still_there(things: list[Row]) -> Iterator[Row]:
    """Without what was deleted, and without the bindings that went with that."""
    gone = {
        (row.vhost, row.thing, row[row.thing]): row.last
        for row in things
        if row.thing != "binding" and not row.is_there
    }
    for row in things:
        ends = [("exchange", row.exchange), ("queue", row.queue), ("exchange", row.destination)]
        lost = [gone.get((row.vhost, *end)) for end in ends] if row.thing == "binding" else []
        if row.is_there and not any(time is not None and time > row.last for time in lost):
            yield row


def _most(frame: DataFrame) -> tuple[list[Row], int]:
    """The first `MAX_EDGES` rows, and how many more there are."""
    rows = frame.limit(MAX_EDGES + 1).collect()
    return rows[:MAX_EDGES], frame.count() - MAX_EDGES if len(rows) > MAX_EDGES else 0


def traffic(usage: DataFrame) -> DataFrame:
    """Messages and readers by who, where and which key, the most messages first.

    Columns: user, vhost, operation, exchange, queue, key, messages, bytes, first, last. Of publishes,
    key is null, or the queue's name where the default exchange takes it. ``*`` stands for ids in names and
    keys.
    """
    passed = usage.where(
        F.col("operation").isin(*_MESSAGES) & (F.coalesce("verdict", F.lit("allow")) == "allow")
    )
    # Which keys a client used is what its bindings tell apart, and those are on the way out.
    counts_key = (F.col("operation") != "basic.publish") | (F.col("exchange") == "")
    distinct = (
        passed.withColumn("routing_key", F.when(counts_key, F.col("routing_key")))
        .groupBy("user", "vhost", "operation", "exchange", "queue", "routing_key")
        .agg(*_sums())
    )
    return (
        with_columns(distinct, _folding, {"key": "string", "name": "string"})
        .groupBy("user", "vhost", "operation", "exchange", F.col("name").alias("queue"), "key")
        .agg(*_sums())
        .orderBy(F.desc("messages"), "vhost", "user", "operation", "exchange", "queue", "key")
    )


def _sums() -> list[Column]:
    return [
        F.sum("messages").alias("messages"),
        F.sum("bytes").alias("bytes"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
    ]


def _folding(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Adds keys and queues with ``*`` for ids."""
    import pyarrow

    for batch in batches:
        operations, routing_keys, names_ = (
            batch.column(name).to_pylist() for name in ("operation", "routing_key", "queue")
        )
        keys = [
            None if key is None else folded_name(key) if operation == "basic.publish" else folded_key(key)
            for operation, key in zip(operations, routing_keys, strict=True)
        ]
        queues = [None if name is None else folded_name(name) for name in names_]
        yield pyarrow.RecordBatch.from_arrays(
            [*batch.columns, pyarrow.array(keys, pyarrow.string()), pyarrow.array(queues, pyarrow.string())],
            names=[*batch.schema.names, "key", "name"],
        )


@lru_cache(_MOST_FOLDED)
def folded_key(key: str) -> str:
    """The key with ``*`` for each word that looks like an id."""
    return templates.without_ids(key, _ANY)


@lru_cache(_MOST_FOLDED)
def folded_name(name: str) -> str:
    """The name with ``*`` for each piece that looks like an id."""
    return names.without_ids(name, _ANY)


def declarations(events: DataFrame) -> DataFrame:
    """Each exchange, queue and binding with what happened to it last, the latest first.

    Columns: vhost, thing (``exchange``, ``queue``, ``binding``), its names, last, is_there, type,
    is_fleeting, and where its arguments lead (dead_letters_to, alternate).
    """
    changes = events.where((F.col("kind") == "topology") & F.col("operation").isin(*_MAKES, *_ENDS))
    thing = F.when(F.col("operation").isin("queue.declare", "queue.delete"), "queue").when(
        F.col("operation").isin("exchange.declare", "exchange.delete"), "exchange"
    )
    said = F.struct(
        F.col("operation").isin(*_MAKES).alias("is_there"),
        F.get_json_object("detail", "$.type").alias("type"),
        *(
            (F.get_json_object("detail", f"$.{name}") == "true").alias(name)
            for name in ("auto_delete", "exclusive")
        ),
        F.get_json_object("arguments", "$['x-dead-letter-exchange']").alias("dead_letters_to"),
        F.get_json_object("arguments", "$['alternate-exchange']").alias("alternate"),
    )
    latest = (
        changes.withColumn("thing", F.coalesce(thing, F.lit("binding")))
        .groupBy(*_THING, F.when(F.col("operation").endswith("bind"), F.col("arguments")).alias("with"))
        .agg(F.max_by(said, _moment()).alias("said"), F.max("time").alias("last"))
    )
    return latest.select(
        *_THING,
        "last",
        F.col("said.is_there").alias("is_there"),
        F.col("said.type").alias("type"),
        F.coalesce(F.col("said.auto_delete") | F.col("said.exclusive"), F.lit(False)).alias("is_fleeting"),
        F.col("said.dead_letters_to").alias("dead_letters_to"),
        F.col("said.alternate").alias("alternate"),
    ).orderBy(F.desc("last"), *_THING)


def _moment() -> Column:
    """When an event was. Those of one microsecond are in the order of their ids, which rise."""
    return F.struct("time", "record_id")


# -- rows to nodes and edges -----------------------------------------------------------------


def _time(value: datetime) -> datetime:
    """Spark hands times out in the time zone of this process."""
    return value.astimezone(UTC)


def refused(events: DataFrame) -> tuple[tuple[DeniedEdge, ...], int]:
    """Who was denied what, the most often first, and how many rows there was no room for.

    Denials of what has neither an exchange nor a queue, as of a connection, lead nowhere and are not there.
    """
    rows, left_out = _most(
        events.where(F.col("kind") == "denied")
        .groupBy("user", "vhost", "operation", "exchange", "queue", "destination", "routing_key")
        .agg(
            F.count("*").alias("times"),
            F.max_by(F.struct("policy", "rule"), _moment()).alias("by"),
            F.max("time").alias("last"),
        )
        .orderBy(
            *(F.desc("times"), F.desc("last")),
            *("user", "vhost", "operation", "exchange", "queue", "destination", "routing_key"),
        )
    )
    found: dict[tuple[Node, Node], DeniedEdge] = {}
    for row in rows:
        if (edge := _denied(row)) is not None:
            key = edge.source, edge.target
            found[key] = found[key] | edge if key in found else edge
    return tuple(sorted(found.values(), key=lambda one: -one.times)), left_out


def _denied(row: Row) -> DeniedEdge | None:
    vhost = row.vhost or ""
    queue = next((name for name in (row.queue, row.destination, row.routing_key) if name is not None), None)
    if row.exchange:
        what = Node("exchange", vhost, row.exchange)
    elif queue is not None:
        what = Node("queue", vhost, folded_name(queue))
    else:
        return None
    somebody = Node("principal", vhost, row.user if row.user is not None else "(unknown)")
    is_read = row.operation in ("basic.consume", "basic.get")
    policy, rule = row.by["policy"], row.by["rule"]
    return DeniedEdge(
        source=what if is_read else somebody,
        target=somebody if is_read else what,
        times=row.times,
        # Where neither denied it the broker did (`denials`).
        by=f"{policy}/{rule}" if policy is not None else "no rule" if rule is not None else "the broker",
        last=_time(row.last),
        keys=(folded_key(row.routing_key),) if row.routing_key else (),
    )


def _node(kind: NodeKind, row: Row) -> Node:
    return Node(kind, row.vhost or "", folded_name(row[kind]) if kind == "queue" else row[kind] or "")


def _edges_of(row: Row) -> Iterator[Edge]:
    vhost = row.vhost or ""
    somebody = Node("principal", vhost, row.user if row.user is not None else "(unknown)")
    last = _time(row.last)
    queue = Node("queue", vhost, row.queue) if row.queue is not None else None
    if row.operation == "basic.publish":
        to_queue = row.exchange == "" and row.key is not None
        target = Node("queue", vhost, row.key) if to_queue else Node("exchange", vhost, row.exchange or "")
        yield Edge(
            kind="publishes",
            source=somebody,
            target=target,
            messages=row.messages,
            bytes=row.bytes,
            last=last,
        )
    elif queue is not None and row.operation in ("basic.consume", "basic.get"):
        yield Edge(kind="reads", source=queue, target=somebody, last=last)
    elif queue is not None:
        counts = {"messages": row.messages, "bytes": row.bytes}
        yield Edge(kind="delivers", source=queue, target=somebody, last=last, **counts)
        if row.exchange:
            keys = (row.key,) if row.key is not None else ()
            exchange = Node("exchange", vhost, row.exchange)
            yield Edge(kind="routes", source=exchange, target=queue, keys=keys, last=last, **counts)


def _binding(row: Row) -> ReplayedBinding:
    source = Node("exchange", row.vhost or "", row.exchange or "")
    if row.destination is not None:
        target = Node("exchange", row.vhost or "", row.destination)
    else:
        target = _node("queue", row)
    return ReplayedBinding(source=source, target=target, key=row.routing_key or "", last=_time(row.last))


def _leads(row: Row) -> Iterator[Edge]:
    """Where the arguments of a declare send messages on to; not by the default exchange, to any queue."""
    if row.thing == "queue" and row.dead_letters_to:
        target = Node("exchange", row.vhost or "", row.dead_letters_to)
        yield Edge(kind="dead-letters", source=_node("queue", row), target=target, last=_time(row.last))
    if row.thing == "exchange" and row.alternate:
        target = Node("exchange", row.vhost or "", row.alternate)
        yield Edge(kind="alternate", source=_node("exchange", row), target=target, last=_time(row.last))
