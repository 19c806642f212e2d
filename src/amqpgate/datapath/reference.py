"""The scanner in plain Python: the executable specification of the data path's contract.

``scan(lane, buf, pos, end, now, spans)`` walks the frames in ``buf[pos:end]``. It writes the upstream
hop's channel numbers into those of a client, appends to ``spans`` the pieces ``(start, stop)`` that go to the
other side as they are, and returns ``(at, verdict, stop)``:

* ``MORE``: all before ``at`` is dealt with; ``buf[at:end]`` is the beginning of a frame, and ``stop``
  is where that frame will end (``at`` where even its header is incomplete).
* ``THROTTLED``: all before ``at`` is dealt with; scan again from there at ``lane.ready_at``.
* anything else: all before ``at`` is dealt with, and the frame ``buf[at:stop]`` is the caller's.

Heartbeats and what is dropped are dealt with by being in no span. Nothing is forwarded before its
frame is complete and checked. ``now`` is in seconds, on any clock that only goes forward.

The compiled scanner (``_scan``) has the same names with the same meaning, and the tests drive both
with the same streams. They may differ in one thing: which flow makes room for a new one.
"""

from __future__ import annotations

from struct import Struct

import attrs

from amqpgate.datapath.confirms import Confirms
from amqpgate.datapath.tables import (
    DISCARD,
    DOWN_ACTIONS,
    FLOW_KEY_OCTETS,
    FLOWS,
    HEADER_NEXT,
    METHOD_NEXT,
    OPEN,
    PEEKED_HEADER,
    UP_ACTIONS,
    Action,
    Show,
    Side,
    Verdict,
)
from amqpgate.wire.generated import v0_9_1 as amqp

Buffer = bytearray | memoryview

#: type, channel, payload size (AMQP 0-9-1, section 4.2.3).
_HEAD = Struct(">BHI")
_CHANNEL = Struct(">H")
#: class id and method id at the start of a method's payload.
_METHOD = Struct(">I")
#: Delivery tag and the bit ``multiple`` of basic.ack; basic.nack has another bit beside it.
_ANSWER = Struct(">QB")
#: class id, weight, body size (section 4.2.6.1), then at least one word of property flags.
_CONTENT = Struct(">HHQ")
_CONTENT_MIN = _CONTENT.size + 2

#: More than any disk holds; the compiled scanner counts with a sign.
_MOST_BODY = (1 << 62) - 1

_CLASS_BASIC = amqp.BasicPublish.CLASS_ID
#: Of the property flags (section 4.2.6.1): there are headers; more flags follow (no version uses that).
_CONTENT_TYPE = 1 << 15
_CONTENT_ENCODING = 1 << 14
_HEADERS = 1 << 13
_DELIVERY_MODE = 1 << 12
_MORE_FLAGS = 1
#: The methods of a refused channel that are not dropped.
_CLOSES = frozenset({amqp.ChannelClose.INDEX, amqp.ChannelCloseOk.INDEX})


@attrs.define(eq=False)
class Bucket:
    """A token bucket: ``rate`` tokens per second, at most ``burst`` at once.

    What passes may take it below zero, by one message at most; nothing passes before it is above
    zero again. So the average is exact whatever the size of messages.
    """

    rate: float
    burst: float
    tokens: float = attrs.field(init=False)
    stamp: float = attrs.field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.tokens = self.burst

    def ready_at(self, now: float) -> float:
        """``now`` where a message may pass, else when it may."""
        if now > self.stamp:
            self.tokens = min(self.burst, self.tokens + (now - self.stamp) * self.rate)
            self.stamp = now
        return now if self.tokens > 0 else now - self.tokens / self.rate + 1 / self.rate


