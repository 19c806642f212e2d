"""Replay: what a candidate would have answered, asked of the gateway's own evaluator."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.jobs.judge import Judge, columns_asked
from amqpgate.pipeline.jobs.replay import changes, replay, summary, undecided
from amqpgate.pipeline.reading import schema
from amqpgate.policy import Source, build
from amqpgate.records import Usage
from tests.support.audit_records import START, table_of, usage
from tests.unit.policy.build_set import document

ORDERS = document(
    "id: orders, effect: allow, operations: [basic.publish], exchange: orders, "
    "routingKey: {topic: 'order.#'}",
    "id: no-refunds, effect: deny, operations: [basic.publish], routingKey: {topic: 'order.*.refunded'}",
    "id: queues, effect: allow, operations: ['queue.*'], queue: {prefix: 'bob.'}",
)


def sources(*documents: str) -> list[Source]:
    """A folder of one file."""
    return [Source("p.yaml", "---\n".join(documents).encode())]


def record(**columns: object) -> Usage:
    """A publish of bob's to `orders`, allowed, unless said otherwise."""
    given = {"user": "bob", "vhost": "prod", "exchange": "orders", "routing_key": "order.1.created"} | columns
    return usage("id", START, **given)  # type: ignore[arg-type]


def frame(spark: SparkSession, records: Sequence[Usage]) -> DataFrame:
    return spark.createDataFrame(table_of("usage", records), schema("usage"))


def answer(policy: str, /, **columns: object) -> tuple[str, str]:
    """Outcome and rule."""
    row = table_of("usage", [record(**columns)]).to_pylist()[0]
    said = Judge(build(sources(policy))).answer(row)
    return said.outcome, said.rule


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ("allow", "orders")),
        ({"routing_key": "order.1.refunded"}, ("deny", "no-refunds")),
        ({"exchange": "x"}, ("deny", "default")),
        ({"user": "eve"}, ("allow", "default")),
        # A template is allowed where every key of it is, denied where none is.
        ({"routing_key": "order.*.paid", "routing_key_is_template": True}, ("allow", "orders")),
        ({"routing_key": "order.*.refunded", "routing_key_is_template": True}, ("deny", "no-refunds")),
        ({"routing_key": "order.*.*", "routing_key_is_template": True}, ("depends", "no-refunds")),
        ({"routing_key": "*.paid", "routing_key_is_template": True}, ("depends", "default")),
        ({"routing_key": "mail.*", "routing_key_is_template": True}, ("deny", "default")),
        (
            {"operation": "queue.declare", "exchange": None, "routing_key": None, "queue": ""},
            ("deny", "default"),
        ),
        (
            {"operation": "queue.declare", "exchange": None, "routing_key": None, "queue": "bob.in"},
            ("allow", "queues"),
        ),
        # What a queue leads to must be allowed as well; of a passive declare arguments do not count.
        *(
            (
                {
                    "operation": "queue.declare",
                    "exchange": None,
                    "routing_key": None,
                    "queue": "bob.in",
                    "arguments": json.dumps({"x-dead-letter-exchange": "theirs"}),
                    "passive": passive,
                },
                expected,
            )
            for passive, expected in ((False, ("deny", "no-refunds")), (True, ("allow", "queues")))
        ),
    ],
)
def test_answers_as_the_gateway_does(columns: dict[str, object], expected: tuple[str, str]) -> None:
    assert answer(ORDERS, **columns) == expected


def test_what_the_message_decides_is_not_known() -> None:
    small = document(
        "effect: allow, operations: [basic.publish], exchange: orders, properties: {maxBodyBytes: 10}",
        "effect: allow, operations: [basic.publish], exchange: logs",
    )
    assert answer(small) == ("depends", "r0")
    assert answer(small, exchange="logs") == ("allow", "r1")
    assert answer(small, exchange="x") == ("deny", "default")


def test_what_these_policies_refused_they_refused_for_the_message() -> None:
    digest = build(sources(ORDERS)).digest
    assert answer(ORDERS, verdict="deny", policy_digest=digest) == ("depends", "orders")
    assert answer(ORDERS, verdict="deny", policy_digest="other") == ("allow", "orders")


def test_what_these_policies_refused_they_refused_for_arguments_that_are_not_recorded() -> None:
    """Of a name that stands twice, records have the first."""
    digest = build(sources(ORDERS)).digest
    declare: dict[str, object] = {
        "operation": "queue.declare",
        "exchange": None,
        "routing_key": None,
        "queue": "bob.in",
        "verdict": "deny",
        "policy_digest": digest,
    }
    assert answer(ORDERS, **declare, arguments=json.dumps({"x": 1})) == ("depends", "queues")
    assert answer(ORDERS, **declare) == ("allow", "queues")


def test_what_a_limit_refused_is_not_known() -> None:
    limit = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: RatePolicy\nmetadata: {name: fair}\nspec:\n"
        "  subjects: [{user: '*'}]\n  limits: [{id: some, messages: 10/s, action: reject}]\n"
    )
    refused = {"verdict": "deny", "policy": "fair", "rule": "some"}
    assert answer(f"{ORDERS}---\n{limit}", **refused) == ("depends", "orders")
    assert answer(ORDERS, **refused) == ("allow", "orders")


