"""Messages that pass, and of which the control plane gets a copy: many at once, after a scan.

A flow says how much of each body (`Flow.capture`), or of each sample's (`Flow.capture_samples`). What is
captured has passed every rule of its flow, and is not shown for it. Messages that are larger than
`CAPTURED_BYTES`, that have their body in several frames, whose header is not well-formed, or none of which
may be captured now (`CaptureGate`), are shown instead. A body whose frame has begun to come is waited for.
"""

from __future__ import annotations

from typing import TypeAlias

from amqpgate.datapath.flows import Flow
from amqpgate.datapath.framing import CONTENT, CONTENT_MIN, Buffer
from amqpgate.datapath.properties import NO_PROPERTIES, are_properties
from amqpgate.datapath.tables import CAPTURED_BYTES
from amqpgate.protocol.frames import FRAME_BODY, FRAME_END, FRAME_HEAD, FRAME_OVERHEAD
from amqpgate.wire.generated import v0_9_1 as amqp

#: Of a sample: how many messages it stands for, its number among those of its channel, what it was stamped
#: with (the numbers of its trace and its span, 24 bytes, or none), and for how long it waited for a limit.
Sample: TypeAlias = tuple[int, int, bytes, float]

#: Its flow, its channel as the sender numbers it, the payload of its content header, the beginning of its
#: body, and what there is to say of a sample; None: it was no sample's turn, but each is captured.
Captured: TypeAlias = tuple[Flow, int, bytes, bytes, Sample | None]


def whole_message(
    buf: Buffer, method: int, at: int, end: int, number: int, header_largest: int, body_largest: int
) -> int | None:
    """Where the message ends whose method is at ``method``, and its header's frame, which is whole, at
    ``at``.

    Below zero: it may end there, with the sign reversed, and is not whole; -1: where is not known yet. None:
    it is not one that is captured.
    """
    size: int = FRAME_HEAD.unpack_from(buf, at)[2]
    stop = at + size + FRAME_OVERHEAD
    if not CONTENT_MIN <= size <= header_largest or buf[stop - 1] != FRAME_END:
        return None
    declared: int
    start = at + FRAME_HEAD.size
    class_id, weight, declared = CONTENT.unpack_from(buf, start)
    if class_id != amqp.BasicPublish.CLASS_ID or weight or buf[start + CONTENT_MIN - 1] & NO_PROPERTIES:
        return None
    if not are_properties(buf, start + CONTENT.size, stop - 1):
        return None
    if not declared:
        return stop
    if declared > body_largest or stop + declared + FRAME_OVERHEAD - method > CAPTURED_BYTES:
        return None
    if end - stop < FRAME_HEAD.size:
        return -1
    if FRAME_HEAD.unpack_from(buf, stop) != (FRAME_BODY, number, declared):
        return None
    last = stop + declared + FRAME_OVERHEAD
    if last > end:
        return -last
    return last if buf[last - 1] == FRAME_END else None


def capture(flow: Flow, buf: Buffer, at: int, sample: Sample | None) -> Captured:
    """A copy of the message, which is whole, and whose header's frame is at ``at``."""
    _kind, number, size = FRAME_HEAD.unpack_from(buf, at)
    start = at + FRAME_HEAD.size
    stop = start + size
    body = stop + 1 + FRAME_HEAD.size
    most = flow.captures if sample is None else max(flow.captures, flow.samples)
    length = min(CONTENT.unpack_from(buf, start)[2], most)
    return flow, number, bytes(buf[start:stop]), bytes(buf[body : body + length]), sample