@attrs.define(eq=False)
class Flow:
    """One set of publish arguments: what happens to such messages, and what passed."""

    #: Debited by one for each message.
    message_buckets: tuple[Bucket, ...] = ()
    #: Debited by the octets of each body.
    octet_buckets: tuple[Bucket, ...] = ()
    #: One message in so many is shown to the control plane; 0 is none.
    sample_every: int = 0
    #: How much of it is shown.
    show: Show = Show.METHOD
    #: Swallow the messages whole, without an upcall.
    drop: bool = False
    #: Show a message whose content header has one of these property flags,
    peek_flags: int = 0
    #: or (nearly certainly) one of these headers, by name, UTF-8,
    peek_headers: tuple[bytes, ...] = ()
    #: or more octets of body than this; below zero: however many.
    peek_body: int = -1
    #: or a delivery-mode of 0, which is none.
    peek_mode_0: bool = False
    messages: int = attrs.field(default=0, init=False)
    octets: int = attrs.field(default=0, init=False)
    _unsampled: int = attrs.field(default=0, init=False)
    _generation: int = attrs.field(default=0, init=False)

    @property
    def _peeks(self) -> bool:
        return bool(self.peek_flags or self.peek_headers or self.peek_mode_0) or self.peek_body >= 0

    def _trips(self, header: bytes) -> bool:
        """Whether a message with this content header, as payload of its frame, must be shown."""
        (flags,) = _CHANNEL.unpack_from(header, _CONTENT.size)
        if flags & (self.peek_flags | _MORE_FLAGS):
            return True
        if 0 <= self.peek_body < _CONTENT.unpack_from(header)[2]:
            return True
        if self.peek_mode_0 and flags & _DELIVERY_MODE and not _has_mode(header, flags):
            return True
        return bool(flags & _HEADERS) and any(
            bytes([len(name)]) + name in header[_CONTENT_MIN:] for name in self.peek_headers
        )

    def _samples(self) -> bool:
        if not self.sample_every:
            return False
        self._unsampled += 1
        if self._unsampled < self.sample_every:
            return False
        self._unsampled = 0
        return True


class FlowTable:
    """Publish arguments (or those of deliveries) to flows; ``_key`` says which. Bounded.

    ``flush`` makes every flow a miss, at no cost; a flow that is installed again counts on.
    """

    def __init__(self) -> None:
        self._flows: dict[bytes, Flow] = {}
        self._generation = 1
        self._octets = 0

    def __len__(self) -> int:
        return len(self._flows)

    def install(self, key: bytes, flow: Flow) -> None:
        """The next publish with these arguments hits ``flow``."""
        self._forget(key)
        if self._octets + len(key) > FLOW_KEY_OCTETS:
            self._flows.clear()
            self._octets = 0
        if len(self._flows) >= FLOWS:
            self._forget(next(iter(self._flows)))
        self._octets += len(key)
        flow._generation = self._generation
        self._flows[key] = flow

    def _forget(self, key: bytes) -> None:
        if self._flows.pop(key, None) is not None:
            self._octets -= len(key)

    def get(self, key: bytes) -> Flow | None:
        """The flow that a publish with these arguments would hit."""
        return self._hit(key)

    def flush(self) -> None:
        """Every publish is a miss until its flow is installed again."""
        self._generation += 1

    def _hit(self, key: bytes) -> Flow | None:
        flow = self._flows.get(key)
        return flow if flow is not None and flow._generation == self._generation else None


@attrs.define(eq=False)
class _Content:
    """One direction of a channel: what must come next, and what happens to it."""

    due: int = METHOD_NEXT
    flow: Flow | None = None
    show: int = Show.NOTHING
    drop: bool = False
    #: Headers of messages that passed.
    messages: int = 0

    def forget(self) -> None:
        """Whatever is under way ends here."""
        self.due, self.flow, self.show, self.drop = METHOD_NEXT, None, Show.NOTHING, False


@attrs.define(eq=False)
class _Channel:
    state: int
    #: The channel's number on the other hop.
    to: int
    #: The control plane hears the broker's acks and nacks.
    shows_acks: bool = False
    #: It hears the client's acks, nacks and rejects.
    shows_settles: bool = False
    #: Which of them have passed; None: nobody asks.
    confirms: Confirms | None = None
    up: _Content = attrs.field(factory=_Content)
    down: _Content = attrs.field(factory=_Content)


