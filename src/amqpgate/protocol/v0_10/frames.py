"""Frames of AMQP 0-10: bytes to frames and back (chapter "Transport", "Frame Format").

::

      0       1       2       4          5       6         8          12        size
      +-------+-------+-------+----------+-------+---------+----------+---------+
      | flags | type  | size  | reserved | track | channel | reserved | payload |
      +-------+-------+-------+----------+-------+---------+----------+---------+

``size`` counts the header too; no byte marks the end of a frame. The flags' upper four bits are the version
of framing and must be 0, as must bits 5 and 4; the lower four are B, E, b and e of the table below. What else
is reserved is not looked at, as no peer looks at it.

=========================== ======= ======== ========================================
sent                        command header   body
=========================== ======= ======== ========================================
command alone               ``BEbe``
with a header               ``B-be`` ``-Ebe``
with a body                 ``B-be``         ``-Ebe``
with both, body in 3 frames ``B-be`` ``--be`` ``-Eb-`` ``-E--`` ``-E-e``
=========================== ======= ======== ========================================

A control is always ``BEbe``. Commands, controls and headers leave here in one frame each: qpidd ends the
connection where they do not, though the standard allows it. `segments` takes them in any number of frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from amqpgate.errors import ProtocolViolation

#: Bytes of a frame before its payload.
FRAME_HEADER_SIZE: Final = 12

#: What every peer takes, before tune too (constant MIN-MAX-FRAME-SIZE).
MIN_MAX_FRAME_SIZE: Final = 4096
#: What 16 bits can say. qpid-python sends such frames whatever was tuned, so they are always taken.
MOST_FRAME_SIZE: Final = 65535

#: B: the frame is of the first segment of an assembly.
FIRST_SEGMENT: Final = 0b1000
#: E: it is of the last one.
LAST_SEGMENT: Final = 0b0100
#: b: it is the first frame of its segment.
FIRST_FRAME: Final = 0b0010
#: e: it is the last one.
LAST_FRAME: Final = 0b0001

#: Segment types (domain "segment-type").
CONTROL: Final = 0
COMMAND: Final = 1
HEADER: Final = 2
BODY: Final = 3

#: Tracks (domain "track"). What a frame is its type says, not its track: qpidd takes it so.
CONTROL_TRACK: Final = 0
COMMAND_TRACK: Final = 1

_HEAD: Final = Struct(">BBHxBHxxxx")
_ONE_FRAME: Final = FIRST_FRAME | LAST_FRAME
#: All four, of what is one frame in all.
ALONE: Final = FIRST_SEGMENT | LAST_SEGMENT | _ONE_FRAME
_FIRST_OF_MANY: Final = FIRST_SEGMENT | _ONE_FRAME
_LAST_OF_MANY: Final = LAST_SEGMENT | _ONE_FRAME

#: Dead bytes at the front of the buffer are cut off once there are this many, as in `protocol.frames`.
_COMPACT_AT: Final = 64 * 1024


class SegmentFrame(NamedTuple):
    """One frame of a segment. ``flags`` are the four of `FIRST_SEGMENT` to `LAST_FRAME`."""

    flags: int
    segment_type: int
    track: int
    channel: int
    payload: bytes


class WholeMessage(NamedTuple):
    """A command with a header, and with a body if there is one: payloads of one frame each."""

    channel: int
    command: bytes
    header: bytes
    body: bytes
    #: Bytes of all its frames.
    size: int


def malformed(flags: int, segment_type: int, size: int, channel: int, most: int) -> ProtocolViolation:
    """What cannot be a frame of at most ``most`` bytes."""
    if flags > ALONE:
        why = "version or reserved flags are not 0"
    elif segment_type > BODY:
        why = "unknown segment type"
    else:
        why = f"{FRAME_HEADER_SIZE} to {most} bytes are taken"
    return ProtocolViolation(501, f"frame of type {segment_type}, {size} bytes: {why}", channel=channel)


class SegmentFrameDecoder:
    """Bytes in, frames out, whatever the split; time is linear in the bytes.

    Made to be read; where it was compiled, ``_frames`` serves (see ``build``).

    ``max_frame_size`` is the largest frame in bytes, its header included. Buffered are at most one frame and
    what ``feed`` was given after it.
    """

    __slots__ = ("_buffer", "_position", "is_broken", "max_frame_size")

    def __init__(self, max_frame_size: int = MIN_MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size
        #: What came makes no frames any more: nothing that follows can be understood.
        self.is_broken = False
        self._buffer = bytearray()
        self._position = 0

    def __len__(self) -> int:
        """How many bytes are buffered."""
        return len(self._buffer) - self._position

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes as they were received."""
        if self._position == len(self._buffer):
            self._buffer.clear()
            self._position = 0
        elif self._position >= _COMPACT_AT:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def next(self) -> SegmentFrame | None:
        """The next whole frame, or None until more is fed.

        Violation 501 for another version of framing, reserved flags, an unknown segment type, and a size
        below the header's or above ``max_frame_size``, as soon as the frame's header is there. It leaves
        ``is_broken`` set, and calling again raises again.
        """
        position = self._position
        available = len(self._buffer) - position
        if available < FRAME_HEADER_SIZE:
            return None
        flags: int
        segment_type: int
        size: int
        track: int
        channel: int
        flags, segment_type, size, track, channel = _HEAD.unpack_from(self._buffer, position)
        if flags > ALONE or not FRAME_HEADER_SIZE <= size <= self.max_frame_size or segment_type > BODY:
            self.is_broken = True
            raise malformed(flags, segment_type, size, channel, self.max_frame_size)
        if available < size:
            return None
        self._position = end = position + size
        # Slicing the bytearray itself would copy twice.
        with memoryview(self._buffer) as view:
            payload = bytes(view[position + FRAME_HEADER_SIZE : end])
        return SegmentFrame(flags, segment_type, track & 0x0F, channel, payload)

    def message(self, code: bytes) -> WholeMessage | None:
        """The command that comes next, left where it is (see `skip`).

        None, and `next` has to say what comes: where it does not begin with ``code``, has no header, is not
        all there, or has a segment of more than one frame.
        """
        buffer, start = self._buffer, self._position
        end = len(buffer)
        first = start + FRAME_HEADER_SIZE
        if end - first < FRAME_HEADER_SIZE or buffer[first : first + len(code)] != code:
            return None
        flags, kind, size, track, channel = _HEAD.unpack_from(buffer, start)
        second = start + size
        if (
            flags != _FIRST_OF_MANY
            or kind != COMMAND
            or track != COMMAND_TRACK
            or not FRAME_HEADER_SIZE <= size <= self.max_frame_size
            or second + FRAME_HEADER_SIZE > end
        ):
            return None
        flags, kind, size, track, same = _HEAD.unpack_from(buffer, second)
        stop = third = second + size
        if (
            kind != HEADER
            or track != COMMAND_TRACK
            or same != channel
            or not FRAME_HEADER_SIZE <= size <= self.max_frame_size
            or third > end
        ):
            return None
        if flags == _ONE_FRAME:
            if third + FRAME_HEADER_SIZE > end:
                return None
            flags, kind, size, track, same = _HEAD.unpack_from(buffer, third)
            stop = third + size
            if (
                flags != _LAST_OF_MANY
                or kind != BODY
                or track != COMMAND_TRACK
                or same != channel
                or not FRAME_HEADER_SIZE <= size <= self.max_frame_size
                or stop > end
            ):
                return None
        elif flags != _LAST_OF_MANY:
            return None
        with memoryview(buffer) as view:
            return WholeMessage(
                channel,
                bytes(view[first:second]),
                bytes(view[second + FRAME_HEADER_SIZE : third]),
                bytes(view[third + FRAME_HEADER_SIZE : stop]),
                stop - start,
            )

    def skip(self, size: int) -> None:
        """So many bytes were looked at."""
        self._position += size

    def allow(self, max_frame_size: int) -> None:
        """Larger frames are taken from now on."""
        self.max_frame_size = max_frame_size

    def take(self, count: int) -> bytes | None:
        """The next ``count`` bytes raw, or None while there are fewer."""
        if len(self) < count:
            return None
        self._position += count
        return bytes(self._buffer[self._position - count : self._position])

    def clear(self) -> None:
        """Drop what is buffered."""
        self._buffer.clear()
        self._position = 0


