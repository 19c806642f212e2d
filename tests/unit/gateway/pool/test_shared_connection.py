"""The end of a link, as its sessions see it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import CAPABILITIES, Talker
from tests.unit.gateway.conftest import Stage

MANY = 3000


def on_a_link(stage: Stage) -> tuple[Talker, Talker]:
    """A client with an open channel, and the broker's end of its link."""
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
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 1)
    return client, broker


@pytest.mark.parametrize("hangs_up", [True, False])
def test_what_the_broker_said_before_it_closed_the_link_is_heard(
    make_stage: Callable[..., Stage], hangs_up: bool
) -> None:
    """It is more than goes into one turn of the link."""
    stage = make_stage(
        upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}", limits="closeTimeout: 1s"
    )
    client, broker = on_a_link(stage)
    passive = amqp.ExchangeDeclare(exchange="x", type="direct", passive=True)
    client.octets(method_frame(1, passive) * MANY)
    for _ in range(MANY):
        broker.expect(amqp.ExchangeDeclare, 1)
    said = method_frame(1, amqp.ExchangeDeclareOk()) * MANY
    broker.octets(said + method_frame(0, amqp.ConnectionClose(320, "CONNECTION_FORCED - bye", 0, 0)))
    broker.expect(amqp.ConnectionCloseOk)
    if hangs_up:
        broker.close()
    for _ in range(MANY):
        client.expect(amqp.ExchangeDeclareOk, 1)
    close = client.expect(amqp.ChannelClose, 1)
    assert (close.reply_code, "bye" in close.reply_text) == (320, True)
    if not hangs_up:
        broker.expect_end()