class Channels:
    """The open channels of one session, shared by both of its lanes."""

    def __init__(self) -> None:
        self._open: dict[int, _Channel] = {}

    def __len__(self) -> int:
        return len(self._open)

    def state(self, number: int) -> int:
        """OPEN, DISCARD, or 0 for closed."""
        channel = self._open.get(number)
        return 0 if channel is None else channel.state

    def open(self, number: int, to: int | None = None) -> None:
        """The channel carries frames; on the other hop its number is ``to``."""
        self._open[number] = _Channel(OPEN, number if to is None else to)

    def remap(self, number: int, to: int) -> None:
        """From now on its number on the other hop is ``to``."""
        self._open[number].to = to

    def to(self, number: int) -> int:
        """Its number on the other hop; 0 where it is closed."""
        channel = self._open.get(number)
        return 0 if channel is None else channel.to

    def discard(self, number: int) -> None:
        """Drop what the client sends on it, but for its closes."""
        channel = self._open[number]
        channel.state = DISCARD
        channel.up.forget()

    def close(self, number: int) -> None:
        """Forget it. Closing a closed channel does nothing."""
        self._open.pop(number, None)

    def expect_header(self, side: Side, number: int, flow: Flow | None, show: int = Show.NOTHING) -> None:
        """The control plane let a message of ``side`` pass: its content follows, and counts for ``flow``."""
        channel = self._open[number]
        content = channel.up if side is Side.CLIENT else channel.down
        content.forget()
        content.due, content.flow, content.show = HEADER_NEXT, flow, show

    def drop_next(self, side: Side, number: int) -> None:
        """The control plane refused a message of ``side`` at its method: its content is dropped."""
        self.expect_header(side, number, None)
        self._content(side, number).drop = True

    def drop_rest(self, side: Side, number: int) -> None:
        """The control plane refused a message of ``side`` that was shown: what is left of it is dropped."""
        content = self._content(side, number)
        content.show = Show.NOTHING
        content.drop = content.due != METHOD_NEXT

    def is_dropping(self, side: Side, number: int) -> bool:
        """Whether what is left of the message of ``side`` that is under way is dropped."""
        return self._content(side, number).drop

    def uncount(self, side: Side, number: int) -> None:
        """The message of ``side`` whose header was shown did not pass."""
        self._content(side, number).messages -= 1

    def show_rest(self, side: Side, number: int) -> None:
        """Show what is left of the message under way."""
        self._content(side, number).show = Show.BODY

    def show_acks(self, number: int, shown: bool = True) -> None:
        """From now on every ack and nack of the broker on this channel is an upcall, or is not any more."""
        self._open[number].shows_acks = shown

    def show_settles(self, number: int, shown: bool = True) -> None:
        """From now on every ack, nack and reject of the client on this channel is an upcall, or is not."""
        self._open[number].shows_settles = shown

    def count_confirms(self, number: int) -> None:
        """What is published from now on the broker confirms: count its answers as they pass."""
        channel = self._open[number]
        channel.confirms = Confirms(channel.up.messages)

    def unconfirmed(self, number: int) -> int:
        """How many publishes since ``count_confirms`` may be unanswered; 0 only when none is."""
        channel = self._open[number]
        assert channel.confirms is not None, "confirms are counted"
        return channel.confirms.due(channel.up.messages)

    def is_half_way(self, side: Side) -> bool:
        """Whether a message of ``side`` has begun on some channel, and not ended, and is not dropped."""
        return any(
            content.due != METHOD_NEXT and not content.drop
            for content in (
                channel.up if side is Side.CLIENT else channel.down for channel in self._open.values()
            )
        )

    def messages(self, side: Side, number: int) -> int:
        """How many messages of ``side`` have passed since the channel was opened, by their headers."""
        return self._content(side, number).messages

    def _content(self, side: Side, number: int) -> _Content:
        channel = self._open[number]
        return channel.up if side is Side.CLIENT else channel.down

    def due(self, side: Side, number: int) -> int:
        """What must come next from ``side``: METHOD_NEXT, HEADER_NEXT, or octets of body."""
        channel = self._open.get(number)
        if channel is None:
            return METHOD_NEXT
        return (channel.up if side is Side.CLIENT else channel.down).due


