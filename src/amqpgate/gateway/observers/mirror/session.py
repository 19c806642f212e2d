"""Which publishes of a session are copied for a mirror, and how the copy is made.

::

    method ── shown ─▶ held until its header ─▶ allowed, and chosen ─▶ body frames: copied, and passed on
                                                       └─ not chosen ─▶ the body by the data path
    or captured on the data path, and told of when it has passed: as it came, or as its flow has rewritten it

Which are shown, and which of them are chosen: `limits.sampler`. Whatever becomes of a copy, the message goes
its way: nothing here waits, refuses or raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amqpgate.datapath.captures import Captured, Sample
from amqpgate.datapath.scanner import ByChannel, Channels, Flow
from amqpgate.datapath.tables import METHOD_NEXT, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler, stands_for
from amqpgate.gateway.observers.mirror.queue import MirroredMessage, MirrorQueue
from amqpgate.gateway.session.observer import Message, Release, Sees, SessionObserver
from amqpgate.gateway.session.publish_denial import ChannelPublishes
from amqpgate.policy import Mirror
from amqpgate.policy.engine.operations import PROPERTY_FLAGS
from amqpgate.telemetry.mirrors import Reason
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

PART: Final = "mirrors"


#: Of the payload of a content header: the size of the body, and the property flags.
_SIZE: Final = slice(4, 12)
_FLAGS: Final = slice(12, 14)
_USER_ID: Final = PROPERTY_FLAGS["user_id"]


@attrs.frozen(eq=False)
class CopiedKind:
    """Publishes of one flow, each of which is copied, or samples of which are."""

    #: As the broker gets them.
    exchange: str
    routing_key: str
    is_sampled: bool = False

    @classmethod
    def of(cls, flow: Flow, method: amqp.BasicPublish, *, is_sampled: bool) -> CopiedKind:
        """Those of a flow."""
        if flow.rewrite is not None:
            changed = decode_method(flow.rewrite.method)
            assert isinstance(changed, amqp.BasicPublish)
            method = changed
        return cls(method.exchange, method.routing_key, is_sampled)


def _copies_each(flow: Flow) -> bool:
    kind = (flow.notes or {}).get(PART)
    return isinstance(kind, CopiedKind) and not kind.is_sampled


def _passed(flow: Flow, header: bytes, sample: Sample | None) -> bytes:
    """The header of a message that was captured, as the broker gets it."""
    ids = b"" if sample is None else sample[2]
    if flow.rewrite is None or (flow.rewrite.stamps and not ids):
        return header
    return flow.rewrite.passed(header, ids)


@attrs.frozen(eq=False)
class Feed:
    """Where the copies of a session go."""

    mirror: Mirror
    sampler: Sampler
    queue: MirrorQueue


@attrs.define(eq=False)
class MirrorObserver(SessionObserver):
    """Copies what one session publishes. Holds at most one unfinished copy per channel."""

    part = PART

    channels: Channels
    #: Those of them that are open, by number.
    states: ByChannel[ChannelPublishes]
    #: None: nothing is copied any more.
    feed: Feed | None
    #: Whether what the client sends is what the broker gets, unless its flow rewrites it.
    is_native: bool = True
    #: Channel number to the copy whose body is coming, and where it goes.
    _copies: dict[int, tuple[MirroredMessage, MirrorQueue]] = attrs.field(factory=dict, init=False)

    def follow(self, feed: Feed | None) -> None:
        """Copies go there from now on; those under way end where they began."""
        self.feed = feed

    def sees(self) -> Sees:
        return Sees.NOTHING if self.feed is None else Sees.PUBLISHES

    def samplers(self, message: Message, flow: Flow) -> Sequence[Sampler]:
        feed = self.feed
        if feed is None or message.operation is None or not feed.mirror.wants(message.method.exchange):
            return ()
        return () if _copies_each(flow) else (feed.sampler,)

    def meters(self, message: Message, flow: Flow) -> None:
        feed, method = self.feed, message.method
        if (
            feed is not None
            and self.is_native
            and message.operation is not None
            and isinstance(method, amqp.BasicPublish)
            and feed.mirror.wants(method.exchange)
        ):
            is_sampled, most = feed.sampler.every != 1, feed.mirror.max_body_bytes
            kind = CopiedKind.of(flow, method, is_sampled=is_sampled)
            if not is_sampled:
                flow.capture(PART, kind, most)
            elif feed.sampler.every:
                flow.capture_samples(PART, kind, most)

    def released(self, release: Release, frames: bytes) -> bytes:
        """Begin the copy of a publish if it is to be copied, as the primary broker gets it."""
        held, feed = release.held, self.feed
        if feed is not None and feed.mirror.wants(held.method.exchange):
            # Of those that are captured each that is shown stands for itself.
            weight = 1 if _copies_each(held.flow) else held.weight
            self._copy(feed, release, frames, weight)
        return frames

    def captured(self, side: Side, messages: Sequence[Captured]) -> None:
        feed = self.feed
        if feed is None or side is not Side.CLIENT:
            return
        for flow, channel, header, body, sample in messages:
            kind = (flow.notes or {}).get(PART)
            if isinstance(kind, CopiedKind):
                weight = 1 if not kind.is_sampled else sample[0] if sample is not None else 0
                if weight and feed.sampler.count(weight):
                    self._copy_captured(feed, kind, channel, _passed(flow, header, sample), body)

    def _copy_captured(self, feed: Feed, kind: CopiedKind, channel: int, header: bytes, body: bytes) -> None:
        """One that is chosen."""
        queue = feed.queue
        user = None
        if int.from_bytes(header[_FLAGS], "big") & _USER_ID:
            properties = decode_header(header).properties
            assert isinstance(properties, amqp.BasicProperties)
            user = properties.user_id
        size = int.from_bytes(header[_SIZE], "big")
        message = MirroredMessage(kind.exchange, kind.routing_key, header, size, user)
        queue.account.sampled()
        why = self._left_out(feed, channel, size)
        if why is not None:
            queue.account.dropped(why)
        elif queue.reserve(message):
            # Of which it was known that there is room.
            queue.extend(message, body)
            queue.put(message)

    def _left_out(self, feed: Feed, channel: int, size: int) -> Reason | None:
        """Why a publish that is chosen is not copied."""
        if self.states[channel].transacts:
            # Whether it is ever published is not known yet.
            return "transaction"
        return "too_large" if size > feed.mirror.max_body_bytes else None

    def _copy(self, feed: Feed, release: Release, frames: bytes, weight: int) -> None:
        if not weight:
            return
        queue, channel, flow = feed.queue, release.channel, release.held.flow
        start = 8 + int.from_bytes(frames[3:7], "big")
        payload = frames[start + 7 : -1]
        method: Method = release.held.method
        header = release.header
        try:
            if frames[:start] != release.held.frame or payload != release.frame[7:-1]:
                # It was changed.
                method, header = decode_method(frames[7 : start - 1]), decode_header(payload)
            elif header is None:
                header = decode_header(payload)
        except ProtocolViolation:
            # The broker will not take it either, and the mirror's connection is not only this client's.
            queue.account.sampled()
            queue.account.dropped("malformed")
            return
        if not feed.sampler.count(stands_for(weight, flow, header, len(payload))):
            return
        queue.account.sampled()
        why = self._left_out(feed, channel, header.body_size)
        if why is not None:
            queue.account.dropped(why)
            return
        assert isinstance(method, amqp.BasicPublish)
        assert isinstance(header.properties, amqp.BasicProperties)
        message = MirroredMessage(
            method.exchange, method.routing_key, payload, header.body_size, header.properties.user_id
        )
        self._abandon_ended(channel)
        if not queue.reserve(message):
            return
        if message.body_size:
            self._copies[channel] = message, queue
            self.channels.show_rest(Side.CLIENT, channel)
        else:
            queue.put(message)

    def content(self, side: Side, channel: int, frame: memoryview) -> bool:
        if side is Side.CLIENT and channel in self._copies:
            self._extend(channel, frame)
        return False

    def _extend(self, channel: int, frame: memoryview) -> None:
        """A body frame that was shown has been passed on."""
        message, queue = self._copies[channel]
        if not queue.extend(message, frame[7:-1]):
            del self._copies[channel]
            queue.drop(message, queue.closed or "full")
        elif len(message.body) == message.body_size:
            del self._copies[channel]
            queue.put(message)

    def ended(self) -> None:
        for channel in list(self._copies):
            self._abandon(channel)

    def _abandon_ended(self, beginning: int) -> None:
        """Messages whose channel was closed meanwhile, and perhaps opened again."""
        for channel in list(self._copies):
            if channel == beginning or self.channels.due(Side.CLIENT, channel) == METHOD_NEXT:
                self._abandon(channel)

    def _abandon(self, channel: int) -> None:
        message, queue = self._copies.pop(channel)
        queue.drop(message, "unfinished")
