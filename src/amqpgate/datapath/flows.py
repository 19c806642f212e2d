"""Token buckets, flows, and the table that finds a flow by a message's arguments, in plain Python.

The compiled scanner (``_scan``) has ``Bucket``, ``Flow`` and ``FlowTable`` with the same meaning. What has an
underscore is for the plain scanner (``reference``) alone.
"""

from __future__ import annotations

import mmap
from array import array
from typing import Final

import attrs

from amqpgate.datapath.framing import CONTENT, CONTENT_MIN, Buffer
from amqpgate.datapath.header_rules import HeaderRules
from amqpgate.datapath.meters import Meter
from amqpgate.datapath.rewrites import Rewrite
from amqpgate.datapath.tables import FLOW_KEY_BYTES, FLOWS, Action, Contexts, Show, Side
from amqpgate.datapath.trace_context import Carried, carried
from amqpgate.values import define

#: Bytes of a bucket in memory that is shared: tokens and time, both doubles.
LEVEL: Final = 16

#: Of the property flags (section 4.2.6.1): there are headers; more flags follow (no version uses that).
_CONTENT_TYPE = 1 << 15
_CONTENT_ENCODING = 1 << 14
_HEADERS = 1 << 13
_DELIVERY_MODE = 1 << 12
_MORE_FLAGS = 1


# To look a member of an enum up takes Python 3.11 a detour each time.
_PUBLISH: Final = Action.PUBLISH
_CLIENT: Final = Side.CLIENT