@attrs.define(eq=False)
class Lane:
    """One direction of one session: what the scanner must know, and what it counts."""

    #: Where the bytes come from.
    side: Side
    #: Largest frame that this side may send, in octets, header and end octet included.
    frame_max: int
    #: Largest frame that the other side takes, likewise.
    out_frame_max: int
    channels: Channels
    #: None: every publish may pass, and nothing is counted by flow.
    flows: FlowTable | None = None
    #: Messages that no flow is about, got or returned, are upcalls at their method.
    shows_content: bool = attrs.field(default=False, init=False)
    #: Every basic.nack is an upcall: the other side has none.
    shows_nacks: bool = attrs.field(default=False, init=False)
    messages: int = attrs.field(default=0, init=False)
    #: Octets of message bodies.
    octets: int = attrs.field(default=0, init=False)
    frames: int = attrs.field(default=0, init=False)
    #: After ``THROTTLED``: when to scan again, on the clock of ``now``.
    ready_at: float = attrs.field(default=0.0, init=False)
    #: Since when the next message has waited for a bucket, on the same clock; 0: it has not.
    held_since: float = attrs.field(default=0.0, init=False)


def scan(
    lane: Lane, buf: Buffer, pos: int, end: int, now: float, spans: list[tuple[int, int]]
) -> tuple[int, Verdict, int]:
    """Walk the frames in ``buf[pos:end]``; see the module for the contract."""
    start = pos  # of the span that is being collected
    channels = lane.channels._open
    # Like RabbitMQ, a payload of frame-max octets passes: eight more than the standard allows, for
    # the clients that count without the overhead. What we send keeps to the standard.
    largest = lane.frame_max
    out_largest = lane.out_frame_max - 8
    upward = lane.side is Side.CLIENT
    actions = UP_ACTIONS if upward else DOWN_ACTIONS
    stop = pos
    while True:
        if end - pos < 7:
            verdict, stop = Verdict.MORE, pos
            break
        kind, number, size = _HEAD.unpack_from(buf, pos)
        if kind not in (1, 2, 3, 8):
            verdict, stop = Verdict.BAD_TYPE, end
            break
        if size > largest:
            verdict, stop = Verdict.TOO_LARGE, end
            break
        stop = pos + size + 8
        if stop > end:
            verdict = Verdict.MORE
            break
        if buf[stop - 1] != amqp.FRAME_END:
            verdict = Verdict.BAD_END
            break
        if kind == 8:
            if number or size:
                verdict = Verdict.BAD_HEARTBEAT
                break
            if start < pos:
                spans.append((start, pos))
            pos = start = stop
            continue
        channel = channels.get(number)
        if channel is None:
            # Only a method can be right here: channel.open, or one of the connection's own.
            if kind == 1 and size >= 4:
                verdict = Verdict.METHOD
            elif kind == 1:
                verdict = Verdict.MALFORMED
            elif number:
                verdict = Verdict.NOT_OPEN
            else:
                verdict = Verdict.HEADER_UNASKED if kind == 2 else Verdict.BODY_UNASKED
            break
        if upward and channel.state == DISCARD:
            if kind == 1 and size >= 4 and _METHOD.unpack_from(buf, pos + 7)[0] in _CLOSES:
                verdict = Verdict.METHOD
                break
            if start < pos:
                spans.append((start, pos))
            pos = start = stop
            continue
        content = channel.up if upward else channel.down
        due = content.due
        if kind == 1:
            if due:
                verdict = Verdict.HEADER_DUE if due == HEADER_NEXT else Verdict.BODY_DUE
                break
            if size < 4:
                verdict = Verdict.MALFORMED
                break
            (index,) = _METHOD.unpack_from(buf, pos + 7)
            action = actions.get(index)
            if action is None:
                verdict = Verdict.METHOD
                break
            if lane.shows_content and action is Action.CONTENT:
                verdict = Verdict.METHOD
                break
            if lane.shows_nacks and index == amqp.BasicNack.INDEX:
                verdict = Verdict.METHOD
                break
            if action is Action.FORWARD:
                confirms = None if upward else channel.confirms
                if confirms is not None and index != amqp.BasicGetEmpty.INDEX and size == 13:
                    confirms.answered(*_ANSWER.unpack_from(buf, pos + 11))
                if channel.shows_settles if upward else channel.shows_acks:
                    verdict = Verdict.METHOD
                    break
            if upward and size > out_largest:
                verdict = Verdict.UNSPLITTABLE
                break
            if action is Action.PUBLISH or action is Action.DELIVER:
                key = _key(action, buf, pos + 11, stop - 1)
                if key is None:
                    verdict = Verdict.MALFORMED
                    break
                if lane.flows is not None:
                    flow = lane.flows._hit(key)
                    if flow is None:
                        verdict = Verdict.MISS
                        break
                    if not flow.drop:
                        ready = _ready_at(flow, now)
                        if ready > now:
                            lane.ready_at = ready
                            lane.held_since = lane.held_since or now
                            verdict = Verdict.THROTTLED
                            break
                        if flow._peeks:
                            shown, peeked = _peek(flow, buf, stop, end, number)
                            if peeked:
                                verdict = Verdict.MORE
                                stop = peeked if peeked > stop else pos
                                break
                            if shown:
                                verdict = Verdict.SHOWN
                                break
                        if flow._samples():
                            verdict = Verdict.SHOWN
                            break
                    content.flow, content.drop = flow, flow.drop
                content.due, content.show = HEADER_NEXT, Show.NOTHING
            elif action is Action.CONTENT:
                content.due, content.show = HEADER_NEXT, Show.NOTHING
        elif kind == 2:
            if due != HEADER_NEXT:
                verdict = Verdict.BODY_DUE if due else Verdict.HEADER_UNASKED
                break
            if size < _CONTENT_MIN:
                verdict = Verdict.MALFORMED
                break
            class_id, _weight, body = _CONTENT.unpack_from(buf, pos + 7)
            if class_id != _CLASS_BASIC:
                verdict = Verdict.CLASS_DIFFERS
                break
            if upward and size > out_largest and not content.drop:
                verdict = Verdict.UNSPLITTABLE
                break
            if body > _MOST_BODY:
                verdict = Verdict.MALFORMED
                break
            content.due = body
            _count(lane, content, body)
            if content.show >= Show.HEADER:
                verdict = Verdict.HEADER
                break
        else:
            if due <= 0:
                verdict = Verdict.HEADER_DUE if due else Verdict.BODY_UNASKED
                break
            if size > due:
                verdict = Verdict.BODY_OVERRUN
                break
            content.due = due - size
            if content.show >= Show.BODY:
                verdict = Verdict.BODY
                break
            if size > out_largest and not content.drop:
                verdict = Verdict.REFRAME
                break
        lane.frames += 1
        if content.drop:
            if start < pos:
                spans.append((start, pos))
            start = stop
            content.drop = content.due != METHOD_NEXT
        elif upward and channel.to != number:
            _CHANNEL.pack_into(buf, pos + 1, channel.to)
        pos = stop
    if start < pos:
        spans.append((start, pos))
    return pos, verdict, stop


