"""The scanner in plain Python: the executable specification of the data path's contract.

``scan(lane, buf, pos, end, now, spans)`` walks the frames in ``buf[pos:end]``. It writes the upstream
hop's channel numbers into those of a client, appends to ``spans`` the pieces ``(start, stop)`` that go to the
other side as they are, and to ``captured`` the messages that pass and are captured (``captures``). Where
messages are rewritten (``rewrites``), all that goes to the other side is in ``made`` instead of ``spans``. It
returns ``(at, result, stop)``:

* ``MORE``: all before ``at`` is dealt with; ``buf[at:end]`` is the beginning of a frame, and ``stop``
  is where that frame will end (``at`` where even its header is incomplete).
* ``JUDGED``: rules were asked, or messages captured, enough for once: all before ``at`` is dealt with; scan
  again from there.
* ``THROTTLED``: all before ``at`` is dealt with; scan again from there at ``lane.ready_at``.
* anything else: all before ``at`` is dealt with, and the frame ``buf[at:stop]`` is the caller's.

Heartbeats and what is dropped are dealt with by being in no span. Nothing is forwarded before its
frame is complete and checked. ``now`` is in seconds, on any clock that only goes forward.

Its tables are in ``flows`` and ``channels``. The compiled scanner (``_scan``) has the same names with the
same meaning, and the tests drive both with the same streams. They may differ in one thing: which flow makes
room for a new one.
"""

from __future__ import annotations

import random
from struct import Struct

import attrs

from amqpgate.datapath.captures import Captured, capture, whole_message
from amqpgate.datapath.channels import Channels, PendingContent, ScannedChannel
from amqpgate.datapath.flows import Bucket, CaptureGate, Flow, FlowTable, key_of
from amqpgate.datapath.framing import CHANNEL, CONTENT, CONTENT_MIN, METHOD, MOST_BODY, Buffer, check_frame
from amqpgate.datapath.header_rules import PATIENCE, HeaderRules
from amqpgate.datapath.meters import Meter
from amqpgate.datapath.rewrites import Rewrite
from amqpgate.datapath.tables import (
    CAPTURED_MESSAGES,
    DISCARD,
    DOWN_ACTIONS,
    HEADER_NEXT,
    HELD_NEXT,
    METHOD_NEXT,
    PEEKED_HEADER,
    UP_ACTIONS,
    Action,
    ScanResult,
    Show,
    Side,
)
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_END,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)
from amqpgate.wire.generated import v0_9_1 as amqp

__all__ = [
    "Bucket",
    "CaptureGate",
    "Channels",
    "Flow",
    "FlowTable",
    "HeaderRules",
    "Lane",
    "Meter",
    "Rewrite",
    "scan",
]

#: Delivery tag and the bit ``multiple`` of basic.ack; basic.nack has another bit beside it.
_ANSWER = Struct(">QB")

_CLASS_BASIC = amqp.BasicPublish.CLASS_ID
_GET_ANSWERS = frozenset({amqp.BasicGetOk.INDEX, amqp.BasicGetEmpty.INDEX})
#: Bytes of a basic.get-ok up to the bits behind its delivery tag.
_LEAST_GET_OK = 13
#: The methods of a refused channel that are not dropped.
_CLOSES = frozenset({amqp.ChannelClose.INDEX, amqp.ChannelCloseOk.INDEX})


