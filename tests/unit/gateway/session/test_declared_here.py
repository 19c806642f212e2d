"""Declares of the gateway's own among those of a client; as conversations they are in `test_delays`."""

from __future__ import annotations

from typing import cast

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Channels
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.declared_here import ask_broker, is_for_gateway
from amqpgate.gateway.session.delays import Delays
from amqpgate.wire.generated import v0_9_1 as amqp


def test_answers_come_in_the_order_asked() -> None:
    channels, delays = SessionChannels(cast(Relay, None), Channels()), Delays(None)
    state = channels.states.of(1)
    state.declare(amqp.QueueDeclare())
    ask_broker(channels, 1, len(state.declaring().ladder.climb(6)))
    state.declare(amqp.QueueDeclare(queue="q"))
    heard = []
    for queue in ("amq.gen-1", "amqpgate.delay.sink", "q"):
        heard.append(is_for_gateway(channels, delays, 1))
        if not heard[-1]:
            channels.declared(1, queue)
    assert heard == [False, True, False]
    assert not is_for_gateway(channels, delays, 2)
    assert state.declares is None
    assert list(channels.owned or ()) == ["amq.gen-1"]
