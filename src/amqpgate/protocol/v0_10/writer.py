"""What is to be sent on a connection, as frames in their order."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, Protocol

from amqpgate.protocol.v0_10.frames import (
    ALONE,
    CONTROL,
    CONTROL_TRACK,
    FRAME_HEADER_SIZE,
    MIN_MAX_FRAME_SIZE,
    body_frames,
    command_frames,
    control_frame,
    encode_segments,
)
from amqpgate.wire.generated.v0_10 import SessionCompleted
from amqpgate.wire.v0_10 import structs as wire
from amqpgate.wire.v0_10.codec import encode_command, encode_control, encode_header
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command, Control, Unknown

#: Bytes of a range of ids, and of a control around them: codes, flags, length.
_RANGE_SIZE: Final = 8
_SET_OVERHEAD: Final = 6

#: session.completed of one range: its frame's header but for the channel, what comes before the range (class
#: and code, packing flags, bytes of the set), and the range.
_COMPLETED: Final = Struct(">BBHxBHxxxx6sII")
_COMPLETED_HEAD: Final = (ALONE, CONTROL, _COMPLETED.size, CONTROL_TRACK)
_COMPLETED_BEGINNING: Final = (encode_control(SessionCompleted(SequenceSet(((0, 0),))))[:_SET_OVERHEAD],)


class Owing(Protocol):
    """Who has answers to write before the next bytes leave."""

    def answer(self) -> None:
        """Write them."""


class FrameWriter:
    """Controls, commands and bodies to bytes, until `take`.

    ``max_frame_size`` is what the peer takes, in bytes. Violation 506 from all who write, if a control, a
    command or a header is larger.
    """

    __slots__ = ("frames", "max_frame_size", "owing")

    def __init__(self) -> None:
        self.max_frame_size = MIN_MAX_FRAME_SIZE
        #: What is not taken, and who has something to write before.
        self.frames: list[bytes] = []
        self.owing: dict[Owing, None] = {}

    @property
    def most_ranges(self) -> int:
        """How many ranges of ids a control has room for."""
        return (self.max_frame_size - FRAME_HEADER_SIZE - _SET_OVERHEAD) // _RANGE_SIZE

    def allow(self, max_frame_size: int) -> None:
        """What was tuned holds from now on."""
        self.max_frame_size = max_frame_size

    def raw(self, data: bytes) -> None:
        """Bytes that are no frame: the protocol header."""
        self.frames.append(data)

    def control(self, channel: int, control: Control) -> None:
        """One control."""
        self.frames.append(control_frame(channel, encode_control(control), self.max_frame_size))

    def completed(self, channel: int, ids: tuple[int, int]) -> None:
        """session.completed of one range, which asks for nothing."""
        self.frames.append(_COMPLETED.pack(*_COMPLETED_HEAD, channel, *_COMPLETED_BEGINNING, *ids))

    def command(
        self,
        channel: int,
        command: Command,
        structs: Sequence[wire.Struct | Unknown] | None,
        body: bytes,
        *,
        sync: bool,
    ) -> None:
        """A command with its header, if ``structs`` is not None, and its body, if there is any."""
        header = None if structs is None else encode_header(structs)
        encoded = encode_command(command, sync)
        self.frames.append(encode_segments(channel, encoded, header, body, self.max_frame_size))

    def segments(self, channel: int, command: bytes, header: bytes, body: bytes) -> None:
        """A command with its header, both encoded, and its body, if there is any."""
        self.frames.append(encode_segments(channel, command, header, body, self.max_frame_size))

    def begin(
        self, channel: int, command: Command, structs: Sequence[wire.Struct | Unknown] | None, *, sync: bool
    ) -> None:
        """A command and its header, if ``structs`` is not None; its body follows in pieces."""
        header = None if structs is None else encode_header(structs)
        encoded = encode_command(command, sync)
        self.frames.append(
            command_frames(channel, encoded, header, has_body=True, max_frame_size=self.max_frame_size)
        )

    def begin_segments(self, channel: int, command: bytes, header: bytes) -> None:
        """A command and its header, both encoded; its body follows in pieces."""
        self.frames.append(
            command_frames(channel, command, header, has_body=True, max_frame_size=self.max_frame_size)
        )

    def body(self, channel: int, chunk: bytes | memoryview, *, is_first: bool, is_last: bool) -> None:
        """A piece of the body of the channel's last command."""
        frames = body_frames(channel, chunk, self.max_frame_size, is_first=is_first, is_last=is_last)
        self.frames.extend(frames)

    def owe(self, who: Owing) -> None:
        """``who`` has something to write before the next bytes leave, once, however often this is called."""
        self.owing[who] = None

    def take(self) -> bytes:
        """All that is to be sent, answers included. Taken once for each read, floods of questions get one
        answer.
        """
        while self.owing:
            who, _ = self.owing.popitem()
            who.answer()
        data = b"".join(self.frames)
        self.frames.clear()
        return data