@attrs.define(eq=False)
class Lane:
    """One direction of one session: what the scanner must know, and what it counts."""

    #: Where the bytes come from.
    side: Side
    #: Largest frame that this side may send, in bytes, header and end byte included.
    frame_max: int
    #: Largest frame that the other side takes, likewise.
    out_frame_max: int
    channels: Channels
    #: None: every publish may pass, and nothing is counted by flow.
    flows: FlowTable | None = None
    #: Bytes of body that a message may have. A publish with more is ``APART``, and to be refused.
    most_body: int = MOST_BODY
    #: Messages that no flow is about, got or returned, are upcalls at their method; so is basic.get-empty.
    shows_content: bool = attrs.field(default=False, init=False)
    #: Every basic.nack is an upcall: the other side has none.
    shows_nacks: bool = attrs.field(default=False, init=False)
    #: Messages that passed whole.
    messages: int = attrs.field(default=0, init=False)
    #: Bytes of their bodies.
    body_bytes: int = attrs.field(default=0, init=False)
    #: Bytes of bodies that came, and were refused.
    dropped: int = attrs.field(default=0, init=False)
    frames: int = attrs.field(default=0, init=False)
    #: After ``THROTTLED``: when to scan again, on the clock of ``now``.
    ready_at: float = attrs.field(default=0.0, init=False)
    #: Since when the next message has waited for a bucket, on the same clock; 0: it has not.
    held_since: float = attrs.field(default=0.0, init=False)
    _reported: int = attrs.field(default=0, init=False)

    def use_flows(self, used: bool) -> None:
        """Whether messages pass by flows. Where they did before, all that is known is a miss."""
        if not used or self.flows is None:
            self.flows = FlowTable() if used else None
        else:
            self.flows.flush()

    @property
    def uses_flows(self) -> bool:
        """Else every message may pass, and nothing is counted by flow."""
        return self.flows is not None

    def known_flows(self) -> list[tuple[bytes, Flow]]:
        """Those that can be hit; see ``FlowTable.flows``."""
        return [] if self.flows is None else self.flows.flows()

    def unreported(self) -> int:
        """How many messages have passed since this was asked last."""
        more, self._reported = self.messages - self._reported, self.messages
        return more

    def add_body(self, body_bytes: int) -> None:
        """A message that has passed had so many bytes of body more than were scanned."""
        self.body_bytes += body_bytes

    def settle(self, number: int, now: float) -> None:
        """The control plane has let a message pass whose header was shown: if it has no body, it is whole."""
        channel = self.channels._open.get(number)
        if channel is not None:
            content = channel.content(self.side)
            if content.counts and content.due == METHOD_NEXT:
                _count(self, content, now)


