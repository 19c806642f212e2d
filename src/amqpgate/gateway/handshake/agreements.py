"""What hops settle on, kept for the next connection that is offered and answers the same."""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.bridge import NATIVE
from amqpgate.config import Listener, Upstream
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.client_side import settled
from amqpgate.gateway.handshake.passthrough import offer_of
from amqpgate.gateway.transport.repeated import Derived, frame_of
from amqpgate.gateway.upstream.broker_side import tune_for
from amqpgate.protocol.handshake import Tune, too_small
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp

#: Offers of one listener that are kept.
_MOST: Final = 64


@frozen(eq=False)
class Agreement:
    """What holds on both hops."""

    #: On the client's, and on the broker's.
    tunes: tuple[Tune, Tune]
    #: The tune-ok that the broker hears.
    frame: bytes


class Offer:
    """What a client is offered by what its broker proposes."""

    def __init__(self, asked: amqp.ConnectionTune, listener: Listener, upstream: Upstream) -> None:
        self.asked = asked
        self.upstream = upstream
        tune = self.tune = offer_of(asked, listener, upstream)
        #: The tune that the client hears.
        self.frame = frame_of(amqp.ConnectionTune, tune.channel_max, tune.frame_max, tune.heartbeat)
        self._settled: Derived[amqp.ConnectionTuneOk, Agreement | None] = Derived(self._settle)

    def agreed(self, answer: amqp.ConnectionTuneOk) -> Agreement | None:
        """What holds after this answer; None: it wants what it was not offered."""
        return self._settled.of(answer)

    def _settle(self, answer: amqp.ConnectionTuneOk) -> Agreement | None:
        try:
            client = settled(self.tune, answer)
        except ProtocolViolation:
            return None
        broker = tune_for(self.asked, self.upstream, client, NATIVE)
        frame = frame_of(amqp.ConnectionTuneOk, broker.channel_max, broker.frame_max, broker.heartbeat)
        return Agreement((client, broker), frame)


@attrs.define(eq=False)
class Agreements:
    """Those of one listener."""

    listener: Listener
    #: By the ids of what is proposed and of the settings, which the offer keeps.
    _offers: dict[tuple[int, int], Offer] = attrs.field(factory=dict, init=False)

    def offer(self, asked: amqp.ConnectionTune, upstream: Upstream) -> Offer | None:
        """What is offered; None: the broker proposes what cannot be kept to."""
        key = id(asked), id(upstream)
        known = self._offers.get(key)
        if known is None:
            if too_small(asked.frame_max) is not None:
                return None
            if len(self._offers) >= _MOST:
                self._offers.clear()
            known = self._offers[key] = Offer(asked, self.listener, upstream)
        return known
