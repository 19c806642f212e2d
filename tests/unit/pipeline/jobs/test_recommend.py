"""Recommend: records to policies that allow just this, and what is granted and not used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.jobs import recommend as job
from amqpgate.pipeline.jobs.recommend import folded, granted, names_of, recommend
from amqpgate.pipeline.jobs.recommendation import Recommendation
from amqpgate.pipeline.jobs.replay import replay, summary
from amqpgate.pipeline.reading import schema
from amqpgate.policy import Source
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from amqpgate.records import Usage
from tests.support.audit_records import START, Traffic, table_of, usage
from tests.unit.policy.build_set import document

UUIDS = ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "00000000-0000-4000-8000-000000000001"]


def frame(spark: SparkSession, records: Sequence[Usage]) -> DataFrame:
    return spark.createDataFrame(table_of("usage", records), schema("usage"))


def method(operation: str, **columns: object) -> Usage:
    """A method of alice's; it carries no message."""
    given = {"operation": operation, "exchange": None, "requests": 1, "messages": 0, "bytes": 0} | columns
    return usage("id", START, **given)  # type: ignore[arg-type]


def rules(found: Recommendation) -> list[str]:
    """The lines of the rules and the notes beside them."""
    lines = [line for file in found.files for line in file.data.decode().splitlines()]
    return [line.strip().removeprefix("- ") for line in lines if line.startswith(("  - ", "  # needed"))]


def test_keys_and_names_are_folded_where_the_records_are(spark: SparkSession) -> None:
    records = [
        *(
            usage("id", START, exchange="orders", routing_key=f"order.{number}.created")
            for number in range(50)
        ),
        *(usage("id", START, exchange="", routing_key=f"reply-{uuid}") for uuid in UUIDS),
        *(method("queue.declare", queue=f"job.{number}.in") for number in range(1000, 1050)),
        method("queue.declare", queue=""),
        *(
            method("queue.bind", queue="amq.gen-abc", exchange="orders", routing_key=f"order.{number}.#")
            for number in range(20)
        ),
        method("queue.bind", queue="amq.gen-def", exchange="orders", routing_key="mail.*"),
        # Not allowed, not decided, or free.
        usage("id", START, exchange="secret", verdict="deny"),
        usage("id", START, operation="basic.deliver", queue="q", verdict=None),
        method("basic.qos"),
    ]
    seen = frame(spark, records)
    assert folded(seen).count() == 6
    assert rules(recommend(seen)) == [
        '{id: publish-to-queue, effect: allow, operations: [basic.publish], exchange: "", '
        'routingKey: {regex: "reply\\\\-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-'
        '[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"}}',
        "{id: publish-orders, effect: allow, operations: [basic.publish], exchange: orders, "
        r'routingKey: {regex: "order\\.[0-9]+\\.created"}}',
        "{id: queue-own, effect: allow, operations: [queue.declare, queue.bind], "
        'queue: {prefix: "amq.gen-"}, bindTo: [{exchange: orders, routingKey: "mail.*"}, '
        r'{exchange: orders, routingKey: {search: "\\Aorder\\.[0-9]+\\.#\\z"}}]}',
        r"{id: queue-job.number.in, effect: allow, operations: [queue.declare], "
        r'queue: {regex: "job\\.[0-9]+\\.in"}}',
    ]


def test_where_dead_letters_go_is_allowed_as_well(spark: SparkSession) -> None:
    dead = {"x-dead-letter-exchange": "dlx", "x-message-ttl": 1}
    keyed = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graveyard"}
    records = [
        method("queue.declare", queue="a", arguments=json.dumps(dead)),
        method("queue.declare", queue="b", arguments=json.dumps(keyed)),
        method(
            "queue.declare", queue="c", arguments=json.dumps({"x-dead-letter-exchange": ""}), passive=True
        ),
        method("exchange.declare", exchange="e", arguments=json.dumps({"alternate-exchange": "rest"})),
    ]
    assert rules(recommend(frame(spark, records)))[:6] == [
        "# needed for dead letters of queue b",
        '{id: publish-to-queue, effect: allow, operations: [basic.publish], exchange: "", '
        "routingKey: graveyard}",
        "# needed for dead letters of queue a",
        "{id: publish-dlx, effect: allow, operations: [basic.publish], exchange: dlx, "
        'routingKey: {topic: "#"}}',
        "# needed for what exchange e cannot route",
        "{id: publish-rest, effect: allow, operations: [basic.publish], exchange: rest, "
        'routingKey: {topic: "#"}}',
    ]


def test_further_keys_are_allowed_as_well(spark: SparkSession) -> None:
    more = [json.dumps([f"copy.{number}", "log"]) for number in range(20)]
    seen = frame(
        spark,
        [
            *(usage("id", START, 2, exchange="x", routing_key="a", more_keys=keys) for keys in more),
            usage("id", START, exchange="", routing_key="jobs", more_keys='["jobs.copy"]'),
        ],
    )
    found = recommend(seen)
    assert found.notes == ()
    assert rules(found) == [
        '{id: publish-to-queue, effect: allow, operations: [basic.publish], exchange: "", routingKey: jobs}',
        "# needed for routing keys in CC and BCC",
        '{id: "publish-to-queue-2", effect: allow, operations: [basic.publish], exchange: "", '
        "routingKey: jobs.copy}",
        "{id: publish-x, effect: allow, operations: [basic.publish], exchange: x, routingKey: a}",
        "# needed for routing keys in CC and BCC",
        '{id: "publish-x-2", effect: allow, operations: [basic.publish], exchange: x, routingKey: '
        r'{regex: "copy\\.[0-9]+"}}',
        "# needed for routing keys in CC and BCC",
        '{id: "publish-x-3", effect: allow, operations: [basic.publish], exchange: x, routingKey: log}',
    ]
    assert [(row.before, row.after) for row in summary(replay(seen, found.files)).collect()] == [
        ("allow", "allow")
    ]
    used = {row.rule: row.requests for row in granted(seen, found.files).collect()}
    assert used["publish-x"] == used["publish-x-2"] == used["publish-x-3"] == 40
    assert used["publish-to-queue-2"] == 1