def scan(
    lane: Lane,
    buf: Buffer,
    pos: int,
    end: int,
    now: float,
    spans: list[tuple[int, int]],
    captured: list[Captured] | None = None,
    made: bytearray | None = None,
) -> tuple[int, ScanResult, int]:
    """Walk the frames in ``buf[pos:end]``; see the module for the contract."""
    start = pos  # of the span that is being collected
    channels = lane.channels._open
    # What we send keeps to the standard, where what we take need not.
    out_largest = lane.out_frame_max - FRAME_OVERHEAD
    upward = lane.side is Side.CLIENT
    actions = UP_ACTIONS if upward else DOWN_ACTIONS
    spent = 0  # on rules
    header_end = 0  # of a message that is rewritten
    while True:
        found, kind, number, size, stop = check_frame(buf, pos, end, lane.frame_max)
        if found is not None:
            result = found
            break
        if kind == FRAME_HEARTBEAT:
            if start < pos:
                spans.append((start, pos))
            pos = start = stop
            continue
        channel = channels.get(number)
        if channel is None:
            # Only a method can be right here: channel.open, or one of the connection's own.
            if kind == FRAME_METHOD and size >= 4:
                result = ScanResult.METHOD
            elif kind == FRAME_METHOD:
                result = ScanResult.MALFORMED
            elif number:
                result = ScanResult.NOT_OPEN
            else:
                result = ScanResult.HEADER_UNASKED if kind == FRAME_HEADER else ScanResult.BODY_UNASKED
            break
        if upward and channel.state == DISCARD:
            if kind == FRAME_METHOD and size >= 4 and METHOD.unpack_from(buf, pos + 7)[0] in _CLOSES:
                result = ScanResult.METHOD
                break
            if kind == FRAME_BODY:
                lane.dropped += size
            if start < pos:
                spans.append((start, pos))
            pos = start = stop
            continue
        content = channel.up if upward else channel.down
        due = content.due
        if kind == FRAME_METHOD:
            if due:
                result = ScanResult.HEADER_DUE if due == HEADER_NEXT else ScanResult.BODY_DUE
                if due == HELD_NEXT:
                    result = ScanResult.HELD
                break
            if size < 4:
                result = ScanResult.MALFORMED
                break
            (index,) = METHOD.unpack_from(buf, pos + 7)
            action = actions.get(index)
            if action is None:
                result = ScanResult.METHOD
                break
            if action is Action.CONTENT:
                content.kind = index
            if index in _GET_ANSWERS and not upward and channel.unacked is not None:
                is_whole = index == amqp.BasicGetOk.INDEX and size >= _LEAST_GET_OK
                channel.unacked.got(_ANSWER.unpack_from(buf, pos + 11)[0] if is_whole else None)
            if lane.shows_content and (action is Action.CONTENT or index == amqp.BasicGetEmpty.INDEX):
                result = ScanResult.METHOD
                break
            if lane.shows_nacks and index == amqp.BasicNack.INDEX:
                result = ScanResult.METHOD
                break
            if action is Action.FORWARD:
                is_answer = not upward and index != amqp.BasicGetEmpty.INDEX and size == 13
                if is_answer and number == lane.channels.timed:
                    tag, bits = _ANSWER.unpack_from(buf, pos + 11)
                    lane.channels.answered(tag, bits, now)
                if is_answer and channel.confirms is not None:
                    channel.confirms.answered(*_ANSWER.unpack_from(buf, pos + 11))
                if channel.shows_settles if upward else channel.shows_acks:
                    result = ScanResult.METHOD
                    break
                if upward and size == 13 and channel.unacked is not None:
                    tag, bits = _ANSWER.unpack_from(buf, pos + 11)
                    channel.unacked.settled(tag, bool(bits & 1) and index != amqp.BasicReject.INDEX)
            if upward and size > out_largest:
                result = ScanResult.UNSPLITTABLE
                break
            if action is Action.PUBLISH or action is Action.DELIVER:
                content.kind = 0
                key = key_of(action, buf, pos + 11, stop - 1)
                if key is None:
                    result = ScanResult.MALFORMED
                    break
                flow, carries, rewritten = None, False, None
                captures = sampled = decides = False
                if lane.flows is not None:
                    flow = lane.flows.get(key)
                    if flow is None:
                        result = ScanResult.MISS
                        break
                    if not flow.drop:
                        ready = flow._ready_at(now)
                        if ready > now:
                            lane.ready_at = ready
                            lane.held_since = lane.held_since or now
                            result = ScanResult.THROTTLED
                            break
                        sampled = flow._is_sample_next()
                        if flow._peeks or sampled:
                            shown, peeked = _peek(flow, buf, stop, end, number)
                            if peeked:
                                result = ScanResult.MORE
                                stop = peeked if peeked > stop else pos
                                break
                            if shown and sampled and not _follows(buf, stop, number):
                                flow.unsampled = 0
                            header = b"" if shown else _header_at(buf, stop)
                            if len(header) >= CONTENT_MIN:
                                carries, decides = flow._carries(header)
                                sampled = sampled and not carries
                                shown = decides and not flow.captures_contexts
                                rules = None if shown else flow.header_rules
                                if rules is not None and rules.asks(header):
                                    if spent >= PATIENCE:
                                        result, stop = ScanResult.JUDGED, pos
                                        break
                                    spent += rules.weight
                                    shown = not flow._passes_rules(header)
                            captures = flow.captures >= 0 or sampled or decides
                            if not shown and captures:
                                found, last = _may_capture(lane, flow, buf, pos, stop, end, number, captured)
                                if found is not None:
                                    if found is ScanResult.SHOWN and sampled:
                                        flow.unsampled = 0
                                    result, stop = found, last
                                    break
                            rewrite = flow.rewrite
                            if not shown and rewrite is not None and (sampled or not rewrite.stamps):
                                rewritten = rewrite.header(_header_at(buf, stop), out_largest)
                                header_end = stop + len(header) + FRAME_OVERHEAD
                                shown = rewritten is None or buf[header_end - 1] != FRAME_END
                                # Others may choose among more: then not each of these is stamped.
                                shown |= bool(rewrite.stamps) and rewrite.stamps != flow.sample_every
                                if shown and sampled:
                                    flow.unsampled = 0
                            if shown:
                                result = ScanResult.SHOWN
                                break
                    content.drop = flow.drop
                if upward and not content.drop:
                    shown, peeked = _peek_size(lane, buf, stop, end, number)
                    if peeked:
                        result = ScanResult.MORE
                        stop = peeked if peeked > stop else pos
                        break
                    if shown:
                        result = ScanResult.APART
                        break
                if flow is not None and not flow.drop and not carries and flow._samples() and not sampled:
                    result = ScanResult.SHOWN
                    break
                ids = b""
                if flow is not None and flow.rewrite and rewritten is not None and flow.rewrite.stamps:
                    ids = _new_ids()
                    rewritten = flow.rewrite.stamped(rewritten, ids)
                if flow is not None and captures and captured is not None:
                    sample = None
                    if sampled or decides:
                        waited = now - lane.held_since if lane.held_since else 0.0
                        sample = flow.sample_every if sampled else 0, content.messages + 1, ids, waited
                    captured.append(capture(flow, buf, stop, sample))
                if flow is not None and flow.rewrite is not None and rewritten is not None:
                    assert made is not None, "who rewrites takes what is made"
                    spans.append((start, max(start, pos)))
                    _make(made, buf, spans)
                    made += flow.rewrite.frames(
                        channel.to if upward else number, rewritten, b"" if upward else bytes(buf[pos:stop])
                    )
                    # Behind the header, which is whole, and passes next.
                    start = header_end
                content.flow = flow
                if action is Action.DELIVER:
                    _delivered(channel, buf, pos + 11)
                content.due, content.show = HEADER_NEXT, Show.NOTHING
            elif action is Action.CONTENT:
                content.due, content.show = HEADER_NEXT, Show.NOTHING
        elif kind == FRAME_HEADER:
            if due != HEADER_NEXT:
                result = ScanResult.BODY_DUE if due else ScanResult.HEADER_UNASKED
                if due == HELD_NEXT:
                    result = ScanResult.HELD
                break
            if size < CONTENT_MIN:
                result = ScanResult.MALFORMED
                break
            class_id, _weight, body = CONTENT.unpack_from(buf, pos + 7)
            if class_id != _CLASS_BASIC:
                result = ScanResult.CLASS_DIFFERS
                break
            if upward and size > out_largest and not content.drop:
                result = ScanResult.UNSPLITTABLE
                break
            if body > lane.most_body and not upward:
                result = ScanResult.MALFORMED
                break
            _begin(lane, content, min(body, MOST_BODY))
            if upward and number == lane.channels.timed and not content.drop:
                lane.channels.published(content.messages, now)
            if content.show >= Show.HEADER or body > lane.most_body:
                result = ScanResult.HEADER
                break
            if not body:
                _count(lane, content, now)
        else:
            if due <= 0:
                result = ScanResult.HEADER_DUE if due else ScanResult.BODY_UNASKED
                if due == HELD_NEXT:
                    result = ScanResult.HELD
                break
            if size > due:
                result = ScanResult.BODY_OVERRUN
                break
            content.due = due - size
            _go_on(lane, content, size, now)
            if content.show >= Show.BODY:
                result = ScanResult.BODY
                break
            if size > out_largest and not content.drop:
                result = ScanResult.REFRAME
                break
        lane.frames += 1
        if content.drop:
            if start < pos:
                spans.append((start, pos))
            start = stop
            content.drop = content.due != METHOD_NEXT
        elif upward and channel.to != number:
            CHANNEL.pack_into(buf, pos + 1, channel.to)
        pos = stop
    if start < pos:
        spans.append((start, pos))
    if made:
        _make(made, buf, spans)
    if result is ScanResult.SHOWN and not upward:
        # Whatever the control plane makes of it.
        _delivered(channels[number], buf, pos + 11)
    return pos, result, stop