def _peek(flow: Flow, buf: Buffer, at: int, end: int, number: int) -> tuple[bool, int]:
    """Whether the message whose method ends at ``at`` must be shown; and if that cannot be told yet, where
    its header will end, or 1.

    What does not follow at once is not waited for: the control plane holds the method until it comes. What
    is wrong with the header is found when it is scanned itself.
    """
    if end - at < 7:
        return False, 1
    kind, channel, size = _HEAD.unpack_from(buf, at)
    if kind != 2 or channel != number or size > PEEKED_HEADER:
        return True, 0
    stop = at + size + 8
    if stop > end:
        return False, stop
    if size < _CONTENT_MIN:
        return False, 0
    return flow._trips(bytes(buf[at + 7 : stop - 1])), 0


def _has_mode(header: bytes, flags: int) -> bool:
    """Whether the delivery-mode of a content header is not 0; no, too, where it lies beyond the end."""
    at = _CONTENT_MIN
    for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
        if flags & flag:
            at += 1 + header[at] if at < len(header) else 1
    if flags & _HEADERS:
        at += 4 + int.from_bytes(header[at : at + 4], "big") if at + 4 <= len(header) else len(header)
    return at < len(header) and header[at] != 0


def _key(action: Action, buf: Buffer | bytes, at: int, end: int) -> bytes | None:
    """What a flow is found by; None where the lengths inside do not fill the payload exactly.

    publish: exchange, routing key, bits (section 1.8.3.7), without the ticket. deliver: consumer
    tag, exchange, routing key (section 1.8.3.9), without delivery tag and redelivered.
    """
    if action is Action.PUBLISH:
        start = at + 2
        exchange_end = _shortstr_end(buf, start, end)
        key_end = _shortstr_end(buf, exchange_end, end)
        return bytes(buf[start:end]) if key_end + 1 == end else None
    tag_end = _shortstr_end(buf, at, end)
    start = tag_end + 9
    if _shortstr_end(buf, _shortstr_end(buf, start, end), end) != end:
        return None
    return bytes(buf[at:tag_end]) + bytes(buf[start:end])


