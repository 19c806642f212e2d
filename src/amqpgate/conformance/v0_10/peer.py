"""One connection of AMQP 0-10 to whoever is tested: bytes, controls and commands out and in.

========================  ============================================================================
outcome                   the peer
========================  ============================================================================
``connection.close 501``  said so; it was answered with close-ok
``exception 404``         said execution.exception
``detach``                detached the session without an exception
``detached 1``            said session.detached with this code
``hangs up``              ended the stream without a word
``silence``               said nothing of what was waited for within `SessionPeer.patience` seconds
``header AMQP 0 0 9 1``   answered with another protocol header than its own
``goes on``               completed an execution.sync that was said afterwards
``completed``             completed the command
anything else             the name of the control that it said
========================  ============================================================================
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct as Layout
from typing import Final, Protocol, TypeVar

import attrs
import trio

from amqpgate.conformance.endings import Unexpected
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.build import SegmentFrameDecoder
from amqpgate.protocol.v0_10.frames import (
    ALONE,
    COMMAND,
    COMMAND_TRACK,
    CONTROL,
    CONTROL_TRACK,
    FRAME_HEADER_SIZE,
    MOST_FRAME_SIZE,
    encode_segments,
)
from amqpgate.protocol.v0_10.segments import Assembler, BodyIn, CommandIn, ControlIn, HeaderIn
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.codec import encode_command, encode_control, encode_header
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

_READ: Final = 1 << 16
_HEAD: Final = Layout(">BBHxBHxxxx")

C = TypeVar("C", bound=Control)


def frame(
    flags: int,
    kind: int,
    payload: bytes = b"",
    *,
    channel: int = 0,
    track: int | None = None,
    size: int | None = None,
) -> bytes:
    """A frame, whole or not; by default on the track of its type, with its true size."""
    if track is None:
        track = CONTROL_TRACK if kind == CONTROL else COMMAND_TRACK
    claimed = FRAME_HEADER_SIZE + len(payload) if size is None else size
    return _HEAD.pack(flags, kind, claimed, track, channel) + payload


def control_frame(control: Control, channel: int = 0) -> bytes:
    """A control in its frame."""
    return frame(ALONE, CONTROL, encode_control(control), channel=channel)


def command_frame(command: Command, channel: int = 0, *, sync: bool = False) -> bytes:
    """A command without content in its frame."""
    return frame(ALONE, COMMAND, encode_command(command, sync), channel=channel)


class SessionHearing(Protocol):
    """Who hears what the peer says on a channel."""

    async def hear_control(self, control: Control) -> None:
        """A control has come."""

    async def hear_command(
        self, command: Command, structs: tuple[Struct | Unknown, ...], body: bytes
    ) -> None:
        """A command has come."""


@attrs.frozen
class HeardCommand:
    """A command of the peer's, whole."""

    id: int
    command: Command
    structs: tuple[Struct | Unknown, ...]
    body: bytes


