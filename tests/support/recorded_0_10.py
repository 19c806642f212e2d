"""What is in `tests/recordings_0_10`: real conversations of AMQP 0-10."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

FOLDER = Path(__file__).parents[1] / "recordings_0_10"
#: What both sides say first.
HEADER = b"AMQP\x01\x01\x00\x0a"
_FRAME_HEADER = 12


@frozen
class Stream:
    """All that one side of a connection said."""

    #: The name of the file, without its endings.
    recording: str
    connection: int
    #: "client" or "broker".
    side: str
    data: bytes


@frozen
class Frame:
    """One frame: the bits of its first byte, its segment type, its channel, what it carries."""

    flags: int
    type: int
    channel: int
    payload: bytes


@cache
def streams() -> tuple[Stream, ...]:
    """Both sides of each connection of all recordings."""
    found: list[Stream] = []
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        said: dict[tuple[int, str], bytearray] = defaultdict(bytearray)
        with gzip.open(path, "rt") as lines:
            for line in lines:
                read = json.loads(line)
                said[read["connection"], read["from"]] += bytes.fromhex(read.get("hex", ""))
        name = path.name.removesuffix(".jsonl.gz")
        found += [Stream(name, number, side, bytes(data)) for (number, side), data in said.items()]
    return tuple(found)


def frames(stream: Stream) -> Iterator[Frame]:
    """The frames behind the protocol header."""
    data = stream.data
    assert data.startswith(HEADER)
    at = len(HEADER)
    while at < len(data):
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        channel = int.from_bytes(data[at + 6 : at + 8], "big")
        payload = data[at + _FRAME_HEADER : at + size]
        assert len(payload) == size - _FRAME_HEADER
        yield Frame(data[at], data[at + 1], channel, payload)
        at += size