class Bucket:
    """A token bucket: ``rate`` tokens per second, at most ``burst`` at once.

    What passes may take it below zero, by the messages that have begun; none begins before it is above zero
    again. So the average is exact whatever the size of messages.
    """

    __slots__ = ("_level", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        #: Tokens, and when they were counted.
        self._level: array[float] | memoryview[float] = array("d", [burst, 0.0])

    @property
    def tokens(self) -> float:
        """What may pass now, as of ``stamp``."""
        return self._level[0]

    @tokens.setter
    def tokens(self, tokens: float) -> None:
        self._level[0] = tokens

    @property
    def stamp(self) -> float:
        """When the tokens were counted, in seconds."""
        return self._level[1]

    @stamp.setter
    def stamp(self, stamp: float) -> None:
        self._level[1] = stamp

    def share(self, memory: bytearray | mmap.mmap, offset: int) -> None:
        """Have the tokens in memory that other processes have, too: `LEVEL` bytes from ``offset``, which is
        a multiple of 8. They are as they are there. Plain Python may lose a count where two processes change
        them at once.
        """
        if isinstance(self._level, memoryview):
            raise ValueError("the bucket is shared already")
        if offset < 0 or offset % 8 or offset + LEVEL > len(memory):
            raise ValueError("no place of the memory for a bucket")
        self._level = memoryview(memory)[offset : offset + LEVEL].cast("d")

    def take(self, tokens: float) -> None:
        """They have been used."""
        self.tokens -= tokens

    def ready_at(self, now: float) -> float:
        """``now`` where a message may pass, else when it may."""
        if now > self.stamp:
            self.tokens = min(self.burst, self.tokens + (now - self.stamp) * self.rate)
            self.stamp = now
        return now if self.tokens > 0 else now - self.tokens / self.rate + 1 / self.rate


@define(eq=False)
class CaptureGate:
    """Whether messages may be captured. Shared by the flows of those who take them; they shut it when they
    are full."""

    is_shut: bool = attrs.field(default=False, init=False)

    def shut(self) -> None:
        """What would be captured is shown instead."""
        self.is_shut = True

    def open(self) -> None:
        """Messages may be captured again."""
        self.is_shut = False


@define(eq=False)
class Flow:
    """One set of publish arguments: what happens to such messages, and what passed."""

    #: Debited by one for each message, when its header passes.
    message_buckets: tuple[Bucket, ...] = ()
    #: Debited by the bytes of each body, as they come.
    byte_buckets: tuple[Bucket, ...] = ()
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
    #: or more bytes of body than this; below zero: however many.
    peek_body: int = -1
    #: or a delivery-mode of 0, which is none.
    peek_mode_0: bool = False
    #: or that does not surely pass these rules.
    header_rules: HeaderRules | None = None
    #: or carries a trace context, which none of those who sample the flow has to decide about then.
    peek_contexts: Contexts = Contexts.NONE
    #: Bytes of body that are captured of each message that passes unshown; below zero: none is captured.
    captures: int = attrs.field(default=-1, init=False)
    #: Likewise of samples, which are captured instead of shown; below zero: they are shown.
    samples: int = attrs.field(default=-1, init=False)
    #: While it is shut they are shown instead.
    gate: CaptureGate | None = attrs.field(default=None, init=False)
    #: What becomes of each message that passes unshown, or of each sample (`Rewrite.stamps`).
    rewrite: Rewrite | None = attrs.field(default=None, init=False)
    #: What those know of it who get what is captured, by their names. None: nobody does.
    notes: dict[str, object] | None = attrs.field(default=None, init=False)
    #: What passes is counted there as well.
    meter: Meter | None = attrs.field(default=None, init=False)
    messages: int = attrs.field(default=0, init=False)
    body_bytes: int = attrs.field(default=0, init=False)
    #: Messages since the last sample.
    unsampled: int = attrs.field(default=0, init=False)
    #: Messages that are to be shown for their trace context are captured.
    captures_contexts: bool = attrs.field(default=False, init=False)
    _shows_samples: bool = attrs.field(default=False, init=False)
    #: A bit for each rule by which messages pass, and of which the control plane knows.
    _told: int = attrs.field(default=0, init=False)
    #: Those that decide about all its messages, as the control plane knows them. Flows share it.
    rules: tuple[object, ...] = attrs.field(default=(), init=False)
    _reported: int = attrs.field(default=0, init=False)

    @property
    def _peeks(self) -> bool:
        """Whether the content header decides if a message is shown."""
        peeks = self.peek_flags or self.peek_headers or self.peek_mode_0 or self.peek_contexts
        if peeks or self.peek_body >= 0 or self.header_rules is not None:
            return True
        return self.captures >= 0 or (self.rewrite is not None and not self.rewrite.stamps)

    def decided_by(self, rules: tuple[object, ...]) -> None:
        """These rules decide about all its messages."""
        self.rules = rules

    def unreported(self) -> int:
        """How many messages have passed since this was asked last."""
        more, self._reported = self.messages - self._reported, self.messages
        return more

    def rewrite_by(self, rewrite: Rewrite) -> None:
        """From now on this becomes of each message; what it cannot be told of is shown.

        Or of each sample that is captured (`Rewrite.stamps`), but of none that carries a trace context.
        """
        self.rewrite = rewrite
        if rewrite.stamps and not self.peek_contexts:
            self.peek_contexts = Contexts.ALL

    def capture(self, who: str, note: object, body_bytes: int, gate: CaptureGate | None = None) -> None:
        """From now on so many bytes of body, at least, are captured of each message, also for ``who``, with
        what he has to know of the flow; see ``captures``."""
        self.notes = {**(self.notes or {}), who: note}
        self.captures = max(self.captures, body_bytes)
        self.gate = gate or self.gate

    def capture_samples(self, who: str, note: object, body_bytes: int) -> bool:
        """Likewise of those that are samples, which are not shown then. False: they are, since each is shown
        to somebody, or somebody has to be shown samples. To be said before anybody chooses."""
        if self.sample_every or self._shows_samples:
            return False
        self.notes = {**(self.notes or {}), who: note}
        self.samples = max(self.samples, body_bytes)
        return True

    def show_samples(self) -> None:
        """Somebody has to be shown them: they are not captured, nor stamped."""
        self._shows_samples = True
        self.captures_contexts = False
        self.samples = -1
        if self.rewrite is not None and self.rewrite.stamps:
            self.rewrite = None

    def _is_sample_next(self) -> bool:
        """Whether the next message is a sample that is captured, if it carries no trace context."""
        return self.samples >= 0 and 0 < self.sample_every <= self.unsampled + 1

    def _trips(self, header: bytes) -> bool:
        """Whether a message with this content header, as payload of its frame, must be shown."""
        flags = int.from_bytes(header[CONTENT.size : CONTENT_MIN], "big")
        if flags & (self.peek_flags | _MORE_FLAGS):
            return True
        if 0 <= self.peek_body < CONTENT.unpack_from(header)[2]:
            return True
        if self.peek_mode_0 and flags & _DELIVERY_MODE and not _has_mode(header, flags):
            return True
        return bool(flags & _HEADERS) and any(
            bytes([len(name)]) + name in header[CONTENT_MIN:] for name in self.peek_headers
        )

    def _passes_rules(self, header: bytes) -> bool:
        """Whether a message with this content header surely passes, and it is known by which rules."""
        rules = self.header_rules
        if rules is None:
            return True
        passed = rules.passes(header)
        if passed < 0 or passed == rules.admitted:
            return passed >= 0
        if self.meter is not None:
            # It counts for the rule that admits those like it.
            return False
        is_told = bool(self._told >> passed & 1)
        self._told |= 1 << passed
        return is_told

    def _ready_at(self, now: float) -> float:
        """``now`` where all its buckets let a message pass, else when they do."""
        buckets = self.message_buckets + self.byte_buckets
        return max((bucket.ready_at(now) for bucket in buckets), default=now)

    def show_contexts(self) -> None:
        """Where it shows some messages for the trace context that they carry: show all that carry one."""
        if self.peek_contexts:
            self.peek_contexts = Contexts.ALL
            self.captures_contexts = False

    def capture_contexts(self) -> None:
        """Messages whose trace context decides are captured like samples instead of shown, and stand for none
        but themselves: for 0. To be said behind ``capture_samples``; until ``show_contexts``."""
        self.captures_contexts = self.samples >= 0 and self.peek_contexts != Contexts.NONE

    def _carries(self, header: bytes) -> tuple[bool, bool]:
        """Of a message with this content header: whether it carries a trace context that is looked for, and
        whether it is shown for that."""
        if not self.peek_contexts:
            return False, False
        what = carried(header)
        is_shown = what is Carried.MAYBE_SAMPLED or (
            what is Carried.UNSAMPLED and self.peek_contexts == Contexts.ALL
        )
        return what is not Carried.NONE, is_shown

    def _samples(self) -> bool:
        """Whether the message that passes now is shown for ``sample_every``; it is counted."""
        if not self.sample_every:
            return False
        self.unsampled += 1
        if self.unsampled < self.sample_every:
            return False
        self.unsampled = 0
        return True


class FlowTable:
    """Publish arguments (or those of deliveries) to flows; ``key_of`` says which. Bounded.

    ``flush`` makes every flow a miss, at no cost; a flow that is installed again counts on.
    """

    def __init__(self) -> None:
        #: With the generation that it was installed in.
        self._flows: dict[bytes, tuple[Flow, int]] = {}
        self._generation = 1
        self._key_bytes = 0

    def __len__(self) -> int:
        return len(self._flows)

    def install(self, key: bytes, flow: Flow) -> None:
        """The next publish with these arguments hits ``flow``."""
        self._forget(key)
        if self._key_bytes + len(key) > FLOW_KEY_BYTES:
            self._flows.clear()
            self._key_bytes = 0
        if len(self._flows) >= FLOWS:
            self._forget(next(iter(self._flows)))
        self._key_bytes += len(key)
        self._flows[key] = flow, self._generation

    def _forget(self, key: bytes) -> None:
        if self._flows.pop(key, None) is not None:
            self._key_bytes -= len(key)

    def get(self, key: bytes) -> Flow | None:
        """The flow that a publish with these arguments would hit."""
        flow, generation = self._flows.get(key, (None, 0))
        return flow if generation == self._generation else None

    def flows(self) -> list[tuple[bytes, Flow]]:
        """Those that can be hit, with their keys (``key_of``)."""
        return [(key, flow) for key, (flow, of) in self._flows.items() if of == self._generation]

    def flush(self) -> None:
        """Every publish is a miss until its flow is installed again."""
        self._generation += 1


def key_of(action: Action, buf: Buffer | bytes, at: int, end: int) -> bytes | None:
    """What a flow is found by; None where the lengths inside do not fill the payload exactly.

    publish: exchange, routing key, bits (section 1.8.3.7), without the ticket. deliver: channel, since
    consumer tags are the channel's; consumer tag, exchange, routing key (section 1.8.3.9), without delivery
    tag and redelivered. ``at`` is behind the method's number.
    """
    if action is _PUBLISH:
        start = at + 2
        exchange_end = _shortstr_end(buf, start, end)
        key_end = _shortstr_end(buf, exchange_end, end)
        return bytes(buf[start:end]) if key_end + 1 == end else None
    tag_end = _shortstr_end(buf, at, end)
    start = tag_end + 9
    if _shortstr_end(buf, _shortstr_end(buf, start, end), end) != end:
        return None
    return bytes(buf[at - 10 : at - 8]) + bytes(buf[at:tag_end]) + bytes(buf[start:end])


def is_publish(buf: Buffer, pos: int, stop: int) -> bool:
    """Whether the lengths inside this basic.publish fill its frame exactly."""
    return key_of(_PUBLISH, buf, pos + 11, stop - 1) is not None


def flow_key(side: Side, frame: Buffer | bytes) -> bytes:
    """What ``FlowTable`` knows the message by that this publish (from the client) or deliver begins."""
    key = key_of(_PUBLISH if side is _CLIENT else Action.DELIVER, frame, 11, len(frame) - 1)
    assert key is not None, "the scanner has checked the frame"
    return key


def _shortstr_end(buf: Buffer | bytes, at: int, end: int) -> int:
    """Where the short string at ``at`` ends; beyond ``end`` where it does not fit."""
    return at + 1 + buf[at] if at < end else end + 1


def _has_mode(header: bytes, flags: int) -> bool:
    """Whether the delivery-mode of a content header is not 0; no, too, where it lies beyond the end."""
    at = CONTENT_MIN
    for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
        if flags & flag:
            at += 1 + header[at] if at < len(header) else 1
    if flags & _HEADERS:
        at += 4 + int.from_bytes(header[at : at + 4], "big") if at + 4 <= len(header) else len(header)
    return at < len(header) and header[at] != 0
