"""What is read of a gateway at a scrape, of sessions that live and of those that are over."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.gateway.transport.certificates import expiry
from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, RETURNED, Totals, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.handshake.test_handshake import Papers, authority, papers

__all__ = ["authority", "papers"]

MakeStage = Callable[..., Stage]

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: small}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: %s}
  rules:
  - id: not-secret
    effect: deny
    operations: [basic.publish]
    exchange: {prefix: ""}
    routingKey: {literal: secret}
  - id: small
    effect: allow
    operations: [basic.publish]
    exchange: {prefix: ""}
    properties: {maxBodyBytes: 10}
  - {id: declare, effect: allow, operations: [queue.declare], queue: {prefix: ""}}
"""


def read(stage: Stage) -> Totals:
    return stage.running.ask(stage.running.gateway.totals)


def scraped(stage: Stage) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """By name, and then by labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(
        stage.running.ask(stage.running.gateway.metrics_text).decode()
    ):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def confirm(client: Talker, broker: Talker, channel: int = 1) -> None:
    client.say(amqp.ConfirmSelect(), channel)
    broker.expect(amqp.ConfirmSelect, channel)
    broker.say(amqp.ConfirmSelectOk(), channel)
    client.expect(amqp.ConfirmSelectOk, channel)


# -- messages ----------------------------------------------------------------------------------------------


def test_messages_by_the_method_that_brought_them(stage: Stage) -> None:
    client, broker = stage.opened()
    client.publish(b"x" * 100, "k")
    broker.expect_content(amqp.BasicPublish)
    for method, size in (
        (amqp.BasicDeliver("c"), 10),
        (amqp.BasicGetOk(), 20),
        (amqp.BasicGetOk(), 20),
        (amqp.BasicReturn(312, "NO_ROUTE"), 30),
    ):
        broker.content(method, b"y" * size)
        client.expect_content(type(method))
    seen = {
        PUBLISHED: Traffic(1, 100),
        REFUSED: Traffic(0, 0),
        DELIVERED: Traffic(1, 10),
        GOT: Traffic(2, 40),
        RETURNED: Traffic(1, 30),
    }
    now = read(stage)
    assert now.traffic == seen
    # Method, header and body of each.
    assert now.hits == {"publish": 3, "deliver": 12}
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()
    stage.running.wait_idle()
    over = read(stage)
    assert (over.traffic, over.hits) == (seen, now.hits)


@pytest.mark.parametrize("on_denied", ["nack", "drop", "return"])
def test_refused_messages_are_not_among_those_that_passed(make_stage: MakeStage, on_denied: str) -> None:
    stage = make_stage(policies=POLICY % on_denied)
    client, broker = stage.opened()
    confirm(client, broker)
    client.publish(b"x", "a")
    client.publish(b"x" * 7, "secret")  # at its method
    client.publish(b"x" * 50, "a")  # at its header
    client.publish(b"x" * 4, "a")
    assert [len(broker.expect_content(amqp.BasicPublish).body) for _ in range(2)] == [1, 4]
    now = read(stage)
    assert now.traffic[PUBLISHED] == Traffic(2, 5)
    assert now.traffic[REFUSED] == Traffic(2, 57)


def test_upcalls_by_reason(make_stage: MakeStage) -> None:
    stage = make_stage(policies=POLICY % "nack")
    client, broker = stage.opened()
    confirm(client, broker)
    before = read(stage).upcalls
    for size in (1, 1, 50, 1):
        client.publish(b"x" * size, "a")
    for _ in range(3):
        broker.expect_content(amqp.BasicPublish)
    client.octets(b"\x01\x00\x01\x00\x00\x00\x02\x00\x00\xce")
    client.expect(amqp.BasicNack, 1)
    client.expect(amqp.ConnectionClose)
    after = read(stage).upcalls
    called = {reason: after[reason] - count for reason, count in before.items() if after[reason] - count}
    assert called == {"miss": 1, "shown": 1, "header": 1, "violation": 1}


# -- connections and channels ------------------------------------------------------------------------------


def test_connections_and_channels_by_state(stage: Stage) -> None:
    stage.greeted()
    client, broker = stage.opened(channels=3)
    now = read(stage)
    assert now.connections == {"handshake": 1, "open": 1, "closing": 0}
    assert now.channels == {"open": 3, "closing": 0}
    client.say(amqp.ChannelClose(200, "", 0, 0), 2)
    broker.expect(amqp.ChannelClose, 2)
    assert read(stage).channels == {"open": 2, "closing": 1}
    broker.say(amqp.ChannelCloseOk(), 2)
    client.expect(amqp.ChannelCloseOk, 2)
    assert read(stage).channels == {"open": 2, "closing": 0}
    client.say(amqp.ConnectionClose(200, "", 0, 0))
    broker.expect(amqp.ConnectionClose)
    assert read(stage).connections == {"handshake": 1, "open": 0, "closing": 1}
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    eventually(lambda: read(stage).connections == {"handshake": 1, "open": 0, "closing": 0})


def test_what_a_client_does_not_read_is_buffered(stage: Stage) -> None:
    client, broker = stage.opened()
    assert read(stage).buffered == {"client": 0, "upstream": 0}
    body = b"x" * (1 << 20)
    sent = 0
    while sent < 64 and not read(stage).buffered["client"]:
        broker.content(amqp.BasicDeliver("c"), body)
        sent += 1
    assert read(stage).buffered["client"] > 0
    for _ in range(sent):
        client.expect_content(amqp.BasicDeliver)
    assert read(stage).buffered == {"client": 0, "upstream": 0}


# -- confirms ----------------------------------------------------------------------------------------------


def timed(stage: Stage) -> float:
    return scraped(stage)["amqpgate_confirm_latency_seconds_count"][()]


def test_a_confirm_is_timed_from_the_first_one_on(stage: Stage) -> None:
    client, broker = stage.opened(channels=2)
    assert timed(stage) == 0
    confirm(client, broker, 2)
    for tag in range(1, 3):
        client.publish(b"x", "a", channel=2)
        broker.expect_content(amqp.BasicPublish, 2)
        broker.say(amqp.BasicAck(tag), 2)
        client.expect(amqp.BasicAck, 2)
    # The second one only if a look was in between.
    eventually(lambda: 1 <= timed(stage) <= 2)


def test_one_that_is_over_at_once_is_timed(stage: Stage) -> None:
    client, broker = stage.opened()
    confirm(client, broker)
    client.publish(b"x", "a")
    broker.expect_content(amqp.BasicPublish)
    broker.say(amqp.BasicAck(1, True), 1)
    client.expect(amqp.BasicAck, 1)
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()
    stage.running.wait_idle()
    assert timed(stage) == 1


# -- certificates ------------------------------------------------------------------------------------------


def test_when_certificates_expire(make_stage: MakeStage, papers: Papers) -> None:
    when = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    later = datetime(2050, 1, 1, tzinfo=UTC)
    papers.write("gate", papers.ca.issue_cert("localhost", not_after=when))
    papers.write("other", papers.ca.issue_cert("other.example", not_after=later))
    names = "certificates: [{cert: other.pem, key: other.key, serverNames: [other.example]}]"
    stage = make_stage(listener=f"tls: {{cert: gate.pem, key: gate.key, {names}}}")
    name = "amqpgate_tls_certificate_expiry_timestamp_seconds"

    def told() -> dict[str, float]:
        return {Path(dict(labels)["file"]).name: value for labels, value in scraped(stage)[name].items()}

    assert told() == {"gate.pem": when.timestamp(), "other.pem": later.timestamp()}
    # A new one is told without anybody connecting; one that cannot be used is not.
    papers.write("gate", papers.ca.issue_cert("localhost", not_after=later))
    assert told() == {"gate.pem": later.timestamp(), "other.pem": later.timestamp()}
    papers.write("strange", papers.ca.issue_cert("localhost", not_after=when))
    (papers.folder / "gate.pem").write_bytes((papers.folder / "strange.pem").read_bytes())
    assert told()["gate.pem"] == later.timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        ssl.DER_cert_to_PEM_cert(b"\x30\x03\x30\x01\x02"),
        ssl.DER_cert_to_PEM_cert(b"\x30\x82\xff"),
    ],
)
def test_what_is_no_certificate(text: str) -> None:
    with pytest.raises(ValueError, match="certificate"):
        expiry(text)


def test_a_certificate_of_the_last_century() -> None:
    when = datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)
    issued = trustme.CA().issue_cert("a", not_before=datetime(1990, 1, 1, tzinfo=UTC), not_after=when)
    assert expiry(issued.cert_chain_pems[0].bytes().decode()) == when.timestamp()


# -- labels ------------------------------------------------------------------------------------------------

HOSTILE = "client-chosen-"

MORE_POLICIES = """
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: later}
spec:
  mode: shadow
  subjects: [{user: "*"}]
  rules: [{id: none, effect: deny, operations: [queue.declare], queue: {prefix: ""}}]
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: maybe}
spec:
  mode: shadow
  subjects: [{user: "*"}]
  limits: [{id: opens, per: [user], channels: 1/m, burst: 60s}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: bounds}
