"""Bytes to frames, and those messages and controls whose segments are one frame each to assemblies.

Nearly all are. What is not goes to whoever keeps assemblies that are not whole (``assemblies``).
`AssemblyCutter` is made to be read; where it was compiled, ``_native`` serves, which does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.frames import (
    BODY,
    COMMAND,
    COMMAND_TRACK,
    CONTROL,
    CONTROL_TRACK,
    FIRST_FRAME,
    FIRST_SEGMENT,
    FRAME_HEADER_SIZE,
    HEADER,
    LAST_FRAME,
    LAST_SEGMENT,
)

_HEAD: Final = Struct(">BBHxBHxxxx")
_ALONE: Final = FIRST_SEGMENT | LAST_SEGMENT | FIRST_FRAME | LAST_FRAME
#: The one frame of a command, a header and a body that follow each other.
_FIRST_WHOLE: Final = FIRST_SEGMENT | FIRST_FRAME | LAST_FRAME
_MIDDLE_WHOLE: Final = FIRST_FRAME | LAST_FRAME
_LAST_WHOLE: Final = LAST_SEGMENT | FIRST_FRAME | LAST_FRAME
_TRACKS: Final = (CONTROL_TRACK, COMMAND_TRACK, COMMAND_TRACK, COMMAND_TRACK)


class Assembly(NamedTuple):
    """A control, or a command with what it carries."""

    channel: int
    #: `CONTROL` or `COMMAND`.
    kind: int
    #: Payload of the control or command segment.
    segment: bytes
    #: Payload of the header segment; None: there is none.
    header: bytes | None
    #: None: there is no such segment.
    body: bytes | None
    #: All its frames, as they came.
    original: bytes


def malformed(kind: int, size: int, channel: int) -> ProtocolViolation:
    """A frame that cannot be."""
    return ProtocolViolation(501, f"malformed frame of type {kind}, {size} bytes", channel=channel)


class AssemblyCutter:
    """Bytes of one direction, cut anywhere. ``unfinished`` has the assemblies that are not whole, by channel
    and track: ``channel << 1``, and 1 more for commands.
    """

    __slots__ = ("_buffer", "_chunks", "_have", "_need", "_position", "_unfinished")

    def __init__(self, unfinished: Mapping[int, object]) -> None:
        self._unfinished = unfinished
        self._buffer = b""
        #: What of it was looked at.
        self._position = 0
        #: What came behind it.
        self._chunks: list[bytes] = []
        #: Bytes that were not looked at, and how many there must be to go on.
        self._have = 0
        self._need = FRAME_HEADER_SIZE

    def add(self, data: bytes) -> None:
        """These have come."""
        self._chunks.append(data)
        self._have += len(data)

    def take(self, flags: int, kind: int, channel: int, payload: bytes, frame: bytes) -> Assembly | None:
        """A frame of an assembly that has several, or is not next to its others; what is whole with it."""
        raise NotImplementedError

    def next(self) -> Assembly | None:
        """What comes next and is whole; None until more has come. Violation 501 for what is no frame."""
        while self._have >= self._need:
            if self._chunks:
                rest = self._buffer[self._position :]
                self._buffer = (
                    b"".join((rest, *self._chunks)) if rest or len(self._chunks) > 1 else self._chunks[0]
                )
                self._position = 0
                self._chunks.clear()
            buffer, start = self._buffer, self._position
            flags, kind, size, track, channel = _HEAD.unpack_from(buffer, start)
            if flags > _ALONE or kind > BODY or size < FRAME_HEADER_SIZE or track & 0x0F != _TRACKS[kind]:
                raise malformed(kind, size, channel)
            if size > self._have:
                self._need = size
                return None
            self._need = FRAME_HEADER_SIZE
            stop = start + size
            payload = buffer[start + FRAME_HEADER_SIZE : stop]
            whole = None
            if channel << 1 | (kind > CONTROL) not in self._unfinished:
                if flags == _ALONE and kind <= COMMAND:
                    whole = Assembly(channel, kind, payload, None, None, buffer[start:stop])
                elif flags == _FIRST_WHOLE and kind == COMMAND:
                    whole = self._whole(buffer, start, stop, len(buffer), channel, payload)
            if whole is not None:
                self._skip(len(whole.original))
                return whole
            self._skip(size)
            whole = self.take(flags, kind, channel, payload, buffer[start:stop])
            if whole is not None:
                return whole
        return None

    def _skip(self, size: int) -> None:
        self._position += size
        self._have -= size

    @staticmethod
    def _whole(
        buf: bytes, start: int, second: int, end: int, channel: int, command: bytes
    ) -> Assembly | None:
        """A message of which each segment is one frame, if all of it is there."""
        if end - second < FRAME_HEADER_SIZE:
            return None
        flags, kind, size, _, same = _HEAD.unpack_from(buf, second)
        third = second + size
        if kind != HEADER or same != channel or size < FRAME_HEADER_SIZE or third > end:
            return None
        header = buf[second + FRAME_HEADER_SIZE : third]
        if buf[second + 5] & 0x0F != COMMAND_TRACK:
            return None
        if flags == _LAST_WHOLE:
            return Assembly(channel, COMMAND, command, header, None, buf[start:third])
        if flags != _MIDDLE_WHOLE or end - third < FRAME_HEADER_SIZE:
            return None
        flags, kind, size, track, same = _HEAD.unpack_from(buf, third)
        stop = third + size
        if flags != _LAST_WHOLE or kind != BODY or same != channel or stop > end:
            return None
        if size < FRAME_HEADER_SIZE or track & 0x0F != COMMAND_TRACK:
            return None
        return Assembly(
            channel, COMMAND, command, header, buf[third + FRAME_HEADER_SIZE : stop], buf[start:stop]
        )
