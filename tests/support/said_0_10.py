"""What real peers said to each other, read by read, and what each of them sent, command by command."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache

from attrs import evolve, field, frozen

from amqpgate.protocol.methods import Role
from amqpgate.wire.generated.v0_10 import SegmentType
from amqpgate.wire.v0_10.codec import decode_command, decode_control, decode_header
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown
from tests.support.recorded_0_10 import FOLDER, HEADER

NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))
#: Those of a few kilobytes.
SHORT = ("cpp", "jms", "python-low-level")

_FRAME_HEADER = 12


@frozen
class Read:
    """The bytes of one read, and whose they are."""

    sender: Role
    data: bytes = field(repr=False)


@cache
def conversations(name: str) -> tuple[tuple[Read, ...], ...]:
    """The reads of each connection of a recording, in their order."""
    reads: dict[int, list[Read]] = {}
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if "hex" in row:
                sender = Role.CLIENT if row["from"] == "client" else Role.SERVER
                reads.setdefault(row["connection"], []).append(Read(sender, bytes.fromhex(row["hex"])))
    return tuple(tuple(conversation) for conversation in reads.values())


@frozen
class Sent:
    """A control, or a command with its header and its body."""

    channel: int
    control: Control | None = None
    command: Command | None = None
    sync: bool = False
    structs: tuple[Struct | Unknown, ...] | None = None
    body: bytes = b""


class Splitter:
    """A peer's bytes to what it sent, by other code than what is tested, but for the insides of segments.

    Only for peers that send each control, command and header in one frame, as all do that were recorded.
    """

    def __init__(self, *, header: bool = True) -> None:
        self._data = b""
        self._is_header_due = header
        self._open: dict[int, Sent] = {}

    def feed(self, data: bytes) -> Iterator[Sent]:
        self._data += data
        if self._is_header_due and len(self._data) >= len(HEADER):
            assert self._data.startswith(HEADER)
            self._data = self._data[len(HEADER) :]
            self._is_header_due = False
        while len(self._data) >= _FRAME_HEADER:
            size = int.from_bytes(self._data[2:4], "big")
            if len(self._data) < size:
                return
            frame, self._data = self._data[:size], self._data[size:]
            yield from self._segment(
                frame[0], SegmentType(frame[1]), int.from_bytes(frame[6:8], "big"), frame[_FRAME_HEADER:]
            )

    def _segment(self, flags: int, kind: SegmentType, channel: int, payload: bytes) -> Iterator[Sent]:
        match kind:
            case SegmentType.CONTROL:
                yield Sent(channel, control=decode_control(payload))
                return
            case SegmentType.COMMAND:
                command, sync = decode_command(payload)
                sent = Sent(channel, command=command, sync=sync)
            case SegmentType.HEADER:
                sent = evolve(self._open.pop(channel), structs=decode_header(payload))
            case SegmentType.BODY:
                before = self._open.pop(channel)
                sent = evolve(before, body=before.body + payload)
        if flags & 0b0101 == 0b0101:
            yield sent
        else:
            self._open[channel] = sent


def sent_by(sender: Role, conversation: tuple[Read, ...]) -> list[Sent]:
    """All that a peer sent in a conversation."""
    return list(Splitter().feed(b"".join(read.data for read in conversation if read.sender is sender)))
