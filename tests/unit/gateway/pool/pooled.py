"""A session that shares its connection, with a client and a broker that are both the test itself."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.talker import CAPABILITIES, Talker, relayed
from tests.unit.gateway.conftest import Stage


def let_in(broker: Talker) -> None:
    """The broker opens the gateway's next connection."""
    broker.greet()
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())


def knocks(
    stage: Stage, properties: Table = CAPABILITIES, login: bytes = b"\0guest\0guest"
) -> tuple[Talker, Talker]:
    """The first client with a login, which it has said, and the broker's end of the connection that is to
    prove it."""
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    with stage.door.accept() as asked:
        asked.greet()
        asked.expect_end()
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(properties, "PLAIN", login, "en_US"))
    broker = stage.broker()
    broker.greet()
    return client, broker


def asks_for_its_vhost(client: Talker, broker: Talker) -> None:
    """The broker takes the login of a client, which goes on."""
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)


def pooled(stage: Stage, properties: Table = CAPABILITIES) -> tuple[Talker, Talker]:
    """A client with an open channel, and the broker's end of the connection that it shares."""
    client, broker = knocks(stage, properties)
    asks_for_its_vhost(client, broker)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    return client, broker


def logged_in(stage: Stage) -> Talker:
    """Another client with the same login, which the broker is not asked about. It has no channel."""
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    client.expect(amqp.ConnectionOpenOk)
    return client


def joined(stage: Stage, broker: Talker, channel: int = 2) -> Talker:
    """Such a client with its channel 1: on the connection that is shared that is ``channel``."""
    client = logged_in(stage)
    opened(client, broker, 1, channel)
    return client


def opened(client: Talker, broker: Talker, channel: int, there: int) -> None:
    """The client opens a channel, which is another one on the connection that is shared."""
    client.say(amqp.ChannelOpen(), channel)
    broker.expect(amqp.ChannelOpen, there)
    broker.say(amqp.ChannelOpenOk(), there)
    client.expect(amqp.ChannelOpenOk, channel)


def asked(client: Talker, broker: Talker, channel: int = 1, there: int = 1, queue: str = "q") -> None:
    """The client declares a queue, and the broker has not answered."""
    client.say(amqp.QueueDeclare(queue=queue), channel)
    assert broker.expect(amqp.QueueDeclare, there).queue == queue
