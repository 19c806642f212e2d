"""Records to the graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.jobs import topology as job
from amqpgate.pipeline.jobs.graph import Topology
from amqpgate.pipeline.jobs.topology import declarations, refused, topology
from amqpgate.pipeline.reading import schema
from amqpgate.records import Event, Usage
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, event, table_of, usage


def told(spark: SparkSession, usages: Sequence[Usage] = (), events: Sequence[Event] = ()) -> Topology:
    def frame(sort: str, records: Sequence[Usage] | Sequence[Event]) -> DataFrame:
        return spark.createDataFrame(table_of(sort, records), schema(sort))  # type: ignore[arg-type]

    return topology(frame("usage", usages), frame("events", events))


def edges(found: Topology) -> list[tuple[str, str, str, int, tuple[str, ...]]]:
    return [(one.kind, one.source.name, one.target.name, one.messages, one.keys) for one in found.edges]


def changed(operation: str, minute: int = 0, **columns: object) -> Event:
    """The topology changed by alice."""
    return event(
        "id", "topology", START + timedelta(minutes=minute), vhost="/", operation=operation, **columns
    )


def test_messages_are_edges(spark: SparkSession) -> None:
    got = {"verdict": None, "rule": None}
    found = told(
        spark,
        [
            usage("id", START, 3, user="shop", exchange="orders", routing_key="order.1"),
            usage("id", START, 4, user="shop", exchange="orders", routing_key="order.2"),
            usage("id", START, 9, user="shop", exchange="secret", verdict="deny", rule="none"),
            usage("id", START, 2, user="shop", exchange="", routing_key="reply-4711"),
            usage("id", START, 2, user="shop", exchange="", routing_key="reply-4712"),
            *(
                usage(
                    "id",
                    START,
                    7,
                    user="billing",
                    operation=operation,
                    exchange="orders",
                    routing_key=f"order.{number}.x",
                    queue=f"b.{number}",
                    **got,
                )
                for number, operation in ((1234, "basic.deliver"), (1235, "basic.get-ok"))
            ),
            usage("id", START, 0, user="idle", operation="basic.consume", exchange=None, queue="b.1236"),
        ],
    )
    assert edges(found) == [
        ("publishes", "shop", "orders", 7, ()),
        ("publishes", "shop", "reply-*", 4, ()),
        ("routes", "orders", "b.*", 14, ("order.*.x",)),
        ("delivers", "b.*", "billing", 14, ()),
        ("reads", "b.*", "idle", 0, ()),
    ]


def test_what_was_declared_last_is_there(spark: SparkSession) -> None:
    kept = {"exchange": "kept", "queue": "q"}
    found = told(
        spark,
        events=[
            changed("exchange.declare", exchange="kept", detail=json.dumps({"type": "topic"})),
            changed("exchange.declare", exchange="gone"),
            changed("exchange.delete", 1, exchange="gone"),
            changed("queue.declare", queue="q", arguments=json.dumps({"x-dead-letter-exchange": "dlx"})),
            changed("queue.declare", queue="own", detail=json.dumps({"exclusive": True})),
            changed("queue.declare", queue="gone"),
            changed("queue.bind", routing_key="a.*", **kept),
            changed("queue.bind", routing_key="b", **kept),
            changed("queue.unbind", 1, routing_key="b", **kept),
            changed("queue.bind", 1, routing_key="c", exchange="kept", queue="gone"),
            changed("queue.delete", 2, queue="gone"),
            # One of two alike is deleted: the other stays, with its binding.
            *(changed("queue.declare", queue=f"job.{number}") for number in (4711, 4712, 4713)),
            *(
                changed("queue.bind", exchange="kept", queue=f"job.{number}", routing_key="j")
                for number in (4711, 4712, 4713)
            ),
            changed("queue.delete", 2, queue="job.4711"),
            changed("exchange.bind", exchange="kept", destination="fed", routing_key="#"),
            event("id", "session.open", START),
        ],
    )
    assert sorted((one.node.name, one.type, one.is_fleeting) for one in found.declared) == [
        ("job.*", None, False),
        ("kept", "topic", False),
        ("own", None, True),
        ("q", None, False),
    ]
    assert sorted(edges(found)) == [
        ("bound", "kept", "job.*", 0, ("j",)),
        ("bound", "kept", "q", 0, ("a.*",)),
        ("dead-letters", "q", "dlx", 0, ()),
        ("fed", "kept", "fed", 0, ("#",)),
    ]
    assert sorted((one.target.name, one.key) for one in found.bindings) == [
        ("fed", "#"),
        ("job.*", "j"),
        ("q", "a.*"),
    ]


def test_times_are_those_of_the_records(spark: SparkSession) -> None:
    (one,) = told(spark, [usage("id", START, exchange="x")]).edges
    assert one.last == START + timedelta(seconds=10)


def test_messages_have_a_first_and_a_last(spark: SparkSession) -> None:
    found = told(spark, [usage("id", START + timedelta(minutes=minute), exchange="x") for minute in (1, 2)])
    assert (found.first, found.last) == (START + timedelta(minutes=1), START + timedelta(seconds=130))
    assert found.seconds == 70


def test_who_was_denied_what(spark: SparkSession) -> None:
    shop = {"user": "shop", "vhost": "/", "policy": "p", "verdict": "deny"}
    events = [
        event(
            "id", "denied", START, operation="basic.publish", exchange="x", routing_key="k", rule="a", **shop
        ),
        *(
            event(
                "id",
                "denied",
                START + timedelta(minutes=number),
                operation="basic.publish",
                exchange="x",
                routing_key=f"job.471{number}",
                rule="b",
                **shop,
            )
            for number in (1, 2)
        ),
        event("id", "denied", START, operation="basic.consume", queue="q.4711", rule="a", **shop),
        event("id", "denied", START, operation="connection.open", rule="a", **shop),
        event("id", "denied", START, vhost="/", operation="queue.bind", exchange="y", queue="q"),
        event("id", "denied", START, vhost="/", operation="basic.publish", exchange="", routing_key="q"),
    ]
    found, left_out = refused(spark.createDataFrame(table_of("events", events), schema("events")))
    assert left_out == 0
    assert sorted(
        (one.source.name, one.target.name, one.times, one.by, sorted(one.keys)) for one in found
    ) == [
        ("(unknown)", "q", 1, "the broker", ["q"]),
        ("(unknown)", "y", 1, "the broker", []),
        ("q.*", "shop", 1, "p/a", []),
        ("shop", "x", 3, "p/b", ["job.*", "k"]),
    ]
    assert found[0].times == 3


def test_what_there_is_no_room_for_is_counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MAX_EDGES", 2)
    found = told(spark, [usage("id", START, number, exchange=f"x{number}") for number in range(1, 6)])
    assert [one.messages for one in found.edges] == [4, 5]
    assert found.left_out == 3


def test_of_one_microsecond_the_later_id_is_later(plans: Plans) -> None:
    """Whichever file comes first."""
    events = [
        event("g-2", "topology", START, vhost="/", operation="queue.delete", queue="q"),
        event("g-1", "topology", START, vhost="/", operation="queue.declare", queue="q"),
    ]
    for order in (events, events[::-1]):
        (row,) = plans.rows(declarations, "events", order)
        assert row.is_there is False
