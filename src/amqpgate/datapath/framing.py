"""Frames in a buffer (AMQP 0-9-1, sections 4.2.3 and 4.2.6), and the check that each one undergoes first."""

from __future__ import annotations

from struct import Struct

from amqpgate.datapath.tables import ScanResult
from amqpgate.protocol.frames import (
    FRAME_END,
    FRAME_HEAD,
    FRAME_HEARTBEAT,
    FRAME_OVERHEAD,
    FRAME_TYPES,
    body_frames,
)

Buffer = bytearray | memoryview

CHANNEL = Struct(">H")
#: class id and method id at the start of a method's payload.
METHOD = Struct(">I")
#: class id, weight, body size (section 4.2.6.1), then at least one word of property flags.
CONTENT = Struct(">HHQ")
CONTENT_MIN = CONTENT.size + 2

#: More than any disk holds; the compiled scanner counts with a sign.
MOST_BODY = (1 << 62) - 1


def check_frame(
    buf: Buffer, pos: int, end: int, largest: int
) -> tuple[ScanResult | None, int, int, int, int]:
    """The frame at ``pos``: what is wrong with it, its type, channel and payload size, and where it stops.

    None: nothing is wrong. ``MORE``: it is not whole in ``buf[pos:end]``; it stops at ``pos`` where even its
    header is incomplete. What has no end that can be told stops at ``end``. Like RabbitMQ, a payload of
    ``largest`` bytes, which is frame-max, passes: eight more than the standard allows, for clients that
    count without the overhead.
    """
    if end - pos < FRAME_HEAD.size:
        return ScanResult.MORE, 0, 0, 0, pos
    kind, number, size = FRAME_HEAD.unpack_from(buf, pos)
    stop = pos + size + FRAME_OVERHEAD
    result = None
    if kind not in FRAME_TYPES:
        result, stop = ScanResult.BAD_TYPE, end
    elif size > largest:
        result, stop = ScanResult.TOO_LARGE, end
    elif stop > end:
        result = ScanResult.MORE
    elif buf[stop - 1] != FRAME_END:
        result = ScanResult.BAD_END
    elif kind == FRAME_HEARTBEAT and (number or size):
        result = ScanResult.BAD_HEARTBEAT
    return result, kind, number, size, stop


def reframe(frame: Buffer | bytes, frame_max: int) -> bytes:
    """Cut one body frame into body frames of at most ``frame_max`` bytes each."""
    _kind, channel, size = FRAME_HEAD.unpack_from(frame, 0)
    return b"".join(body_frames(channel, bytes(frame[7 : 7 + size]), frame_max))
