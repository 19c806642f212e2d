"""Segments and assemblies: frames to controls, commands, headers and pieces of bodies.

Chapter "Transport", "Assemblies, Segments, and Frames". A control is an assembly of one segment; a command
has up to three: command, header, body. An assembly is contiguous on its channel and track; frames of other
channels, and controls on the other track, may come in between. A command may not, whatever its track: a
header that follows would be that of two.

::

                  ┌─────────────── header ──────────────┐
      command ────┤                                     ├──▶ complete
                  └──▶ header ──▶ body, body, ... ──────┘
                       body, body, ... ─────────────────┘

Segments of controls, commands and headers are decoded when they are whole, whatever the number of their
frames. The body is never put together: each of its frames is an event.

Memory
    A connection has at most `MOST_PARTIAL` segments that are not whole, and each of them at most
    `MOST_FRAME_SIZE` bytes. An assembly that is under way takes some hundred bytes; there is one for each
    channel and track at most.

Error handling
    Frames that do not follow each other as they must: :class:`ProtocolViolation` 501. Too much that is not
    whole: 506. A segment that is whole but cannot be decoded: 503, or 501 for a control of the connection's;
    the assembler is ready for what follows.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

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
    SegmentFrame,
)
from amqpgate.wire.generated.v0_10 import ConnectionStart
from amqpgate.wire.v0_10.codec import decode_command, decode_control, decode_header
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

#: Segments of one connection that may be in parts at a time. No peer that was seen sends any.
MOST_PARTIAL: Final = 16

#: Commands that are kept as decoded, and bytes of the largest one.
_MOST_KNOWN: Final = 16
_LARGEST_KNOWN: Final = 300

_SEGMENT_FLAGS: Final = FIRST_SEGMENT | LAST_SEGMENT
_BEGINNING: Final = FIRST_SEGMENT | FIRST_FRAME
_ENDING: Final = LAST_SEGMENT | LAST_FRAME

#: What may follow in an assembly, by the segment before it.
FOLLOWING: Final[dict[int, frozenset[int]]] = {
    COMMAND: frozenset({HEADER, BODY}),
    HEADER: frozenset({BODY}),
    BODY: frozenset(),
}
#: Controls of this class are the connection's.
CONNECTION_CLASS: Final = ConnectionStart.CLASS_CODE

_NAMES: Final = ("control", "command", "header", "body")


class ControlIn(NamedTuple):
    """A control, whole."""

    channel: int
    control: Control


class CommandIn(NamedTuple):
    """A command; a header or a body follows if ``has_content``."""

    channel: int
    command: Command
    sync: bool
    has_content: bool


class HeaderIn(NamedTuple):
    """The header of the channel's last command; a body follows if ``has_body``."""

    channel: int
    structs: tuple[Struct | Unknown, ...]
    has_body: bool


class BodyIn(NamedTuple):
    """A piece of the body of the channel's last command. ``is_last``: the command is complete."""

    channel: int
    chunk: bytes
    is_last: bool


AssemblyEvent: TypeAlias = ControlIn | CommandIn | HeaderIn | BodyIn


class _Assembly:
    """What has come of one assembly."""

    __slots__ = ("data", "flags", "is_stale", "is_within", "kind", "track")

    def __init__(self, track: int) -> None:
        self.track = track
        #: The segment that came last, or is coming.
        self.kind = COMMAND
        #: Whether it is the first of the assembly, the last, both or neither.
        self.flags = 0
        #: Some of its frames are still to come.
        self.is_within = False
        #: It is of a session that is over: another one may begin.
        self.is_stale = False
        #: What has come of a segment that is not whole; None for a body's.
        self.data: bytearray | None = None


def _is_next(assembly: _Assembly | None, flags: int, kind: int) -> bool:
    """Whether a frame may come now on its channel and track."""
    if kind == BODY and not flags & LAST_SEGMENT:
        return False
    if assembly is None:
        # It begins an assembly; a control is all of its own.
        return flags & _BEGINNING == _BEGINNING and (
            kind == COMMAND or (kind == CONTROL and flags & LAST_SEGMENT > 0)
        )
    if flags & FIRST_FRAME:
        # It begins the next segment.
        return not assembly.is_within and kind in FOLLOWING[assembly.kind] and not flags & FIRST_SEGMENT
    return assembly.is_within and kind == assembly.kind and flags & _SEGMENT_FLAGS == assembly.flags


