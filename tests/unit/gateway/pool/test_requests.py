"""What a session's requests need, by what is known of their queue; and what is learned from the answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import joined, pooled

STREAM = Table.of({"x-queue-type": "stream"})


@pytest.fixture
def fixed(make_stage: Callable[..., Stage]) -> tuple[Stage, Talker, Talker]:
    """A client that consumes with a limit, so that it cannot leave the connection that it shares."""
    stage = make_stage(
        upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1, consumers: shared}",
        limits="closeTimeout: 100ms",
    )
    client, broker = pooled(stage)
    says(client, broker, amqp.BasicQos(0, 1), amqp.BasicQosOk())
    says(client, broker, amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"))
    return stage, client, broker


def says(client: Talker, broker: Talker, question: Method, answer: Method, there: int = 1) -> None:
    client.say(question, 1)
    assert broker.expect(type(question), there) == question
    broker.say(answer, there)
    assert client.expect(type(answer), 1) == answer


def test_the_type_of_a_queue_is_known_from_its_declare_on(fixed: tuple[Stage, Talker, Talker]) -> None:
    """Also before the broker has agreed."""
    _, client, broker = fixed
    declare = amqp.QueueDeclare(queue="s", durable=True, arguments=STREAM)
    client.say(declare, 1)
    broker.expect(amqp.QueueDeclare, 1)
    client.say(amqp.BasicGet(queue="s"), 1)
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 540
    assert (
        close.reply_text
        == "NOT_IMPLEMENTED - basic.get not supported by stream queues queue 's' in vhost '/'"
    )


def test_what_one_session_has_learned_holds_for_all(fixed: tuple[Stage, Talker, Talker]) -> None:
    stage, client, broker = fixed
    declare = amqp.QueueDeclare(queue="s", durable=True, arguments=STREAM)
    says(client, broker, declare, amqp.QueueDeclareOk("s", 0, 0))
    other = joined(stage, broker)
    says(other, broker, amqp.BasicQos(0, 1), amqp.BasicQosOk(), 2)
    says(other, broker, amqp.BasicConsume(queue="q", consumer_tag="c"), amqp.BasicConsumeOk("c"), 2)
    other.say(amqp.QueuePurge(queue="s"), 1)
    assert other.expect(amqp.ConnectionClose).reply_code == 540
    broker.expect(amqp.ChannelClose, 2)
    says(client, broker, amqp.QueueDelete(queue="s"), amqp.QueueDeleteOk(0))
    says(client, broker, amqp.QueuePurge(queue="s"), amqp.QueuePurgeOk(0))


@pytest.mark.parametrize("answers", [True, False])
def test_an_exclusive_queue_is_its_sessions(fixed: tuple[Stage, Talker, Talker], answers: bool) -> None:
    """From when it asks for it, until the broker says no."""
    stage, client, broker = fixed
    other = joined(stage, broker)
    declare = amqp.QueueDeclare(queue="mine", exclusive=True)
    client.say(declare, 1)
    broker.expect(amqp.QueueDeclare, 1)
    if answers:
        broker.say(amqp.QueueDeclareOk("mine", 0, 0), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    other.say(amqp.QueueDeclare(queue="mine", passive=True), 1)
    broker.expect(amqp.ChannelClose, 2)
    broker.say(amqp.ChannelCloseOk(), 2)
    assert other.expect(amqp.ChannelClose, 1).reply_code == 405
    other.say(amqp.ChannelCloseOk(), 1)
    if answers:
        says(client, broker, amqp.QueueDelete(queue="mine"), amqp.QueueDeleteOk(0))
    else:
        broker.say(amqp.ChannelClose(405, "RESOURCE_LOCKED - no", 50, 10), 1)
        client.expect(amqp.ChannelClose, 1)
        client.say(amqp.ChannelCloseOk(), 1)
        broker.expect(amqp.ChannelCloseOk, 1)
    other.say(amqp.ChannelOpen(), 1)
    there, opening = broker.hear()
    assert isinstance(opening, amqp.ChannelOpen)
    broker.say(amqp.ChannelOpenOk(), there)
    other.expect(amqp.ChannelOpenOk, 1)
    says(
        other,
        broker,
        amqp.QueueDeclare(queue="mine", passive=True),
        amqp.QueueDeclareOk("mine", 0, 0),
        there,
    )


def test_with_its_session_an_exclusive_queue_is_deleted(fixed: tuple[Stage, Talker, Talker]) -> None:
    stage, client, broker = fixed
    joined(stage, broker)
    declare = amqp.QueueDeclare(queue="mine", exclusive=True)
    says(client, broker, declare, amqp.QueueDeclareOk("mine", 0, 0))
    client.reset()
    broker.expect(amqp.ChannelClose, 1)
    # On a channel of its own, and declared once more: the name may be somebody else's by now.
    broker.expect(amqp.ChannelOpen, 3)
    assert broker.expect(amqp.QueueDeclare, 3) == declare
    assert broker.expect(amqp.QueueDelete, 3).queue == "mine"
    broker.expect(amqp.ChannelClose, 3)


def test_a_cancel_waits_until_the_broker_has_named_its_consumer(fixed: tuple[Stage, Talker, Talker]) -> None:
    _, client, broker = fixed
    client.say(amqp.BasicConsume(queue="q", consumer_tag="d"), 1)
    broker.expect(amqp.BasicConsume, 1)
    client.say(amqp.BasicCancel("d"), 1)
    broker.hear_nothing(0.05)
    broker.say(amqp.BasicConsumeOk("d"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    assert broker.expect(amqp.BasicCancel, 1).consumer_tag == "d"
