"""Records as lines of JSON, to standard output, for whoever collects what a container says.

A line is an object in ASCII: ``record`` (``event`` or ``usage``), then the columns that are not null, in the
order of `amqpgate.records`. Times are RFC 3339, UTC, with microseconds; a body is base64.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import functools
import json
import os
import select
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from amqpgate.records import TABLES, Sort
from amqpgate.telemetry.audit.pieces import Column, Piece

#: So many bytes go into a pipe at once and in one part (POSIX, PIPE_BUF), whoever else writes there.
_ATOMIC: Final = select.PIPE_BUF

_RECORD: Final[Mapping[Sort, str]] = {"events": "event", "usage": "usage"}
_KINDS: Final[Mapping[Sort, Mapping[str, str]]] = {
    sort: {field.name: field.metadata["kind"] for field in attrs.fields(table)}
    for sort, table in TABLES.items()
}


class LineSink:
    """Writes to a file descriptor that others write to as well, and that is not closed here.

    Lines of up to 4096 bytes are never mixed with those of others. Longer ones are not mixed with those of
    other workers, by a lock; who writes to the same pipe without it can get in between.
    """

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd
        self._piece: Piece | None = None
        #: What is left of the piece.
        self._chunks: deque[bytes] = deque()

    def start(self) -> None:
        """``OSError`` where there is no standard output."""
        os.fstat(self._fd)

    def recover(self) -> None:
        """Nothing is left of earlier processes."""

    def write(self, piece: Piece) -> None:
        """Write the lines of the piece, or after an error those that are left."""
        if self._piece is not piece:
            self._chunks = deque(_chunks(lines_of(piece)))
            self._piece = piece
        with self._locked():
            while self._chunks:
                chunk = self._chunks.popleft()
                try:
                    chunk = chunk[self._put(chunk) :]
                finally:
                    if chunk:
                        self._chunks.appendleft(chunk)
        self._piece = None

    def settle(self) -> float | None:
        """Nothing waits here."""
        return None

    def close(self) -> None:
        """Nothing waits here."""

    def _put(self, chunk: bytes) -> int:
        # It may be non-blocking, since a terminal or a pipe can be shared with a process that made it so.
        waiter = select.poll()
        waiter.register(self._fd, select.POLLOUT)
        waiter.poll()
        with contextlib.suppress(BlockingIOError):
            return os.write(self._fd, chunk[:_ATOMIC])
        return 0

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other workers out. Where it cannot be locked there is nobody, or nothing to be done."""
        with contextlib.suppress(OSError):
            fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.lockf(self._fd, fcntl.LOCK_UN)


def lines_of(piece: Piece) -> Iterator[bytes]:
    """A line for each record. ``UnicodeEncodeError`` where a text cannot be one."""
    kinds = _KINDS[piece.sort]
    start = {"record": _RECORD[piece.sort]}
    columns = [_readable(kinds[name], piece.columns[name]) for name in kinds]
    for values in zip(*columns, strict=True):
        said = {name: value for name, value in zip(kinds, values, strict=True) if value is not None}
        text = json.dumps(start | said, separators=(",", ":"))
        if r"\ud" in text:
            # Half of a pair would pass as an escape; written out it cannot.
            json.dumps(said, ensure_ascii=False).encode()
        yield text.encode() + b"\n"


def _readable(kind: str, column: Column) -> Iterable[object]:
    if kind == "time":
        return [_rfc3339(value) for value in column if isinstance(value, float)]
    if kind == "bytes":
        return [base64.b64encode(value).decode() if isinstance(value, bytes) else None for value in column]
    return column


def _rfc3339(seconds: float) -> str:
    whole, micros = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_to_the_second(whole)}.{micros:06d}Z"


@functools.lru_cache(maxsize=256)
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, as many at once as others cannot get in between."""
    chunk = b""
    for line in lines:
        if chunk and len(chunk) + len(line) > _ATOMIC:
            yield chunk
            chunk = b""
        chunk += line
    if chunk:
        yield chunk
