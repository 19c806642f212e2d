"""A session that shares its connection, with a client and a broker that are both the test itself."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp
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


def pooled(stage: Stage) -> tuple[Talker, Talker]:
    """A client with an open channel, and the broker's end of the connection that it shares."""
    client = stage.client()
    client.octets(amqp.PROTOCOL_HEADER)
    with stage.door.accept() as asked:
        asked.greet()
        asked.expect_end()
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker = stage.broker()
    broker.greet()
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    return client, broker
