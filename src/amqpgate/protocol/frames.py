"""Frames: bytes to frames and back (AMQP 0-9-1, section 4.2.3 "General Frame Format").

::

    0      1         3             7                  size+7 size+8
    +------+---------+-------------+  +------------+  +-----------+
    | type | channel |    size     |  |  payload   |  | frame-end |
    +------+---------+-------------+  +------------+  +-----------+
     byte   short       long          size bytes       %xCE

Nothing here knows which frame may come when; that is ``content``'s and ``connection``'s business.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.violations import describe, unknown_frame
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.method import Method

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE

#: The types that every peer knows. 0-8 and 0-9 have 4 to 7 as well (out of band, trace); no broker does.
FRAME_TYPES: Final = frozenset({FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT})

#: Bytes of a frame around its payload.
FRAME_OVERHEAD: Final = 8

#: The smallest frame-max that may be agreed, and what holds before any is (constant frame-min-size).
FRAME_MIN_SIZE: Final = 4096

#: type, channel, size.
FRAME_HEAD: Final = Struct(">BHI")
_HEAD_SIZE: Final = FRAME_HEAD.size
_unpack_head: Final = FRAME_HEAD.unpack_from

HEARTBEAT: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"

_END: Final = bytes([FRAME_END])

#: Dead bytes at the front of the buffer are cut off once there are this many: seldom enough to cost
#: nothing, early enough to keep an idle connection small.
_COMPACT_AT: Final = 64 * 1024


class Frame(NamedTuple):
    """One frame; ``payload`` is without header and end byte."""

    type: int
    channel: int
    payload: bytes


class FrameDecoder:
    """Bytes in, frames out, whatever the split; time is linear in the bytes.

    ``frame_max`` is the largest frame in bytes, as in connection.tune; 0 means that none was agreed, and
    then nothing bounds what one frame makes us keep, so a caller with an untrusted peer sets its own cap.
    It may be changed between frames. Like RabbitMQ, a *payload* of ``frame_max`` bytes passes: eight
    more than the standard allows, for the clients that count without the overhead.

    Buffered are at most one frame and what ``feed`` was given after it.
    """

    __slots__ = ("_buffer", "_pos", "frame_max", "has_more", "is_broken")

    def __init__(self, frame_max: int = FRAME_MIN_SIZE) -> None:
        self.frame_max = frame_max
        #: Frame boundaries are lost: nothing that follows can be understood.
        self.is_broken = False
        #: Whether there are bytes that may be a frame. Asked, and not counted: each read asks.
        self.has_more = False
        self._buffer: bytes | bytearray = b""
        self._pos = 0

    def __len__(self) -> int:
        """How many bytes are buffered."""
        return len(self._buffer) - self._pos

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes as they were received."""
        if self._pos == len(self._buffer):
            # Mostly what is received is one frame, or some: then nothing is copied but payloads.
            self._buffer = data if isinstance(data, bytes) else bytearray(data)
            self._pos = 0
        else:
            if isinstance(self._buffer, bytes):
                self._buffer = bytearray(self._buffer)
            if self._pos >= _COMPACT_AT:
                del self._buffer[: self._pos]
                self._pos = 0
            self._buffer += data
        self.has_more = True

    def next(self) -> Frame | None:
        """The next whole frame, or None until more is fed.

        Raises :class:`ProtocolViolation` 501 for a frame that is too large (as soon as its size is
        known), lacks its end byte or has an unknown type, in this order, which is RabbitMQ's. The first
        two leave ``is_broken`` set, and calling again raises again; the third one can be passed over.
        """
        buffer, pos = self._buffer, self._pos
        available = len(buffer) - pos
        if available < _HEAD_SIZE:
            return None
        frame_type: int
        channel: int
        size: int
        frame_type, channel, size = _unpack_head(buffer, pos)
        if size > self.frame_max > 0:
            self.is_broken = True
            reason = f"{{frame_too_large,{size},{self.frame_max - FRAME_OVERHEAD}}}"
            raise _frame_error(frame_type, channel, size, reason)
        if available < size + FRAME_OVERHEAD:
            return None
        start = pos + _HEAD_SIZE
        end = start + size
        if buffer[end] != FRAME_END:
            self.is_broken = True
            raise _frame_error(frame_type, channel, size, "invalid_frame_end_marker")
        payload = buffer[start:end] if isinstance(buffer, bytes) else self._bytes(start, end)
        self._pos = end + 1
        self.has_more = available > size + FRAME_OVERHEAD
        if frame_type not in FRAME_TYPES:
            raise unknown_frame(frame_type, channel, payload)
        return Frame(frame_type, channel, payload)

    def untouched(self) -> bytes:
        """What was fed, where nothing of it has been taken and nothing was fed after it; else nothing."""
        buffer = self._buffer
        return buffer if self._pos == 0 and isinstance(buffer, bytes) else b""

    def begin(self, data: bytes) -> None:
        """These bytes are in no frame yet, and no others."""
        self._buffer, self._pos, self.has_more = data, 0, bool(data)

    def take(self, count: int) -> bytes | None:
        """The next ``count`` bytes raw, or None while there are fewer."""
        if len(self) < count:
            return None
        self._pos += count
        self.has_more = self._pos < len(self._buffer)
        return self._bytes(self._pos - count, self._pos)

    def peek(self) -> int | None:
        """The next byte, left where it is."""
        return self._buffer[self._pos] if self._pos < len(self._buffer) else None

    def take_rest(self) -> bytes:
        """All bytes that are in no frame yet; the decoder is empty afterwards."""
        data = bytes(self._buffer[self._pos :])
        self._buffer = b""
        self._pos = 0
        self.has_more = False
        return data

    def _bytes(self, start: int, end: int) -> bytes:
        if isinstance(self._buffer, bytes):
            return self._buffer[start:end]
        # Slicing a bytearray itself would copy twice.
        with memoryview(self._buffer) as view:
            return bytes(view[start:end])


def _frame_error(frame_type: int, channel: int, size: int, reason: str) -> ProtocolViolation:
    return ProtocolViolation(501, f"{describe(frame_type, size)}: {reason}", channel=channel)


def encode_frame(frame_type: int, channel: int, payload: bytes) -> bytes:
    """One frame; the caller keeps to the peer's frame-max."""
    return FRAME_HEAD.pack(frame_type, channel, len(payload)) + payload + _END


def method_frame(channel: int, method: Method, dialect: Dialect = RABBITMQ_0_9_1) -> bytes:
    """A method frame; the caller keeps to the peer's frame-max."""
    payload = method.encode(dialect)
    return FRAME_HEAD.pack(FRAME_METHOD, channel, len(payload)) + payload + _END


def body_frames(channel: int, body: bytes, frame_max: int = FRAME_MIN_SIZE) -> list[bytes]:
    """``body`` in frames of at most ``frame_max`` bytes each (0: one frame); none for an empty body."""
    step = frame_max - FRAME_OVERHEAD if frame_max else len(body)
    return [
        encode_frame(FRAME_BODY, channel, body[start : start + step])
        for start in range(0, len(body), step or 1)
    ]
