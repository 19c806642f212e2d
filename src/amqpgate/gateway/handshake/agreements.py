"""What hops settle on, kept for the next connection that is offered and answers the same."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

import attrs

from amqpgate.bridge import NATIVE
from amqpgate.config import USUAL_FRAME_MAX, Listener, Upstream
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.transport.repeated import Derived, frame_of
from amqpgate.gateway.upstream.broker_side import tune_for
from amqpgate.protocol.frames import FRAME_MIN_SIZE
from amqpgate.protocol.handshake import MAX_CHANNELS, Tune, negotiate, too_small
from amqpgate.protocol.sasl import repeatable, with_both_plain
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp

#: Offers that are kept, of one listener and of all.
_MOST: Final = 64


def _offered(start: amqp.ConnectionStart, *, is_read: bool, lends: bool) -> amqp.ConnectionStart:
    said = start.mechanisms.split()
    offered = with_both_plain(said)
    if is_read:
        # The client's login goes no further, or must have a token in it, and challenges have none.
        offered = repeatable(offered)
    if lends:
        offered = [name for name in offered if name != b"EXTERNAL"]
    return start if offered == said else attrs.evolve(start, mechanisms=b" ".join(offered))


#: What clients hear of a broker's start, by whether the gateway has to read their login, and the upstream
#: lends its certificate.
_STARTS: Final = {
    (is_read, lends): Derived[amqp.ConnectionStart, amqp.ConnectionStart](
        partial(_offered, is_read=is_read, lends=lends)
    )
    for is_read in (False, True)
    for lends in (False, True)
}


def lends_certificate(upstream: Upstream, listener: Listener) -> bool:
    """Whether SASL EXTERNAL would log an unproven client in by the gateway's certificate."""
    tls = upstream.tls
    return tls is not None and tls.cert is not None and not listener.proves_clients


def start_for(
    start: amqp.ConnectionStart, listener: Listener, upstream: Upstream, *, is_judged_here: bool = False
) -> amqp.ConnectionStart:
    """The broker's start, with the mechanisms that the client may use. ``is_judged_here``: only those in
    which the gateway finds a token."""
    is_read = upstream.has_login or is_judged_here
    return _STARTS[is_read, lends_certificate(upstream, listener)].of(start)


def offer_of(asked: amqp.ConnectionTune, listener: Listener, upstream: Upstream) -> Tune:
    """What a client is offered where its broker proposes this."""
    return _offer(
        (asked.channel_max, asked.frame_max),
        (listener.channel_max or 0, listener.frame_max or 0),
        (upstream.channel_max or 0, upstream.frame_max or 0),
        asked.heartbeat if listener.heartbeat is None else listener.heartbeat,
    )


@lru_cache(maxsize=_MOST)
def _offer(asked: tuple[int, int], own: tuple[int, int], theirs: tuple[int, int], heartbeat: int) -> Tune:
    """What a client is offered, given the largest channel and the largest frame that the broker proposes, and
    those that the settings have for the listener and for the upstream."""
    frame_max = own[1] or max(FRAME_MIN_SIZE, negotiate(asked[1], theirs[1] or USUAL_FRAME_MAX))
    channel_max = negotiate(asked[0], own[0], theirs[0])
    return Tune(frame_max=frame_max, channel_max=channel_max, heartbeat=heartbeat)


def settled(offer: Tune, answer: amqp.ConnectionTuneOk) -> Tune:
    """What holds on a client's hop after its answer to this offer. Raises ``ProtocolViolation``."""
    return offer.settle(
        Tune(answer.frame_max, answer.channel_max, answer.heartbeat), Tune(channel_max=MAX_CHANNELS)
    )


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


@define(eq=False)
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
