"""A file that records are appended to, and that can be read after a crash: an Arrow IPC stream.

Parquet has its index at the end: a file without it is lost. So records go here first, each piece in a
message of its own, and become Parquet when the file is full or old enough. The process that writes holds a
lock (flock) on it; whoever gets that lock has found what a dead process left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final, Self

import attrs
import pyarrow as pa

#: Files are for their owner and its group, or fewer by the umask.
FILE_MODE: Final = 0o640


@attrs.define(eq=False)
class Stream:
    """A file of whole messages: the schema, then batches of records."""

    path: Path
    fd: int
    #: Bytes and records that are whole.
    byte_count: int = 0
    records: int = 0
    #: Whether some of it may not be on the disk yet.
    unsynced: bool = True

    @classmethod
    def create(cls, path: Path, schema: pa.Schema) -> Self:
        """A new one, locked. ``OSError``: there is none then."""
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            stream = cls(path, fd)
            try:
                # Where files cannot be locked, nobody can take it for a dead one's either.
                with contextlib.suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_EX)
                if os.fstat(fd).st_nlink == 0:
                    # Somebody who looks for the files of the dead was between the two.
                    os.close(fd)
                    continue
                stream._put(schema.serialize())
                sync_folder(path.parent)
            except OSError:
                stream.discard()
                raise
            return stream

    @classmethod
    def of_the_dead(cls, path: Path) -> Self | None:
        """One whose process is gone, read as far as it is whole; None where the process lives.

        ``OSError`` where that cannot be known.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        stream = cls(path, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_nlink == 0:
                stream.close()
                return None
        except BlockingIOError:
            stream.close()
            return None
        except OSError:
            stream.close()
            raise
        stream.byte_count = os.fstat(fd).st_size
        return stream

    def append(self, batch: pa.RecordBatch) -> None:
        """Add records: all, or none with ``OSError``."""
        self._put(batch.serialize())
        self.records += batch.num_rows

    def sync(self) -> None:
        """Return once it is on the disk."""
        if self.unsynced:
            os.fdatasync(self.fd)
            self.unsynced = False

    def table(self) -> pa.Table:
        """All records. ``OSError`` where somebody else has changed the file."""
        try:
            table = pa.ipc.open_stream(self._read()).read_all()
        except pa.ArrowInvalid as error:
            raise OSError(f"{self.path}: {error}") from error
        if table.num_rows != self.records:
            raise OSError(f"{self.path}: {table.num_rows} records of {self.records}")
        return table

    def whole(self) -> pa.Table | None:
        """Likewise, of one that may end anywhere: all before the first that is not whole, or None."""
        found = []
        if self.byte_count:
            with contextlib.suppress(pa.ArrowException, OSError):
                for batch in pa.ipc.open_stream(self._read()):
                    batch.validate(full=True)
                    found.append(batch)
        return pa.Table.from_batches(found) if found else None

    def discard(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.close()

    def close(self) -> None:
        """Let go of it; the lock is free then."""
        os.close(self.fd)

    def _read(self) -> bytes:
        # Not mapped: that would be the end of this process where somebody cuts the file or the disk fails.
        parts, at = [], 0
        while at < self.byte_count and (part := os.pread(self.fd, self.byte_count - at, at)):
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def _put(self, message: pa.Buffer) -> None:
        rest, at = memoryview(message), self.byte_count
        try:
            while rest:
                written = os.pwrite(self.fd, rest, at)
                rest, at = rest[written:], at + written
        except OSError:
            # What is there of it takes room that somebody needs.
            with contextlib.suppress(OSError):
                os.ftruncate(self.fd, self.byte_count)
            raise
        self.byte_count = at
        self.unsynced = True


def sync_folder(folder: Path) -> None:
    """Return once the names in it are on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