@attrs.define(eq=False)
class SessionPeer:
    """One connection. Methods raise `Unexpected` where the peer does otherwise than the caller wants."""

    stream: trio.abc.Stream
    #: Seconds for an answer.
    patience: float
    #: By channel.
    sessions: dict[int, SessionHearing] = attrs.field(factory=dict, init=False)
    #: Controls of the connection that nobody has asked for yet.
    controls: deque[Control] = attrs.field(factory=deque, init=False)
    #: How the connection has ended.
    ended: str | None = attrs.field(default=None, init=False)
    #: What bodies are cut at.
    max_frame_size: int = attrs.field(default=MOST_FRAME_SIZE, init=False)
    #: Heartbeats that came.
    beats: int = attrs.field(default=0, init=False)
    #: Bytes of the largest frame that came.
    largest: int = attrs.field(default=0, init=False)
    _decoder: SegmentFrameDecoder = attrs.field(
        factory=lambda: SegmentFrameDecoder(MOST_FRAME_SIZE), init=False
    )
    _assembler: Assembler = attrs.field(factory=Assembler, init=False)
    #: Commands whose content is still to come, by channel.
    _open: dict[int, tuple[Command, tuple[Struct | Unknown, ...], list[bytes]]] = attrs.field(
        factory=dict, init=False
    )
    #: Whether the peer's protocol header has come.
    _is_greeted: bool = attrs.field(default=False, init=False)

    async def aclose(self) -> None:
        """Hang up."""
        await trio.aclose_forcefully(self.stream)

    # -- out -------------------------------------------------------------------------------------------------

    async def send(self, *data: bytes) -> None:
        """Bytes as they are. Whoever has hung up is not told."""
        with suppress(trio.BrokenResourceError, trio.TooSlowError), trio.fail_after(self.patience):
            await self.stream.send_all(b"".join(data))

    async def say(self, *controls: Control, channel: int = 0) -> None:
        """Controls, in one piece."""
        await self.send(*(control_frame(control, channel) for control in controls))

    def encoded(
        self,
        channel: int,
        command: Command,
        structs: Sequence[Struct | Unknown] | None = None,
        body: bytes = b"",
        *,
        sync: bool = False,
    ) -> bytes:
        """The frames of a command."""
        header = None if structs is None else encode_header(structs)
        return encode_segments(channel, encode_command(command, sync), header, body, self.max_frame_size)

    def cut_at(self, max_frame_size: int | None) -> None:
        """No frame of a body is larger from now on."""
        self.max_frame_size = MOST_FRAME_SIZE if max_frame_size is None else max_frame_size

    def be_patient(self, seconds: float) -> None:
        """Wait for so long at least."""
        self.patience = max(self.patience, seconds)

    # -- in --------------------------------------------------------------------------------------------------

    async def until(self, is_done: Callable[[], bool]) -> None:
        """Read until this is so. Raises `Unexpected` where the connection ends before."""
        try:
            with trio.fail_after(self.patience):
                while not is_done():
                    if self.ended is not None:
                        raise Unexpected(self.ended)
                    await self._read()
        except trio.TooSlowError:
            raise Unexpected("silence") from None

    async def control(self, kind: type[C]) -> C:
        """The next control of the connection's, which is one of this kind."""
        await self.until(lambda: bool(self.controls))
        found = self.controls.popleft()
        if not isinstance(found, kind):
            raise Unexpected(found.NAME)
        return found

    async def outcome(self) -> str:
        """What comes next on the connection, in words."""
        try:
            await self.until(lambda: bool(self.controls))
        except Unexpected as what:
            return str(what)
        return self.controls.popleft().NAME

    async def ends(self) -> str:
        """How the peer ends the connection, whatever it says before."""
        try:
            await self.until(lambda: False)
        except Unexpected as what:
            return "goes on" if str(what) == "silence" else str(what)
        raise AssertionError

    async def _read(self) -> None:
        try:
            data = await self.stream.receive_some(_READ)
        except (trio.BrokenResourceError, ssl.SSLError):
            data = b""
        if not data:
            self.ended = "hangs up"
            return
        self._decoder.feed(data)
        if not self._is_greeted and not self._greet():
            return
        try:
            while self.ended is None and (found := self._decoder.next()) is not None:
                self.largest = max(self.largest, len(found.payload) + FRAME_HEADER_SIZE)
                said = self._assembler.feed(found)
                if said is not None:
                    await self._hear(said)
        except ProtocolViolation as violation:
            self.ended = f"malformed: {violation.text}"

    def _greet(self) -> bool:
        header = self._decoder.take(len(PROTOCOL_HEADER))
        if header is None:
            return False
        if header != PROTOCOL_HEADER:
            self.ended = "header AMQP " + " ".join(str(one) for one in header[4:])
            return False
        self._is_greeted = True
        return True

    async def _hear(self, said: ControlIn | CommandIn | HeaderIn | BodyIn) -> None:
        match said:
            case ControlIn(channel, amqp.ConnectionClose() as close):
                await self.say(amqp.ConnectionCloseOk(), channel=channel)
                self.ended = f"connection.close {close.reply_code}"
            case ControlIn(_, amqp.ConnectionHeartbeat()):
                self.beats += 1
            case ControlIn(channel, control) if control.CLASS_CODE == amqp.ConnectionStart.CLASS_CODE:
                self.controls.append(control)
            case ControlIn(channel, control):
                if channel in self.sessions:
                    await self.sessions[channel].hear_control(control)
            case CommandIn(channel, command, _, has_content):
                self._open[channel] = command, (), []
                if not has_content:
                    await self._command(channel)
            case HeaderIn(channel, structs, has_body):
                self._open[channel] = self._open[channel][0], structs, []
                if not has_body:
                    await self._command(channel)
            case BodyIn(channel, chunk, is_last):
                self._open[channel][2].append(chunk)
                if is_last:
                    await self._command(channel)

    async def _command(self, channel: int) -> None:
        command, structs, body = self._open.pop(channel)
        if channel in self.sessions:
            await self.sessions[channel].hear_command(command, structs, b"".join(body))