def is_publish(buf: Buffer, pos: int, stop: int) -> bool:
    """Whether the lengths inside this basic.publish fill its frame exactly."""
    return _key(Action.PUBLISH, buf, pos + 11, stop - 1) is not None


def flow_key(side: Side, frame: Buffer | bytes) -> bytes:
    """What ``FlowTable`` knows the message by that this publish (from the client) or deliver begins."""
    key = _key(Action.PUBLISH if side is Side.CLIENT else Action.DELIVER, frame, 11, len(frame) - 1)
    assert key is not None, "the scanner has checked the frame"
    return key


def _shortstr_end(buf: Buffer | bytes, at: int, end: int) -> int:
    """Where the short string at ``at`` ends; beyond ``end`` where it does not fit."""
    return at + 1 + buf[at] if at < end else end + 1


def _ready_at(flow: Flow, now: float) -> float:
    ready = now
    for bucket in flow.message_buckets:
        ready = max(ready, bucket.ready_at(now))
    for bucket in flow.octet_buckets:
        ready = max(ready, bucket.ready_at(now))
    return ready


def _count(lane: Lane, content: _Content, octets: int) -> None:
    flow = content.flow
    content.flow = None
    if flow is not None:
        flow.messages += 1
        flow.octets += octets
    if content.drop:
        return
    content.messages += 1
    lane.held_since = 0.0
    lane.messages += 1
    lane.octets += octets
    if flow is not None:
        for bucket in flow.message_buckets:
            bucket.tokens -= 1
        for bucket in flow.octet_buckets:
            bucket.tokens -= octets


def reframe(frame: Buffer | bytes, frame_max: int) -> bytes:
    """Cut one body frame into body frames of at most ``frame_max`` octets each."""
    _kind, channel, size = _HEAD.unpack_from(frame, 0)
    step = frame_max - 8
    out = bytearray()
    for at in range(7, 7 + size, step):
        piece = frame[at : min(at + step, 7 + size)]
        out += _HEAD.pack(3, channel, len(piece))
        out += piece
        out.append(amqp.FRAME_END)
    return bytes(out)