class Assembler:
    """Puts segments together, by channel and track, for one direction of one connection."""

    __slots__ = ("_known", "_partial", "assemblies")

    def __init__(self) -> None:
        #: Commands with content that came last, by their bytes: what one sender transfers to one place begins
        #: alike.
        self._known: dict[bytes, tuple[Command, bool]] = {}
        #: What is under way, by channel, and whether it is a control: of either there is one at a time.
        self.assemblies: dict[tuple[int, bool], _Assembly] = {}
        #: How many segments are in parts.
        self._partial = 0

    def feed(self, frame: SegmentFrame) -> AssemblyEvent | None:
        """What the frame completes, or a piece of a body; None if its segment goes on."""
        flags, kind, track, channel, payload = frame
        key = channel, kind == CONTROL
        assembly = None
        is_on_track = True
        if self.assemblies:
            assembly = self.assemblies.get(key)
            if assembly is not None and assembly.is_stale and flags & _BEGINNING == _BEGINNING:
                self._drop(key)
                assembly = None
            if assembly is None:
                is_on_track = not self._is_amid(key, track)
            else:
                is_on_track = assembly.track == track
        if not (is_on_track and _is_next(assembly, flags, kind)):
            raise ProtocolViolation(501, f"{_NAMES[kind]} frame out of place", channel=channel)
        if flags & _ENDING != _ENDING:
            if assembly is None:
                assembly = self.assemblies[key] = _Assembly(track)
            assembly.kind = kind
            assembly.flags = flags & _SEGMENT_FLAGS
            assembly.is_within = not flags & LAST_FRAME
            if assembly.is_within and kind != BODY:
                self._keep(assembly, payload, channel)
                return None
        elif assembly is not None:
            del self.assemblies[key]
        if kind == BODY:
            return BodyIn(channel, payload, flags & _ENDING == _ENDING)
        if assembly is not None and assembly.data is not None:
            payload = self._whole(assembly, payload, channel)
        if kind != COMMAND:
            return _decoded(channel, kind, payload, goes_on=not flags & LAST_SEGMENT)
        return CommandIn(channel, *self.command(channel, payload), not flags & LAST_SEGMENT)

    def command(self, channel: int, payload: bytes) -> tuple[Command, bool]:
        """The command in a segment, and its sync bit. Violations as for a segment that cannot be decoded."""
        known = self._known.get(payload)
        if known is None:
            known = _decoded_command(channel, payload)
            if known[0].CONTENT and len(payload) <= _LARGEST_KNOWN:
                if len(self._known) >= _MOST_KNOWN:
                    del self._known[next(iter(self._known))]
                self._known[payload] = known
        return known

    def abandon(self, channel: int) -> None:
        """The channel's session is over. What is under way may still go on, or make room for another."""
        for (number, _), assembly in self.assemblies.items():
            if number == channel:
                assembly.is_stale = True

    def _is_amid(self, key: tuple[int, bool], track: int) -> bool:
        """Whether a control would be amid a command on one track, or the other way around."""
        channel, is_control = key
        other = self.assemblies.get((channel, not is_control))
        return other is not None and other.track == track and not other.is_stale

    def _drop(self, key: tuple[int, bool]) -> None:
        if self.assemblies.pop(key).data is not None:
            self._partial -= 1

    def _keep(self, assembly: _Assembly, payload: bytes, channel: int) -> None:
        if assembly.data is None:
            if self._partial == MOST_PARTIAL:
                raise ProtocolViolation(506, f"more than {MOST_PARTIAL} segments in parts", channel=channel)
            self._partial += 1
            assembly.data = bytearray()
        if len(assembly.data) + len(payload) > MOST_FRAME_SIZE:
            raise ProtocolViolation(506, f"a segment of more than {MOST_FRAME_SIZE} bytes", channel=channel)
        assembly.data += payload

    def _whole(self, assembly: _Assembly, payload: bytes, channel: int) -> bytes:
        self._keep(assembly, payload, channel)
        assert assembly.data is not None
        whole, assembly.data = bytes(assembly.data), None
        self._partial -= 1
        return whole


def _decoded(channel: int, kind: int, payload: bytes, *, goes_on: bool) -> AssemblyEvent:
    try:
        if kind == HEADER:
            return HeaderIn(channel, decode_header(payload), goes_on)
        return ControlIn(channel, decode_control(payload))
    except ProtocolViolation as error:
        raise _of_channel(error, channel) from None


def _decoded_command(channel: int, payload: bytes) -> tuple[Command, bool]:
    try:
        return decode_command(payload)
    except ProtocolViolation as error:
        raise _of_channel(error, channel) from None


def _of_channel(error: ProtocolViolation, channel: int) -> ProtocolViolation:
    code = error.code
    if code == 501 and error.class_id != CONNECTION_CLASS:
        # The frames were right: a session ends by it, not the connection.
        code = 503
    return ProtocolViolation(
        code, error.text, class_id=error.class_id, method_id=error.method_id, channel=channel
    )
