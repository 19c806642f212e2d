"""Which publishes of a session are copied for a mirror, and how the copy is made.

::

    method ── shown ─▶ held until its header ─▶ allowed, and chosen ─▶ body frames: copied, and passed on
                                                       └─ not chosen ─▶ the body by the data path

Which are shown, and which of them are chosen: `sampling`. Whatever becomes of a copy, the message itself goes
its way: nothing here waits, refuses or raises.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.scanner import Channels, Flow
from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler, stands_for
from amqpgate.gateway.observers.mirror.queue import MirroredMessage, MirrorQueue
from amqpgate.policy import Mirror
from amqpgate.telemetry.faults import contained
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.frozen(eq=False)
class Feed:
    """Where the copies of a session go."""

    mirror: Mirror
    sampler: Sampler
    queue: MirrorQueue


@attrs.define(eq=False)
class Copier:
    """Of one session. Holds at most one unfinished copy per channel."""

    #: None: not any more.
    feed: Feed | None
    #: Channel number to the copy whose body is coming, and where it goes.
    _copies: dict[int, tuple[MirroredMessage, MirrorQueue]] = attrs.field(factory=dict, init=False)

    @contained("mirrors", None)
    def sampler(self, exchange: str) -> Sampler | None:
        """Who chooses among the messages to an exchange; None: none of them are copied."""
        feed = self.feed
        return feed.sampler if feed is not None and feed.mirror.wants(exchange) else None

    @contained("mirrors", None)
    def copy(
        self, channels: Channels, channel: int, frames: bytes, weight: int, flow: Flow, transacts: bool
    ) -> None:
        """A publish that was shown, and passes: begin its copy if it is to be copied.

        ``frames`` are its method and its content header, as the primary broker gets them.
        """
        if self.feed is None or not weight:
            return
        queue = self.feed.queue
        start = 8 + int.from_bytes(frames[3:7], "big")
        try:
            method = decode_method(frames[7 : start - 1])
            payload = frames[start + 7 : -1]
            header = decode_header(payload)
        except ProtocolViolation:
            # The broker will not take it either, and the mirror's connection is not only this client's.
            queue.account.sampled()
            queue.account.dropped("malformed")
            return
        if not self.feed.sampler.count(stands_for(weight, flow, header, len(payload))):
            return
        queue.account.sampled()
        if transacts:
            # Whether it is ever published is not known yet.
            queue.account.dropped("transaction")
            return
        if header.body_size > self.feed.mirror.max_body_bytes:
            queue.account.dropped("too_large")
            return
        assert isinstance(method, amqp.BasicPublish)
        assert isinstance(header.properties, amqp.BasicProperties)
        message = MirroredMessage(
            method.exchange, method.routing_key, payload, header.body_size, header.properties.user_id
        )
        self._abandon_ended(channels, channel)
        if not queue.reserve(message):
            return
        if message.body_size:
            self._copies[channel] = message, queue
            channels.show_rest(Side.CLIENT, channel)
        else:
            queue.put(message)

    @contained("mirrors", None)
    def body(self, channel: int, frame: memoryview) -> None:
        """A body frame that was shown, and has been passed on."""
        if channel not in self._copies:
            return
        message, queue = self._copies[channel]
        if not queue.extend(message, frame[7:-1]):
            del self._copies[channel]
            queue.drop(message, queue.closed or "full")
        elif len(message.body) == message.body_size:
            del self._copies[channel]
            queue.put(message)

    @contained("mirrors", None)
    def end(self) -> None:
        """The session is over."""
        for channel in list(self._copies):
            self._abandon(channel)

    def _abandon_ended(self, channels: Channels, beginning: int) -> None:
        """Messages whose channel was closed meanwhile, and perhaps opened again."""
        for channel in list(self._copies):
            if channel == beginning or channels.due(Side.CLIENT, channel) == METHOD_NEXT:
                self._abandon(channel)

    def _abandon(self, channel: int) -> None:
        message, queue = self._copies.pop(channel)
        queue.drop(message, "unfinished")
