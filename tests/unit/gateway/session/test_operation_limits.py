"""Limits of single operations: what waits, what is refused, what is only counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.telemetry.readings import PUBLISHED, REFUSED, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.talker import relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.rated import arrives, counted, deliver, rates, received

MakeStage = Callable[..., Stage]


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "sizes"), [("messages: 1/m", (1, 1, 1)), ("bytes: 100/m", (150, 100, 1))])
def test_a_message_over_the_limit_is_nacked(
    make_stage: MakeStage, limit: str, sizes: tuple[int, ...]
) -> None:
    stage = make_stage(policies=rates(f"{limit}, action: reject"))
    client, broker = stage.opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    for size in sizes:
        client.publish(b"x" * size, "a")
    arrives(broker, [b"x" * size for size in sizes[:2]])
    assert client.expect(amqp.BasicNack, 1) == amqp.BasicNack(3)
    broker.say(amqp.BasicAck(2, multiple=True), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 2
    assert counted(stage) == {("few", "few", "refused", "yes"): 1}


def test_without_confirms_a_message_over_the_limit_closes_the_channel(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("messages: 1/m, action: reject"))
    client, broker = stage.opened(channels=2)
    for _ in range(3):
        client.publish(b"x", "a")
    arrives(broker, [b"x", b"x"])
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    client.say(amqp.ChannelCloseOk(), 1)
    client.say(amqp.BasicQos(), 2)
    broker.expect(amqp.BasicQos, 2)
    totals = stage.running.ask(stage.running.gateway.totals)
    assert totals.traffic[PUBLISHED] == Traffic(2, 2)
    assert totals.traffic[REFUSED] == Traffic(1, 1)


@pytest.mark.parametrize(
    ("limit", "method", "code"),
    [
        ("channels: 1/m, action: reject", amqp.ChannelOpen(), 530),
        ("channels: 1/m, action: close", amqp.ChannelOpen(), 506),
        ("consumers: 1/m, action: close", amqp.BasicConsume(), 506),
        ("queueDeclares: 1/m, action: close", amqp.QueueDeclare(), 506),
    ],
)
def test_what_closes_the_connection(make_stage: MakeStage, limit: str, method: Method, code: int) -> None:
    stage = make_stage(policies=rates(limit))
    client, broker = stage.opened()
    for number in range(1, 4):
        channel = number + 1 if isinstance(method, amqp.ChannelOpen) else 1
        client.say(method, channel)
        close = (number == 3) if channel == 1 else (number == 2)
        if close:
            break
        broker.expect(type(method), channel)
    heard = client.expect(amqp.ConnectionClose)
    cause = (method.CLASS_ID, method.METHOD_ID) if code == 506 else (0, 0)
    assert (heard.reply_code, heard.class_id, heard.method_id) == (code, *cause)
    client.say(amqp.ConnectionCloseOk())
    assert "over a limit" in broker.expect(amqp.ConnectionClose).reply_text
    broker.say(amqp.ConnectionCloseOk())
    client.close()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"over_limit": 1}


def test_a_message_may_cost_the_connection(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("messages: 1/m, action: close"))
    client, broker = stage.opened()
    for _ in range(3):
        client.publish(b"x", "a")
    arrives(broker, [b"x", b"x"])
    assert client.expect(amqp.ConnectionClose).reply_code == 506


@pytest.mark.parametrize(
    ("limit", "method"),
    [
        ("consumers: 1/m, action: reject", amqp.BasicConsume()),
        ("queueDeclares: 1/m, action: reject", amqp.QueueDeclare()),
    ],
)
def test_what_closes_the_channel(make_stage: MakeStage, limit: str, method: Method) -> None:
    stage = make_stage(policies=rates(limit))
    client, broker = stage.opened()
    for _ in range(3):
        client.say(method, 1)
    broker.expect(type(method), 1)
    broker.expect(type(method), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, close.class_id, close.method_id) == (406, method.CLASS_ID, method.METHOD_ID)


# -- what waits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "method"),
    [
        ("channels: 1/m", amqp.ChannelOpen()),
        ("consumers: 1/m", amqp.BasicConsume()),
        ("queueDeclares: 1/m", amqp.QueueDeclare()),
        ("deliverMessages: 1/m", amqp.BasicGet()),
    ],
)
def test_an_operation_waits_and_what_comes_behind_it(
    make_stage: MakeStage, limit: str, method: Method
) -> None:
    stage = make_stage(policies=rates(limit))
    client, broker = stage.opened()
    opens = isinstance(method, amqp.ChannelOpen)
    for number in range(3):
        client.say(method, 2 + number if opens else 1)
    client.say(amqp.BasicQos(), 1)
    for number in range(1 if opens else 2):
        broker.expect(type(method), 2 + number if opens else 1)
    broker.hear_nothing(0.3)
    # The other direction goes on.
    broker.content(amqp.BasicDeliver(consumer_tag="c", delivery_tag=1), b"y")
    assert client.expect_content(amqp.BasicDeliver).body == b"y"
    assert counted(stage)["few", "few", "delayed", "yes"] == 1
    # And it is not lost.
    stage.running.call(lambda: stage.running.gateway.use(type(stage.running.gateway.policies).empty()))
    broker.expect(type(method), 3 if opens else 1)


def test_an_operation_goes_on_by_itself(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("queueDeclares: 20/s", burst="50ms"))
    client, broker = stage.opened()
    for _ in range(10):
        client.say(amqp.QueueDeclare(), 1)
    for _ in range(10):
        broker.expect(amqp.QueueDeclare, 1)
    assert counted(stage)["few", "few", "delayed", "yes"] == 9


# -- only for show -------------------------------------------------------------------------------------------


def test_in_shadow_everything_passes_and_is_counted(make_stage: MakeStage) -> None:
    limit = "messages: 1/m, deliverMessages: 1/m, channels: 1/m"
    stage = make_stage(policies=rates(limit, "mode: shadow"))
    client, broker = stage.opened(channels=4)
    for _ in range(5):
        client.publish(b"x", "a")
    arrives(broker, [b"x"] * 5)
    deliver(broker, 5)
    received(client, 5)
    # Two of each are within the limit: two channels, three messages and three deliveries are not.
    assert counted(stage) == {("few", "few", "delayed", "no"): 2 + 3 + 3}


def test_enforced_and_in_shadow_are_counted_apart(make_stage: MakeStage) -> None:
    shadow = rates("messages: 1/m, action: reject", "mode: shadow").replace("name: few", "name: shadow")
    stage = make_stage(policies=rates("messages: 1/m", burst="150s") + "---" + shadow)
    client, broker = stage.opened()
    for _ in range(5):
        client.publish(b"x", "a")
    arrives(broker, [b"x"] * 3)
    broker.hear_nothing(0.2)
    assert counted(stage) == {("shadow", "few", "refused", "no"): 1}
