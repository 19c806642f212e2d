"""What a session waits for before it gets a connection of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import joined, let_in, pooled

ODD = amqp.ExchangeDeclare(exchange="x", type="x-odd")


@pytest.fixture
def peers(make_stage: Callable[..., Stage]) -> tuple[Stage, Talker, Talker]:
    stage = make_stage(upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}")
    return stage, *pooled(stage)


def moved(own: Talker, broker: Talker, *, confirms: bool) -> None:
    """The session's channel is opened on the new connection, and closed on the shared one."""
    own.expect(amqp.ChannelOpen, 1)
    own.say(amqp.ChannelOpenOk(), 1)
    if confirms:
        own.expect(amqp.ConfirmSelect, 1)
        own.say(amqp.ConfirmSelectOk(), 1)
    broker.expect(amqp.ChannelClose, 1)
    assert own.expect(amqp.ExchangeDeclare, 1) == ODD


def test_the_answers_to_what_was_published(peers: tuple[Stage, Talker, Talker]) -> None:
    """They come behind the answer to the limit, one by one."""
    stage, client, broker = peers
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    publish = amqp.BasicPublish(routing_key="q")
    for _ in range(3):
        client.content(publish, b"body")
        broker.content_of(broker.expect(amqp.BasicPublish, 1))
    client.say(ODD, 1)
    broker.expect(amqp.BasicQos, 1)
    own = stage.broker()
    let_in(own)
    broker.say(amqp.BasicQosOk(), 1)
    for tag in (1, 3, 2):
        broker.say(amqp.BasicAck(tag), 1)
        assert client.expect(amqp.BasicAck, 1).delivery_tag == tag
    moved(own, broker, confirms=True)
    own.say(amqp.ExchangeDeclareOk(), 1)
    client.expect(amqp.ExchangeDeclareOk, 1)
    client.content(publish, b"body")
    own.content_of(own.expect(amqp.BasicPublish, 1))
    own.say(amqp.BasicAck(1), 1)
    assert client.expect(amqp.BasicAck, 1).delivery_tag == 4


def test_the_answer_to_a_close(peers: tuple[Stage, Talker, Talker]) -> None:
    """Nothing can be said on that channel, and it does not come along."""
    stage, client, broker = peers
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 2)
    client.say(amqp.QueueDeclare(queue="q"), 2)
    broker.expect(amqp.QueueDeclare, 2)
    client.say(amqp.ChannelClose(200, "enough", 0, 0), 2)
    client.say(ODD, 1)
    broker.expect(amqp.ChannelClose, 2)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 2)
    client.expect(amqp.QueueDeclareOk, 2)
    broker.say(amqp.ChannelCloseOk(), 2)
    client.expect(amqp.ChannelCloseOk, 2)
    broker.expect(amqp.BasicQos, 1)
    own = stage.broker()
    let_in(own)
    broker.say(amqp.BasicQosOk(), 1)
    moved(own, broker, confirms=False)


def test_a_client_that_has_gone_needs_no_connection(peers: tuple[Stage, Talker, Talker]) -> None:
    stage, client, broker = peers
    client.say(ODD, 1)
    broker.expect(amqp.BasicQos, 1)
    own = stage.broker()
    let_in(own)
    client.reset()
    broker.expect(amqp.ChannelClose, 1)
    own.expect_end()


def test_a_channel_for_which_there_is_room_meanwhile(make_stage: Callable[..., Stage]) -> None:
    """It is opened on the new connection: what is opened on the shared one by then would not come along."""
    stage = make_stage(
        upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1, channelsPerLink: 2}"
    )
    client, broker = pooled(stage)
    other = joined(stage, broker)
    client.say(amqp.ChannelOpen(), 2)
    broker.expect(amqp.BasicQos, 1)
    own = stage.broker()
    let_in(own)
    other.say(amqp.ChannelClose(200, "", 0, 0), 1)
    other.expect(amqp.ChannelCloseOk, 1)
    broker.expect(amqp.ChannelClose, 2)
    broker.say(amqp.ChannelCloseOk(), 2)
    gateway = stage.running.gateway

    def look_again() -> None:
        """As when policies change, or a rate is no longer exceeded."""
        for session in gateway.sessions.values():
            session.relay.pump.retry(session.relay)

    stage.running.call(look_again)
    broker.hear_nothing(0.05)
    broker.say(amqp.BasicQosOk(), 1)
    own.expect(amqp.ChannelOpen, 1)
    own.say(amqp.ChannelOpenOk(), 1)
    broker.expect(amqp.ChannelClose, 1)
    own.expect(amqp.ChannelOpen, 2)
    own.say(amqp.ChannelOpenOk(), 2)
    client.expect(amqp.ChannelOpenOk, 2)
