"""What is read of a gateway at a scrape, of sessions that live and of those that are over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, RETURNED, Totals, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import eventually
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage

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
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), channel)


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
    client.raw(b"\x01\x00\x01\x00\x00\x00\x02\x00\x00\xce")
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


def test_what_was_counted_can_be_read(stage: Stage) -> None:
    client, broker = stage.opened(2)
    client.publish(b"x" * 1000, "k")
    broker.expect_content(amqp.BasicPublish)
    for _ in range(2):
        broker.content(amqp.BasicDeliver("c"), b"y" * 10)
        client.expect_content(amqp.BasicDeliver)
    totals = stage.running.ask(stage.running.gateway.totals)
    assert totals.traffic[PUBLISHED] == Traffic(1, 1000)
    assert totals.traffic[DELIVERED] == Traffic(2, 20)
    assert (totals.sessions, totals.channels) == ({"": 1}, {"open": 2, "closing": 0})
    assert {pair: count for pair, count in totals.versions.items() if count} == {("0-9-1", "0-9-1"): 1}
    # Whoever may come has a row already.
    assert totals.versions["0-10", "0-9-1"] == totals.versions["0-8", "0-10"] == 0
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()
    stage.running.wait_idle()
    over = stage.running.ask(stage.running.gateway.totals)
    assert over.traffic == totals.traffic
    assert set(over.versions.values()) == {0}
    assert (over.sessions, over.channels) == ({"": 0}, {"open": 0, "closing": 0})
