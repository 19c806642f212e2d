"""Which publishes of a session are copied for a mirror, and how the copy is made.

::

    method ── miss ──▶ a flow that shows one message in N, beginning anywhere among its first N
    method ── shown ─▶ held until its header ──▶ allowed, and due ──▶ body frames are shown: copied, passed on
                                                        └─ not due ──▶ the body by the data path

What is not shown costs nothing. N is a hundred over the percentage, rounded down. Each message that is shown
stands for N; so many are added up, times the percentage, and whenever that makes a hundred the message is
copied. Messages that a policy wants to see anyway stand for themselves.

Whatever becomes of a copy, the message itself goes its way: nothing here waits, refuses or raises.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.scanner import Channels, Flow
from amqpgate.datapath.tables import METHOD_NEXT, PEEKED_HEADER, Show, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.mirrorqueue import Message, Queue
from amqpgate.gateway.operations import content_of
from amqpgate.policy import Mirror, Peek
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp

_HUNDRED = 100.0
#: What adding up percentages may lose.
_ROUNDING = 1e-6
#: A flow counts to no more than this.
_MOST_EVERY = 1_000_000_000
#: Steps of this size spread evenly over a circle, however many there are.
_GOLDEN = (5**0.5 - 1) / 2


@attrs.define(eq=False)
class Sampler:
    """Chooses for all sessions of a process that take one route."""

    mirror: Mirror
    #: One message in so many of a flow is shown, so that what they stand for never makes more than a hundred.
    every: int = attrs.field(init=False)
    #: What has added up, in messages times percent.
    _credit: float = attrs.field(default=0.0, init=False)
    _phase: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        percent = self.mirror.percent
        self.every = min(_MOST_EVERY, int(_HUNDRED / percent + _ROUNDING)) if percent else 0

    def first(self) -> int:
        """Which message of a new flow is shown first: 1 to N, each as often.

        So routing keys that come once or a few times give their share, too.
        """
        self._phase = (self._phase + _GOLDEN) % 1
        return 1 + int(self._phase * self.every)

    def count(self, messages: int) -> bool:
        """One that stands for so many; whether it is to be copied."""
        self._credit += messages * self.mirror.percent
        if self._credit < _HUNDRED - _ROUNDING:
            return False
        self._credit -= _HUNDRED
        return True


@attrs.frozen(eq=False)
class Feed:
    """Where the copies of a session go."""

    sampler: Sampler
    queue: Queue


@attrs.define(eq=False)
class Copier:
    """Of one session. Holds at most one unfinished copy per channel."""

    #: None: not any more.
    feed: Feed | None
    #: Channel number to the copy whose body is coming, and where it goes.
    _copies: dict[int, tuple[Message, Queue]] = attrs.field(factory=dict, init=False)
    #: A new flow whose first message is shown.
    _first: Flow | None = attrs.field(default=None, init=False)

    def enlist(self, flow: Flow, method: amqp.BasicPublish) -> None:
        """A flow is about to be installed, for messages like this one."""
        if self.feed is None or not self.feed.sampler.mirror.wants(method.exchange):
            return
        flow.show = max(flow.show, Show.HEADER)
        if not flow.sample_every:
            flow.sample_every = self.feed.sampler.first()
            self._first = flow if flow.sample_every == 1 else None

    def weigh(self, flow: Flow, method: amqp.BasicPublish) -> int:
        """How many messages the one that is being shown stands for; 0: it is not to be copied."""
        first, self._first = self._first, None
        if self.feed is None or not self.feed.sampler.mirror.wants(method.exchange):
            return 0
        if flow.sample_every == 1 and flow is not first:
            return 1  # a policy looks at every one, or all are copied
        flow.sample_every = self.feed.sampler.every
        return flow.sample_every

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
        if weight > 1 and _was_peeked(flow, header, len(payload)):
            weight = 1
        if not self.feed.sampler.count(weight):
            return
        queue.account.sampled()
        if transacts:
            # Whether it is ever published is not known yet.
            queue.account.dropped("transaction")
            return
        if header.body_size > self.feed.sampler.mirror.max_body_bytes:
            queue.account.dropped("too_large")
            return
        assert isinstance(method, amqp.BasicPublish)
        assert isinstance(header.properties, amqp.BasicProperties)
        message = Message(
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

    def body(self, channel: int, frame: memoryview) -> None:
        """A body frame that was shown, and has been passed on."""
        if channel not in self._copies:
            return
        message, queue = self._copies[channel]
        message.body.extend(frame[7:-1])
        if len(message.body) == message.body_size:
            del self._copies[channel]
            queue.put(message)

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


def _was_peeked(flow: Flow, header: ContentHeader, header_size: int) -> bool:
    """Whether a policy wanted to see it, so that it does not stand for others."""
    if not (flow.peek_flags or flow.peek_headers or flow.peek_body >= 0 or flow.peek_mode_0):
        return False
    if header_size > PEEKED_HEADER:
        return True
    names = frozenset(name.decode() for name in flow.peek_headers)
    most = flow.peek_body if flow.peek_body >= 0 else None
    peek = Peek(False, flow.peek_flags, names, most, flow.peek_mode_0)
    return peek.catches(content_of(header))