def control_frame(channel: int, control: bytes, max_frame_size: int = MIN_MAX_FRAME_SIZE) -> bytes:
    """An encoded control in its frame. Violation 506 if it does not fit into one."""
    return _frame(ALONE, CONTROL, CONTROL_TRACK, channel, control, max_frame_size)


def command_frames(
    channel: int,
    command: bytes,
    header: bytes | None = None,
    *,
    has_body: bool = False,
    max_frame_size: int = MIN_MAX_FRAME_SIZE,
) -> bytes:
    """An encoded command and its header segment, if any; `body_frames` follow if ``has_body``.

    Violation 506 if either does not fit into one frame.
    """
    if header is None:
        flags = FIRST_SEGMENT | _ONE_FRAME if has_body else ALONE
        return _frame(flags, COMMAND, COMMAND_TRACK, channel, command, max_frame_size)
    last = _ONE_FRAME if has_body else LAST_SEGMENT | _ONE_FRAME
    return _frame(
        FIRST_SEGMENT | _ONE_FRAME, COMMAND, COMMAND_TRACK, channel, command, max_frame_size
    ) + _frame(last, HEADER, COMMAND_TRACK, channel, header, max_frame_size)


def body_frames(
    channel: int,
    body: bytes | memoryview,
    max_frame_size: int = MIN_MAX_FRAME_SIZE,
    *,
    is_first: bool = True,
    is_last: bool = True,
) -> Iterator[bytes]:
    """A body, or a piece of one, in frames of at most ``max_frame_size`` bytes.

    An empty piece makes no frame, unless it is the last: then there is one without payload.
    """
    step = max_frame_size - FRAME_HEADER_SIZE
    size = len(body)
    for start in range(0, size or int(is_last), step):
        end = min(start + step, size)
        head = body_head(
            channel, end - start, is_first=is_first and not start, is_last=is_last and end == size
        )
        yield head + body[start:end]