spec:
  subjects: [{user: "*"}]
  ceilings: {maxBodyBytes: 5}
"""


def test_no_label_has_a_value_that_a_client_chooses(make_stage: MakeStage) -> None:
    policies = POLICY.replace("{user: guest}", '{user: "*"}') % "channel-close"
    stage = make_stage(policies=policies + MORE_POLICIES)

    def series() -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        return {(name, labels) for name, found in scraped(stage).items() for labels in found}

    def come(number: int) -> None:
        """A client that is unlike all others in all that it can choose."""
        mark = f"{HOSTILE}{number}"
        client, broker = stage.opened(2, user=mark.encode(), properties=Table.of({"product": mark}))
        client.publish(b"x", mark, exchange=mark, properties=amqp.BasicProperties(app_id=mark))
        broker.expect_content(amqp.BasicPublish)
        client.say(amqp.QueueDeclare(queue=mark), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk(mark), 1)
        client.expect(amqp.QueueDeclareOk, 1)
        broker.content(amqp.BasicDeliver(mark, 1, False, mark, mark), b"x")
        client.expect_content(amqp.BasicDeliver)
        # Refused by the access policy, and by the transform policy.
        client.publish(b"x" * 50, mark, exchange=mark)
        broker.expect(amqp.ChannelClose, 1)
        client.publish(b"x" * 8, mark, exchange=mark, channel=2)
        broker.expect(amqp.ChannelClose, 2)

    come(0)
    before = series()
    for number in range(1, 5):
        come(number)
    assert series() == before
    assert not any(HOSTILE in value for _, labels in before for _, value in labels)
    for name in ("denials", "shadow_differences", "rate_limited", "transform_refusals"):
        counts = scraped(stage)[f"amqpgate_{name}_total"]
        assert sum(counts.values()) >= 5, "all of it has happened"


def test_how_late_the_loop_is_is_looked_at(stage: Stage) -> None:
    eventually(lambda: scraped(stage)["amqpgate_loop_lag_seconds_count"][()] >= 2)
