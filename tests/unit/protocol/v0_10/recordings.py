"""Conversations of real 0-10 peers, as they were recorded between them, and their segments one by one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import field, frozen

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.frames import BODY, COMMAND, CONTROL, MOST_FRAME_SIZE, SegmentFrameDecoder
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.v0_10.codec import decode_command, decode_control, decode_header
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

RECORDINGS = Path("/work/shared/recordings-0-10")

NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in RECORDINGS.glob("*.jsonl.gz"))


@frozen
class Read:
    """What one read had, of one peer's bytes."""

    sender: Role
    data: bytes = field(repr=False)


@cache
def conversations(name: str) -> tuple[tuple[Read, ...], ...]:
    """The reads of each connection of a recording, in their order."""
    reads: dict[int, list[Read]] = {}
    with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if "hex" in row:
                sender = Role.CLIENT if row["from"] == "client" else Role.SERVER
                reads.setdefault(row["connection"], []).append(Read(sender, bytes.fromhex(row["hex"])))
    return tuple(tuple(conversation) for conversation in reads.values())


@frozen
class Sent:
    """What a peer sent in one go: a control, or a command with what belongs to it."""

    channel: int
    control: Control | None = None
    command: Command | None = None
    sync: bool = False
    structs: tuple[Struct | Unknown, ...] | None = None
    body: bytes = b""


class Splitter:
    """Bytes of a peer to what it sent, apart from the code under test but for the decoding of whole segments.

    Real peers send each segment but the body in one frame, and nothing amid a command on its channel.
    """

    def __init__(self) -> None:
        self._decoder = SegmentFrameDecoder(MOST_FRAME_SIZE)
        self._is_header_due = True
        self._open: dict[int, Sent] = {}

    def feed(self, data: bytes) -> Iterator[Sent]:
        self._decoder.feed(data)
        if self._is_header_due:
            if self._decoder.take(8) != PROTOCOL_HEADER:
                raise AssertionError("no protocol header")
            self._is_header_due = False
        while (frame := self._decoder.next()) is not None:
            is_done = frame.flags & 0b0101 == 0b0101
            if frame.segment_type == CONTROL:
                yield Sent(frame.channel, control=decode_control(frame.payload))
                continue
            if frame.segment_type == COMMAND:
                command, sync = decode_command(frame.payload)
                sent = Sent(frame.channel, command=command, sync=sync)
            else:
                before = self._open.pop(frame.channel)
                structs, body = before.structs, before.body
                if frame.segment_type == BODY:
                    body += frame.payload
                else:
                    structs = decode_header(frame.payload)
                sent = Sent(frame.channel, None, before.command, before.sync, structs, body)
            if is_done:
                yield sent
            else:
                self._open[frame.channel] = sent


def sent_by(sender: Role, conversation: tuple[Read, ...]) -> list[Sent]:
    """All that a peer sent in a conversation."""
    data = b"".join(read.data for read in conversation if read.sender is sender)
    return list(Splitter().feed(data))