def test_further_keys_that_are_not_known_are_noted(spark: SparkSession) -> None:
    records = [
        usage("id", START, 3, exchange="x", routing_key="a", more_keys='["b",null]'),
        usage(
            "id", START, 4, exchange="x", routing_key="#", routing_key_is_template=True, more_keys="[null]"
        ),
        usage("id", START, 5, user="bob", exchange="x", routing_key="a", more_keys="[null]"),
        usage("id", START, 9, user="eve", exchange="x", routing_key="a"),
        usage("id", START, 2, user=None, exchange="x", routing_key="a", more_keys='["b"]'),
    ]
    seen = frame(spark, records)
    found = recommend(seen)
    assert found.notes == (
        "2 requests are left out: the gateway did not know their user, and a policy that allows them would "
        "be one for everybody",
        "12 messages had more routing keys in CC and BCC than the records tell, of users 'alice', 'bob': "
        "what is recommended may deny them",
    )
    answers = [(row.before, row.after, row.messages) for row in summary(replay(seen, found.files)).collect()]
    assert answers == [("allow", "allow", 9), ("allow", "deny", 2), ("allow", "depends", 12)]
    assert names_of(list("abc"), 2) == "'a', 'b' and 1 others"


def test_its_own_replay_denies_nothing(spark: SparkSession) -> None:
    """And ``policy check`` finds nothing wrong with it; what was refused stays so."""
    generated = spark.createDataFrame(Traffic(services=6).usage(3000), schema("usage"))
    refused = [
        usage("id", START, user="service-1", vhost="shop", exchange="payments", verdict="deny", rule="none")
    ]
    seen = generated.unionByName(frame(spark, refused))
    found = recommend(seen)
    assert len(found.files) == 1
    assert [one for one in findings(documents_of(found.files)) if one.level == "problem"] == []
    counts = {(row.before, row.after): row.messages for row in summary(replay(seen, found.files)).collect()}
    assert set(counts) == {("allow", "allow"), ("deny", "deny")}


def test_too_many_keys_are_folded_wider(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MAX_SHAPES", 4)
    letters = "abcdefgh"
    few = [usage("id", START, exchange="few", routing_key=f"x.{one}") for one in letters]
    many = [usage("id", START, exchange="many", routing_key=f"{one}.{one}") for one in (*letters, "")]
    template = usage("id", START, exchange="many", routing_key="#", routing_key_is_template=True)
    seen = frame(spark, [*few, *many, usage("id", START, exchange="many", routing_key=""), template])
    assert sorted((row.exchange, row.key_shape, row.kinds) for row in folded(seen).collect()) == [
        ("few", "x.\ue000", 8),
        ("many", "", 1),
        ("many", "#", 1),
        ("many", "\ue000.\ue000", 9),
    ]
    counts = {(row.before, row.after) for row in summary(replay(seen, recommend(seen).files)).collect()}
    assert counts == {("allow", "allow")}


def test_more_than_one_process_can_take_is_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MAX_USES", 2)
    seen = frame(spark, [usage("id", START, exchange=name, routing_key="") for name in "abc"])
    with pytest.raises(PipelineError, match="more than 2 different uses"):
        recommend(seen)


def test_users_who_are_not_known_are_noted(spark: SparkSession) -> None:
    found = recommend(frame(spark, [usage("id", START, 3, user=None, routing_key="k")]))
    assert found.files == ()
    assert found.notes[0].startswith("3 requests are left out: the gateway did not know their user")


def test_what_is_granted_and_not_used(spark: SparkSession) -> None:
    policy = document(
        "id: publish, effect: allow, operations: [basic.publish], exchange: x",
        "id: queues, effect: allow, operations: [queue.declare, queue.purge], queue: {prefix: q}",
        "id: never, effect: deny, operations: [queue.delete]",
        subjects="{user: alice}",
    )
    records = [
        usage("id", START, 3, routing_key="k"),
        usage("id", START + timedelta(hours=1), 4, routing_key="l"),
        method("queue.declare", queue="q1"),
        usage("id", START, 9, exchange="y", routing_key="k", verdict="deny"),
    ]
    rows = granted(frame(spark, records), [Source("p.yaml", policy.encode())])
    assert [tuple(row) for row in rows.select("rule", "operation", "requests").collect()] == [
        ("queues", "queue.purge", 0),
        ("queues", "queue.declare", 1),
        ("publish", "basic.publish", 7),
    ]
    last = rows.selectExpr("unix_seconds(last) as last").collect()
    assert [row.last for row in last] == [
        None,
        int((START + timedelta(seconds=10)).timestamp()),
        int((START + timedelta(hours=1, seconds=10)).timestamp()),
    ]