def _make(made: bytearray, buf: Buffer, spans: list[tuple[int, int]]) -> None:
    """What the spans are of follows what was made."""
    for first, last in spans:
        made += buf[first:last]
    spans.clear()


def _delivered(channel: ScannedChannel, buf: Buffer, at: int) -> None:
    end = at + 1 + buf[at]
    channel.delivered(bytes(buf[at + 1 : end]), int.from_bytes(buf[end : end + 8], "big"))


def _peek(flow: Flow, buf: Buffer, at: int, end: int, number: int) -> tuple[bool, int]:
    """Whether the message whose method ends at ``at`` must be shown; and if that cannot be told yet, where
    its header will end, or 1.

    What does not follow at once is not waited for: the control plane holds the method until it comes. What
    is wrong with the header is found when it is scanned itself.
    """
    if end - at < 7:
        return False, 1
    size: int = FRAME_HEAD.unpack_from(buf, at)[2]
    if not _follows(buf, at, number):
        return True, 0
    stop = at + size + FRAME_OVERHEAD
    if stop > end:
        return False, stop
    if size < CONTENT_MIN:
        return False, 0
    return flow._trips(bytes(buf[at + 7 : stop - 1])), 0


def _header_at(buf: Buffer, at: int) -> bytes:
    """The payload of the content header whose frame is there."""
    return bytes(buf[at + FRAME_HEAD.size : at + FRAME_HEAD.size + FRAME_HEAD.unpack_from(buf, at)[2]])


