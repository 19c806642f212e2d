"""What a tap is shown of a session: its messages, its other methods, and denials."""

from __future__ import annotations

import json
from pathlib import Path

import trio

from amqpgate.gateway.observers.tap.session import TapObserver
from amqpgate.gateway.session.observer import find
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.unit.gateway.audited import ACCESS, confirming
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.tapped import AUDIT, MakeStage, frames_in, of, pass_on, tap
from tests.unit.policy.kinds.test_compatibility import document


def test_a_publish_is_shown_and_nothing_of_its_content(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "exchange=orders and user=guest and vhost='/'")
    client.publish(b"other", "k", exchange="elsewhere")
    broker.expect_content(amqp.BasicPublish)
    properties = amqp.BasicProperties("text/plain", headers=Table.of({"h": 1}))
    for size in (0, 5, 300_000):
        client.publish(b"s" * size, "order.eu", exchange="orders", properties=properties)
        message = broker.expect_content(amqp.BasicPublish)
        assert (message.body, message.header.properties) == (b"s" * size, properties)
    items = watch.items()
    assert [of(item, "operation", "exchange", "routing_key", "body_size") for item in items] == [
        ("basic.publish", "orders", "order.eu", size) for size in (0, 5, 300_000)
    ]
    assert of(items[0], "user", "vhost", "client", "verdict", "channel") == (
        "guest",
        "/",
        "127.0.0.1",
        "allow",
        1,
    )
    assert set(items[0]).isdisjoint({"properties", "headers", "body", "frames"})
    assert watch.counts == (3, 3)


def test_whoever_cannot_match_is_left_alone(stage: Stage) -> None:
    client, broker = stage.opened()
    for match in ("user=other", "vhost=v", "client=10.0.0.0/8", "user=guest and vhost=v"):
        tap(stage, match)
    session = next(iter(stage.running.gateway.sessions.values()))
    assert (find(session.session_policies.observers, TapObserver), session.relay.up.flows) == (None, None)
    tap(stage, "operation=queue.*")
    assert find(session.session_policies.observers, TapObserver) is not None
    assert (session.relay.up.flows, session.relay.down.flows) == (None, None)
    pass_on(client, broker, 1)


def test_a_client_that_comes_later_is_tapped_from_its_first_word(stage: Stage) -> None:
    watch = tap(stage)
    client, broker = stage.opened()
    pass_on(client, broker, 1)
    names = [item["operation"] for item in watch.items()]
    assert names == ["connection.open", "channel.open", "basic.publish"]
    client.close()
    stage.running.wait_idle()
    assert watch.counts == (3, 3)


def test_deliveries_are_shown_with_their_queue(stage: Stage) -> None:
    client, broker = stage.opened()
    watch = tap(stage, "queue=q")
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    properties = amqp.BasicProperties("text/plain")
    for tag in range(1, 4):
        broker.content(amqp.BasicDeliver("c", tag, False, "x", "a"), b"12345", properties=properties)
        message = client.expect_content(amqp.BasicDeliver)
        assert (message.body, message.header.properties) == (b"12345", properties)
    items = watch.items()
    assert [of(item, "operation", "exchange", "routing_key", "queue", "body_size") for item in items] == [
        ("basic.consume", None, None, "q", None),
        *[("basic.deliver", "x", "a", "q", 5)] * 3,
    ]
    watch.close()
    session = next(iter(stage.running.gateway.sessions.values()))
    assert session.relay.down.flows is None


def test_methods_and_denials(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    client, broker = stage.opened()
    confirming(client, broker)
    watch = tap(stage, frames=True)
    client.say(amqp.QueueDeclare(queue="q", durable=True, arguments=Table.of({"x-max-length": 3})), 1)
    broker.expect(amqp.QueueDeclare, 1)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    # Refused at its method, at its header, and allowed.
    for exchange, key, size in (("y", "a", 1), ("x", "a", 21), ("x", "a", 3), ("x", "a", 3)):
        client.publish(b"b" * size, key, exchange=exchange)
    for _ in range(2):
        assert client.expect(amqp.BasicNack, 1)
        assert broker.expect_content(amqp.BasicPublish).body == b"bbb"
    client.say(amqp.ExchangeDeclare(exchange="e"), 1)
    broker.expect(amqp.ChannelClose, 1)
    items = watch.items()
    columns = ("operation", "exchange", "verdict", "policy", "rule", "body_size")
    assert [of(item, *columns) for item in items] == [
        ("queue.declare", None, "allow", "access", "queues", None),
        ("basic.publish", "y", "deny", None, "default", None),
        ("basic.publish", "x", "deny", None, "default", 21),
        ("basic.publish", "x", "allow", "access", "small", 3),
        ("basic.publish", "x", "allow", "access", "small", 3),
        ("exchange.declare", "e", "deny", None, "default", None),
    ]
    assert json.loads(str(items[0]["arguments"])) == {"x-max-length": 3}
    assert watch.counts == (6, 6)
    methods = [decode_method(frames_in(item)[0]) for item in items]
    assert methods[0] == amqp.QueueDeclare(queue="q", durable=True, arguments=Table.of({"x-max-length": 3}))
    assert methods[2] == amqp.BasicPublish(exchange="x", routing_key="a")
    denied = tap(stage, "verdict=deny")
    assert denied.counts == (0, 0)


def test_other_policies_hold_for_the_tap_at_once(make_stage: MakeStage, tmp_path: Path) -> None:
    stage = make_stage(policies=AUDIT % "{id: r, operations: [basic.publish], level: headers}")
    client, broker = stage.opened()
    watch = tap(stage, "operation=basic.publish")
    pass_on(client, broker, 1)
    (tmp_path / "policies" / "policy.yaml").write_text(
        AUDIT % "{id: r, operations: [basic.publish], level: metadata}"
    )
    state = trio.from_thread.run(stage.running.gateway.reloading.reload, trio_token=stage.running._token)
    assert state.status == "done"
    pass_on(client, broker, 1)
    before, after = watch.items()
    assert "headers" in before
    assert "headers" not in after
    assert watch.counts == (2, 2)


def test_both_sides_of_what_a_compatibility_policy_changes(make_stage: MakeStage) -> None:
    stage = make_stage(policies=document("three", "quorumQueues: [{queue: {prefix: q}}]"))
    client, broker = stage.opened()
    watch = tap(stage)
    client.say(amqp.QueueDeclare(queue="q", durable=True), 1)
    broker.expect(amqp.QueueDeclare, 1)
    client.say(amqp.QueueDeclare(queue="other", durable=True), 1)
    broker.expect(amqp.QueueDeclare, 1)
    for headers in ({"x-death": [{"count": 1}]}, {"a": 1}):
        client.publish(b"", "q", properties=amqp.BasicProperties(headers=Table.of(headers)))
        broker.expect_content(amqp.BasicPublish)
    declared, other, again, first = watch.items()
    assert declared["broker"] == {
        "policy": "three",
        "items": ["quorum-queue", "delivery-limit"],
        "queue": "q",
        "durable": True,
        "auto_delete": False,
        "arguments": '{"x-delivery-limit":-1,"x-queue-type":"quorum"}',
    }
    assert again["broker"] == {"policy": "three", "items": ["x-death"]}
    assert "broker" not in other
    assert "broker" not in first
