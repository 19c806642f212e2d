"""Who hears that the broker blocks a connection that is shared: whoever publishes, once."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import asked, joined, pooled

ALARM = amqp.ConnectionBlocked("low on memory")


def publishes(client: Talker, broker: Talker, there: int) -> None:
    client.publish(b"x", "q")
    broker.content_of(broker.expect(amqp.BasicPublish, there), there)


def answered(client: Talker, broker: Talker, there: int) -> None:
    """Nothing was said to the client before the answer to this."""
    asked(client, broker, 1, there)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), there)
    client.expect(amqp.QueueDeclareOk, 1)


def test_who_has_published_hears_it_and_who_has_not_does_not(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    publishes(client, broker, 1)
    for _ in range(2):
        # A broker says it again when another alarm comes.
        broker.say(ALARM)
    assert client.expect(amqp.ConnectionBlocked) == ALARM
    answered(client, broker, 1)
    answered(other, broker, 2)
    for _ in range(2):
        broker.say(amqp.ConnectionUnblocked())
    client.expect(amqp.ConnectionUnblocked)
    answered(other, broker, 2)
    broker.say(ALARM)
    assert client.expect(amqp.ConnectionBlocked) == ALARM


def test_who_does_not_understand_it_is_not_told(shared: Stage) -> None:
    can = Table.of({"capabilities": {"basic.nack": True, "consumer_cancel_notify": True}})
    client, broker = pooled(shared, can)
    publishes(client, broker, 1)
    broker.say(ALARM)
    answered(client, broker, 1)


def test_who_begins_to_publish_then_hears_it_first(shared: Stage) -> None:
    client, broker = pooled(shared)
    broker.say(ALARM)
    answered(client, broker, 1)
    client.publish(b"x", "q")
    assert client.expect(amqp.ConnectionBlocked) == ALARM
    [session] = shared.running.gateway.sessions.values()
    assert session.upstream.is_blocked


def test_who_leaves_the_connection_hears_that_it_is_over(shared: Stage) -> None:
    client, broker = pooled(shared)
    publishes(client, broker, 1)
    broker.say(ALARM)
    client.expect(amqp.ConnectionBlocked)
    client.say(amqp.ChannelClose(200, "", 0, 0), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert {type(client.hear()[1]), type(client.hear()[1])} == {
        amqp.ConnectionUnblocked,
        amqp.ChannelCloseOk,
    }


def test_when_the_connection_is_lost_it_is_over(shared: Stage) -> None:
    client, broker = pooled(shared)
    publishes(client, broker, 1)
    broker.say(ALARM)
    client.expect(amqp.ConnectionBlocked)
    broker.close()
    client.expect(amqp.ConnectionUnblocked)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 320


def test_a_client_that_has_gone_is_no_fault(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    publishes(client, broker, 1)
    client.reset()
    broker.say(ALARM)
    broker.expect(amqp.ChannelClose, 1)
    answered(other, broker, 2)