@pytest.mark.parametrize(
    ("subjects", "rule", "expected"),
    [
        ("{user: bob}", "exchange: x", ("user", "vhost")),
        ("{user: bob, sourceCIDR: [10.0.0.0/8]}", "exchange: x", ("user", "vhost", "source")),
        ("{user: bob}", "exchange: '{sourceIP}'", ("user", "vhost", "source")),
        ("{listeners: [a]}", "exchange: '{user}'", ("user", "vhost", "listener")),
        ("{tls: {commonName: a}, client: {product: a}}", "exchange: x", ("user", "vhost", "tls", "client")),
    ],
)
def test_only_what_policies_ask_for_tells_requests_apart(
    subjects: str, rule: str, expected: tuple[str, ...]
) -> None:
    one = document(f"effect: allow, operations: [basic.publish], {rule}", subjects=subjects)
    assert columns_asked(build(sources(one))) == expected


def test_a_share_of_sessions_needs_the_session() -> None:
    share = document("effect: deny, operations: [basic.publish]").replace(
        "spec:\n", "spec:\n  mode: shadow\n  enforcePercent: 50\n"
    )
    assert columns_asked(build(sources(share))) == ("user", "vhost", "session")
    said = {answer(share, session=f"{number}")[0] for number in range(40)}
    assert said == {"allow", "deny"}


def test_who_asks_is_told_by_certificate_and_properties() -> None:
    rule = "effect: allow, operations: [basic.publish]"
    tls = json.dumps({"subject": "CN=a", "common_name": "a", "names": ["DNS:a"]})
    for subjects in ("{tls: {san: 'DNS:a'}}", "{client: {product: 'pika*'}}", "{sourceCIDR: [10.0.0.0/8]}"):
        policy = document(rule, subjects=subjects)
        client = json.dumps({"product": "pika 1"})
        assert answer(policy, tls=tls, client=client, source="10.1.1.1") == ("allow", "r0")
        assert answer(policy) == ("allow", "default")


# -- on Spark --------------------------------------------------------------------------------


def test_changes_are_counted_by_who_and_by_which_rule(spark: SparkSession) -> None:
    refunded = "order.1.refunded"
    records = [
        *(record(session=str(number), source=f"10.0.0.{number}", messages=2) for number in range(3)),
        record(routing_key=refunded, policy="old", rule="all", messages=5),
        record(routing_key=refunded, policy="old", rule="all", messages=7),
        record(user="eve", routing_key=refunded, messages=9),
        record(routing_key="*.paid", routing_key_is_template=True),
        record(exchange="x", verdict="deny", policy="old", rule="none", messages=4),
        # Nothing was decided of these.
        record(operation="basic.deliver", verdict=None, queue="q"),
        record(routing_key="order.1.transformed", verdict="deny", rule=None),
        record(operation="basic.publish", verdict="allow", vhost=None),
    ]
    replayed = replay(frame(spark, records), sources(ORDERS))
    assert [tuple(row) for row in summary(replayed).collect()] == [
        ("allow", "allow", 15, 15),
        ("allow", "deny", 12, 12),
        ("allow", "depends", 1, 1),
        ("deny", "deny", 4, 4),
    ]
    (change,) = changes(replayed).drop("first", "last").collect()
    assert change.asDict() == {
        "user": "bob",
        "vhost": "prod",
        "operation": "basic.publish",
        "exchange": "orders",
        "routing_key": refunded,
        "more_keys": None,
        "queue": None,
        "destination": None,
        "passive": False,
        "before": "allow",
        "before_policy": "old",
        "before_rule": "all",
        "after": "deny",
        "after_policy": "p",
        "after_rule": "no-refunds",
        "requests": 12,
        "messages": 12,
    }
    assert [row.routing_key for row in undecided(replayed).collect()] == ["*.paid"]


def test_two_candidates_are_compared_with_each_other(spark: SparkSession) -> None:
    records = [record(verdict="deny", rule="x"), record(exchange="x", messages=3)]
    everything = document("id: all, effect: allow, operations: [basic.publish]")
    replayed = replay(frame(spark, records), sources(ORDERS), sources(everything))
    (change,) = changes(replayed).collect()
    assert (change.exchange, change.before_rule, change.after_rule, change.messages) == (
        "x",
        "all",
        "default",
        3,
    )


def test_one_decision_per_distinct_request(spark: SparkSession) -> None:
    """The decisions come after the aggregation, and nothing moves them before it or does them twice."""
    replayed = replay(frame(spark, [record()]), sources(ORDERS))
    plan = changes(replayed)._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    lines = [line.lstrip(" :+-*()0123456789") for line in plan.splitlines()]
    names = [line.partition(" ")[0].partition("(")[0] for line in lines]
    assert names.count("MapInArrow") == 1
    assert "HashAggregate" in names[names.index("MapInArrow") :]
