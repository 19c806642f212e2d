"""What the log says of a denial."""

from __future__ import annotations

import io
import json
import math

import attrs
import pytest

from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.logs import JsonHandler
from amqpgate.policy import MessageContent, Operation, PolicySet, Principal, Source, build, denial_text
from amqpgate.telemetry.events import Events
from amqpgate.telemetry.metrics import Metrics

BOB = Principal("bob", "prod")
POLICY = b"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{user: bob}]
  rules:
  - {id: declare, effect: allow, operations: [queue.declare, exchange.declare]}
  - {id: mine, effect: allow, operations: [basic.publish], exchange: mine, routingKey: {topic: "a.#"}}
"""


@pytest.fixture(name="policy_set", scope="module")
def _policy_set() -> PolicySet:
    return build([Source("p.yaml", POLICY)])


@pytest.mark.parametrize(
    ("operation", "named"),
    [
        (
            Operation(BOB, "queue.declare", queue="q", arguments={"x-dead-letter-exchange": "theirs"}),
            "exchange 'theirs', any routing key",
        ),
        (
            Operation(
                BOB,
                "queue.declare",
                queue="q",
                arguments={"x-dead-letter-exchange": "mine", "x-dead-letter-routing-key": "b"},
            ),
            "exchange 'mine', routing key 'b'",
        ),
        (
            Operation(BOB, "exchange.declare", exchange="e", arguments={"alternate-exchange": "theirs"}),
            "exchange 'theirs', any routing key",
        ),
        (
            Operation(
                BOB,
                "basic.publish",
                exchange="mine",
                routing_key="a",
                content=MessageContent(headers={"CC": [b"b\xff"]}),
            ),
            "exchange 'mine', routing key 'b\\udcff'",
        ),
    ],
)
def test_it_names_where_a_request_leads(
    policy_set: PolicySet, caplog: pytest.LogCaptureFixture, operation: Operation, named: str
) -> None:
    reports = Reports(Metrics(lambda: None), Decisions(Events()), Bindings())
    verdict = policy_set.decide(operation)
    with caplog.at_level("INFO", "amqpgate"):
        reports.denied(verdict, operation, "s", denial_text(operation, verdict))
    (record,) = caplog.records
    assert record.getMessage().startswith(f"denied: {operation.name} by -/default: user 'bob'")
    assert record.getMessage().endswith(f"; it leads to basic.publish: {named}")
    # Operators see the names in the text of the decision.
    (kept,) = reports.decisions.last(1, None)
    assert verdict.about is not None
    assert f"exchange '{verdict.about.exchange}'" in str(kept["text"])


def test_it_leads_nowhere(policy_set: PolicySet, caplog: pytest.LogCaptureFixture) -> None:
    reports = Reports(Metrics(lambda: None), Decisions(Events()), Bindings())
    operation = Operation(BOB, "queue.purge", queue="q")
    with caplog.at_level("INFO", "amqpgate"):
        reports.denied(policy_set.decide(operation), operation, "s", "why")
    (record,) = caplog.records
    assert record.getMessage().endswith(": user 'bob', vhost 'prod', queue 'q'")
    line = json.loads(JsonHandler(io.StringIO()).format(record))
    assert list(line.items())[5:] == [
        ("session", "s"),
        ("user", "bob"),
        ("vhost", BOB.vhost),
        ("operation", "queue.purge"),
        ("queue", "q"),
        ("rule", "default"),
        ("reply_code", 403),
    ]


def test_a_line_says_what_the_client_was_told_and_whose_broker_it_is(
    policy_set: PolicySet, caplog: pytest.LogCaptureFixture
) -> None:
    reports = Reports(Metrics(lambda: None), Decisions(Events()), Bindings())
    operation = Operation(BOB, "queue.purge", queue="q")
    with caplog.at_level("INFO", "amqpgate"):
        verdict = policy_set.decide(operation)
        reports.denied(verdict, operation, "s", "why", upstream="rabbit")
    said = json.loads(JsonHandler(io.StringIO()).format(caplog.records[0]))
    assert (said["reply_code"], said["upstream"]) == (403, "rabbit")


def test_what_closes_nothing_has_no_reply_code(
    policy_set: PolicySet, caplog: pytest.LogCaptureFixture
) -> None:
    reports = Reports(Metrics(lambda: None), Decisions(Events()), Bindings())
    opening = Operation(BOB, "channel.open")
    with caplog.at_level("INFO", "amqpgate"):
        verdict = policy_set.decide(Operation(BOB, "queue.purge", queue="q"))
        reports.denied(verdict, opening, "s", "why")
        reports.denied(attrs.evolve(verdict, rule="other"), opening, "s", "why", closes=False)
    codes = [json.loads(JsonHandler(io.StringIO()).format(one)).get("reply_code") for one in caplog.records]
    assert codes == [530, None]


def test_a_flood_of_denials_fills_no_log(policy_set: PolicySet, caplog: pytest.LogCaptureFixture) -> None:
    reports = Reports(Metrics(lambda: None), Decisions(Events()), Bindings())
    operation = Operation(BOB, "queue.purge", queue="q")
    with caplog.at_level("INFO", "amqpgate"):
        for _ in range(1000):
            reports.denied(policy_set.decide(operation), operation, "s", "why")
        reports.lines.tick(math.inf)
    assert len(caplog.records) < 20
    assert caplog.records[-1].getMessage() == "990 more denied by -/default within 10 s: user 'bob'"
