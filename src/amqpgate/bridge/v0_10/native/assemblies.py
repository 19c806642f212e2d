"""Bytes of one direction to assemblies, each with its frames as they came.

Chapter "Transport", "Assemblies, Segments, and Frames"; ``protocol.v0_10.segments`` has the order of
segments. Here an assembly comes out when it is whole, with its body: who judges it decides whether any of it
is passed on.

What a frame is its type says, and here its track has to agree: peers differ in which of the two they go by,
and what is judged must be what is done.

Memory
    Of all assemblies that are not whole ``most_body`` bytes, and `MOST_PARTIAL` of them at most in the
    middle of a command or a header, each of which has `MOST_FRAME_SIZE` bytes at most.

Error handling
    Frames that cannot be, or do not follow each other as they must: :class:`ProtocolViolation` 501. Too much
    that is not whole: 506. Nothing more can be understood then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amqpgate.bridge.v0_10.native.build import AssemblyCutter
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.frames import (
    BODY,
    COMMAND,
    CONTROL,
    FIRST_FRAME,
    FIRST_SEGMENT,
    HEADER,
    LAST_FRAME,
    LAST_SEGMENT,
    MOST_FRAME_SIZE,
    body_frames,
    command_frames,
    control_frame,
)
from amqpgate.protocol.v0_10.segments import FOLLOWING, MOST_PARTIAL

_SEGMENT_FLAGS: Final = FIRST_SEGMENT | LAST_SEGMENT
_BEGINNING: Final = FIRST_SEGMENT | FIRST_FRAME
_ENDING: Final = LAST_SEGMENT | LAST_FRAME
_NAMES: Final = ("control", "command", "header", "body")


def cut(assembly: Assembly, most: int) -> Assembly:
    """The same in frames of at most ``most`` bytes. Violation 506 if only a body could be cut for that."""
    channel, kind, segment, header, body, _ = assembly
    if kind == CONTROL:
        return assembly._replace(original=control_frame(channel, segment, most))
    frames = command_frames(channel, segment, header, has_body=body is not None, max_frame_size=most)
    if body is not None:
        frames = b"".join((frames, *body_frames(channel, body, most)))
    return assembly._replace(original=frames)


class _Unfinished:
    """An assembly that is not whole."""

    __slots__ = ("flags", "frames", "is_within", "kind", "segments")

    def __init__(self) -> None:
        #: The segment that came last, or is coming, and whether it is the first, the last, both or neither.
        self.kind = COMMAND
        self.flags = 0
        #: Some of its frames are still to come.
        self.is_within = False
        # A peer may send frames without a payload: each takes its own bytes, and no object.
        #: Payloads, by type of segment.
        self.segments: dict[int, bytearray] = {}
        self.frames = bytearray()

    def is_next(self, flags: int, kind: int) -> bool:
        """Whether a frame may come now."""
        if flags & FIRST_FRAME:
            return not self.is_within and kind in FOLLOWING[self.kind] and not flags & FIRST_SEGMENT
        return self.is_within and kind == self.kind and flags & _SEGMENT_FLAGS == self.flags


class AssemblyReader(AssemblyCutter):
    """One direction of one connection, behind its handshake. ``most_body`` is in bytes."""

    __slots__ = ("_kept", "_most_body", "_open", "_partial", "_stale")

    def __init__(self, most_body: int) -> None:
        self._most_body = most_body
        #: By channel and track.
        self._open: dict[int, _Unfinished] = {}
        super().__init__(self._open)
        #: Bytes of all of those.
        self._kept = 0
        #: How many are in the middle of a command or a header.
        self._partial = 0
        #: Those that are of sessions that are over, and need not go on.
        self._stale: set[int] = set()

    def feed(self, data: bytes) -> Iterator[Assembly]:
        """What is whole with these bytes, one after the other."""
        self.add(data)
        return iter(self.next, None)

    def abandon(self, channel: int) -> None:
        """The channel's session is over: its peer may leave an assembly unfinished."""
        key = channel << 1 | 1
        if key in self._open:
            self._stale.add(key)

    def take(self, flags: int, kind: int, channel: int, payload: bytes, frame: bytes) -> Assembly | None:
        """As in `AssemblyCutter`."""
        key = channel << 1 | (kind > CONTROL)
        assembly = self._open.get(key)
        if assembly is not None and key in self._stale and flags & _BEGINNING == _BEGINNING:
            self._drop(key)
            assembly = None
        if assembly is None:
            is_next = flags & _BEGINNING == _BEGINNING and (
                kind == COMMAND or (kind == CONTROL and flags & LAST_SEGMENT > 0)
            )
        else:
            is_next = assembly.is_next(flags, kind)
        if not is_next or (kind == BODY and not flags & LAST_SEGMENT):
            raise ProtocolViolation(501, f"{_NAMES[kind]} frame out of place", channel=channel)
        if assembly is None:
            assembly = self._open[key] = _Unfinished()
        self._add(assembly, flags, kind, payload, frame)
        if flags & _ENDING != _ENDING:
            return None
        segments = {name: bytes(payload) for name, payload in assembly.segments.items()}
        self._drop(key)
        return Assembly(
            channel,
            CONTROL if kind == CONTROL else COMMAND,
            segments[CONTROL if kind == CONTROL else COMMAND],
            segments.get(HEADER),
            segments.get(BODY),
            bytes(assembly.frames),
        )

    def _add(self, assembly: _Unfinished, flags: int, kind: int, payload: bytes, frame: bytes) -> None:
        was_partial = assembly.is_within and assembly.kind != BODY
        assembly.kind, assembly.flags = kind, flags & _SEGMENT_FLAGS
        assembly.is_within = not flags & LAST_FRAME
        segment = assembly.segments.get(kind)
        if segment is None:
            segment = assembly.segments[kind] = bytearray()
        segment += payload
        assembly.frames += frame
        self._kept += len(frame)
        self._partial += int(assembly.is_within and kind != BODY) - int(was_partial)
        if self._partial > MOST_PARTIAL or (kind != BODY and len(segment) > MOST_FRAME_SIZE):
            raise ProtocolViolation(506, "too much of commands and headers that are not whole")
        if self._kept > self._most_body:
            raise ProtocolViolation(506, f"messages of more than {self._most_body} bytes")

    def _drop(self, key: int) -> None:
        assembly = self._open.pop(key)
        self._kept -= len(assembly.frames)
        self._partial -= int(assembly.is_within and assembly.kind != BODY)
        self._stale.discard(key)
