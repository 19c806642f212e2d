"""What has happened to messages, as clients saw it: records of fixed length, a file for each client.

Messages that follow one another are one record (`first` to `last`). A client's records are in the order in
which it saw them; between clients there is no order but their clocks', which is one clock here.
"""

from __future__ import annotations

import enum
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_RECORD = struct.Struct(">BBHIIId")


class Kind(enum.IntEnum):
    #: A publisher is about to send them.
    OFFERED = 1
    #: Sent, and denied by a policy if all is well: none may be confirmed or arrive.
    FORBIDDEN = 2
    CONFIRMED = 3
    NACKED = 4
    #: The broker has answered tx.commit, or tx.rollback.
    COMMITTED = 5
    ROLLED_BACK = 6
    #: A consumer's new life: what it was delivered before, and has not acknowledged, has to come again.
    BEGUN = 7
    DELIVERED = 8
    #: As DELIVERED, with the mark.
    REDELIVERED = 9
    #: Acknowledged, or rejected for good.
    ACKED = 10
    #: What arrived is no message of this run; `first` is how many bytes.
    UNKNOWN = 11
    #: Its properties are not those that it was sent with.
    CHANGED = 12
    #: A confirm (or nack) of a number that waits for none: `first` is the number.
    UNASKED = 13
    #: A connection's end that its client did not want; `first` is the reply code or 0.
    GONE = 14
    BLOCKED = 15
    UNBLOCKED = 16


class Event(NamedTuple):
    """One record."""

    kind: Kind
    client: int
    lane: int
    first: int
    last: int
    time: float


class Recorder:
    """Writes one client's records."""

    def __init__(self, path: Path, client: int) -> None:
        self._file = path.open("wb")
        self._client = client
        self._buffer = bytearray()
        self._flushed = 0.0

    def add(self, kind: Kind, lane: int = 0, first: int = 0, last: int = 0) -> None:
        now = time.time()
        self._buffer += _RECORD.pack(kind, 0, self._client, lane, first, last, now)
        if now - self._flushed > 0.5:
            self.flush()
            self._flushed = now

    def flush(self) -> None:
        self._file.write(self._buffer)
        self._file.flush()
        self._buffer.clear()

    def close(self) -> None:
        self.flush()
        self._file.close()


def read(path: Path) -> Iterator[Event]:
    """One client's records."""
    data = path.read_bytes()
    for kind, _, client, lane, first, last, when in _RECORD.iter_unpack(
        data[: len(data) - len(data) % _RECORD.size]
    ):
        yield Event(Kind(kind), client, lane, first, last, when)


def runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of those that follow one another."""
    first = last = None
    for number in numbers:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last