def _may_capture(
    lane: Lane,
    flow: Flow,
    buf: Buffer,
    method: int,
    at: int,
    end: int,
    number: int,
    captured: list[Captured] | None,
) -> tuple[ScanResult | None, int]:
    """Whether the message, whose header's frame is whole at ``at``, can be captured: None; or what is done
    instead, and the scan's ``stop``."""
    if captured is not None and len(captured) >= CAPTURED_MESSAGES:
        return ScanResult.JUDGED, method
    out_largest = max(lane.out_frame_max - FRAME_OVERHEAD, 0)
    largest_body = min(lane.frame_max, out_largest, lane.most_body)
    largest = min(lane.frame_max, out_largest) if lane.side is Side.CLIENT else lane.frame_max
    last = whole_message(buf, method, at, end, number, largest, largest_body)
    if last is None or (flow.gate is not None and flow.gate.is_shut):
        return ScanResult.SHOWN, at
    if last < 0:
        return ScanResult.MORE, method if last == -1 else -last
    return None, at


def _follows(buf: Buffer, at: int, number: int) -> bool:
    """Whether the next frame is the message's header, and no larger than a scanner waits for."""
    kind, channel, size = FRAME_HEAD.unpack_from(buf, at)
    return bool(kind == FRAME_HEADER and channel == number and size <= PEEKED_HEADER)


def _new_ids() -> bytes:
    """Numbers of a trace and a span, neither of which is 0."""
    return b"".join(random.randrange(1, 1 << 64).to_bytes(8, "little") for _ in range(3))  # noqa: S311


def _peek_size(lane: Lane, buf: Buffer, at: int, end: int, number: int) -> tuple[bool, int]:
    """Likewise, whether it declares more body than it may, or does not follow at once."""
    if end - at < FRAME_HEAD.size:
        return False, 1
    kind, channel, size = FRAME_HEAD.unpack_from(buf, at)
    if channel != number:
        return True, 0
    if kind != FRAME_HEADER or not CONTENT_MIN <= size <= lane.frame_max:
        # A violation, which is found when it is scanned itself.
        return False, 0
    stop = at + FRAME_HEAD.size + CONTENT.size
    if stop > end:
        return False, stop
    return CONTENT.unpack_from(buf, at + FRAME_HEAD.size)[2] > lane.most_body, 0


def _begin(lane: Lane, content: PendingContent, body: int) -> None:
    """A message's header has passed."""
    content.due = content.size = body
    content.counts = True
    if content.drop:
        return
    content.messages += 1
    lane.held_since = 0.0
    if content.flow is not None:
        for bucket in content.flow.message_buckets:
            bucket.take(1)


def _go_on(lane: Lane, content: PendingContent, body_bytes: int, now: float) -> None:
    """More of its body has come."""
    if content.drop or not content.counts:
        lane.dropped += body_bytes
    else:
        for bucket in (() if content.flow is None else content.flow.byte_buckets) + content.buckets:
            bucket.take(body_bytes)
    if content.counts and content.due == METHOD_NEXT:
        _count(lane, content, now)


def _count(lane: Lane, content: PendingContent, now: float) -> None:
    """A message is whole."""
    flow, body_bytes = content.flow, content.size
    if not content.drop:
        lane.messages += 1
        lane.body_bytes += body_bytes
        if content.kind:
            lane.channels.tell_apart(content.kind, body_bytes)
    if flow is not None:
        flow.messages += 1
        flow.body_bytes += body_bytes
        meter = content.meter or flow.meter
        if meter is not None:
            meter.count(1, body_bytes, now, body_bytes)
    content.settle_nothing()