def body_head(channel: int, size: int, *, is_first: bool, is_last: bool) -> bytes:
    """What stands before ``size`` bytes of a body, in a frame."""
    flags = LAST_SEGMENT
    if is_first:
        flags |= FIRST_FRAME
    if is_last:
        flags |= LAST_FRAME
    return _HEAD.pack(flags, BODY, FRAME_HEADER_SIZE + size, COMMAND_TRACK, channel)


def encode_segments(
    channel: int,
    command: bytes,
    header: bytes | None = None,
    body: bytes = b"",
    max_frame_size: int = MIN_MAX_FRAME_SIZE,
) -> bytes:
    """A whole command: its encoded segments in frames. An empty body makes no segment.

    Violation 506 if the command or the header does not fit into one frame.
    """
    first = command_frames(channel, command, header, has_body=bool(body), max_frame_size=max_frame_size)
    return b"".join((first, *body_frames(channel, body, max_frame_size))) if body else first


def _frame(
    flags: int, segment_type: int, track: int, channel: int, payload: bytes, max_frame_size: int
) -> bytes:
    size = FRAME_HEADER_SIZE + len(payload)
    if size > max_frame_size:
        what = ("control", "command", "header")[segment_type]
        text = f"a {what} needs a frame of {size} bytes, {max_frame_size} are taken"
        raise ProtocolViolation(506, text, channel=channel)
    return _HEAD.pack(flags, segment_type, size, track, channel) + payload
