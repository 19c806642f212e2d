"""The body of one message from a store: into a file without a name, and compared, before anybody reads it.

A consumer never gets a part of a body that turns out to be wrong, or to end too early; and no connection to
the store waits for a consumer that is slow. Files take `MOST_SPOOLED` bytes at once; who comes later waits.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Callable
from typing import BinaryIO, Final, cast

import attrs

from amqpgate.gateway.objects.store import ObjectLostError, ObjectStore, StoreError
from amqpgate.gateway.objects.threads import StoreThreads, Work
from amqpgate.values import define, frozen

#: Bytes of all bodies of one process that wait in files. One that is larger has the room to itself.
MOST_SPOOLED: Final = 4 << 30
#: Bytes of a body that are read of its file at once.
CHUNK: Final = 256 * 1024


@frozen
class WantedBody:
    """A body, and what it must be."""

    key: str
    byte_count: int
    #: SHA-256, as hexadecimal digits.
    digest: str


@define(eq=False)
class SpoolRoom:
    """How much is in files. Of one owner it is half at most, or one body: who does not read keeps no others
    waiting. Owners take turns."""

    most: int = MOST_SPOOLED
    #: By owner.
    _used: dict[object, int] = attrs.field(factory=dict, init=False)
    _line: dict[object, deque[tuple[int, Callable[[], None]]]] = attrs.field(factory=dict, init=False)

    def take(self, byte_count: int, on_turn: Callable[[], None], owner: object = "") -> None:
        """Call ``on_turn`` when there is room, which may be now. It is taken then."""
        self._line.setdefault(owner, deque()).append((byte_count, on_turn))
        self._serve()

    def give_back(self, byte_count: int, owner: object = "") -> None:
        """A file is gone."""
        self._used[owner] -= byte_count
        if not self._used[owner]:
            del self._used[owner]
        self._serve()

    def _serve(self) -> None:
        while (owner := self._next()) is not None:
            waiting = self._line.pop(owner)
            byte_count, on_turn = waiting.popleft()
            if waiting:
                self._line[owner] = waiting
            self._used[owner] = self._used.get(owner, 0) + byte_count
            on_turn()

    def _next(self) -> object | None:
        """Whose turn it is, if there is room. Who has its share is passed over, and nobody else."""
        used = sum(self._used.values())
        for owner, waiting in self._line.items():
            byte_count, own = waiting[0][0], self._used.get(owner, 0)
            if not own or own + byte_count <= self.most // 2:
                return owner if not used or used + byte_count <= self.most else None
        return None


@define(eq=False)
class Download:
    """Of one message. The gateway's thread alone calls it, and is called."""

    threads: StoreThreads
    store: ObjectStore
    wanted: WantedBody
    room: SpoolRoom
    #: It is here, whole and as it should be, or cannot be had. Not called after `close`.
    on_done: Callable[[StoreError | None], None]
    #: Whose it is.
    owner: object = ""
    _file: BinaryIO | None = attrs.field(default=None, init=False)
    _has_room: bool = attrs.field(default=False, init=False)
    _is_busy: bool = attrs.field(default=False, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    def start(self) -> None:
        """Begin, as soon as there is room."""
        self.room.take(self.wanted.byte_count, self._begin, self.owner)

    def read(self, at: int, on_read: Callable[[bytes | StoreError], None]) -> None:
        """Some bytes of the body from there on, in a later call."""
        file = self._file
        assert file is not None, "it is here"

        def work() -> bytes:
            try:
                return os.pread(file.fileno(), CHUNK, at)
            except OSError as error:
                raise StoreError(f"cannot read what was got: {error.strerror}") from error

        def done(result: bytes | StoreError) -> None:
            self._is_busy = False
            if self._is_closed:
                self._release()
            else:
                on_read(result)

        self._is_busy = self.threads.start(Work.FILE, work, done, lambda _: file.close())

    def close(self) -> None:
        """It is not needed any more. Whoever was to be told leads back here, and so is not kept."""
        self._is_closed = True
        self.on_done = _unheard
        if not self._is_busy:
            self._release()

    def _begin(self) -> None:
        self._has_room = True
        if self._is_closed:
            self._release()
            return
        self._is_busy = self.threads.start(Work.GET, self._fetch, self._fetched, lambda file: file.close())

    def _fetch(self) -> BinaryIO:
        """In a thread."""
        wanted, got, digest = self.wanted, 0, hashlib.sha256()
        try:
            file = cast(BinaryIO, tempfile.TemporaryFile(prefix="amqpgate-"))  # noqa: SIM115
        except OSError as error:
            raise StoreError(f"no file for a body: {error.strerror}") from error
        try:
            for piece in self.store.read(wanted.key):
                got += len(piece)
                if got > wanted.byte_count or self._is_closed:
                    break
                digest.update(piece)
                file.write(piece)
            file.flush()
        except BaseException as error:
            file.close()
            if isinstance(error, OSError):
                raise StoreError(f"no room for a body: {error.strerror}") from error
            raise
        if got != wanted.byte_count or digest.hexdigest() != wanted.digest:
            file.close()
            raise ObjectLostError("the object is not what was put there")
        return file

    def _fetched(self, result: BinaryIO | StoreError) -> None:
        self._is_busy = False
        if not isinstance(result, StoreError):
            self._file = result
        if self._is_closed:
            self._release()
        else:
            self.on_done(result if isinstance(result, StoreError) else None)

    def _release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._has_room:
            self._has_room = False
            self.room.give_back(self.wanted.byte_count, self.owner)


def _unheard(error: StoreError | None) -> None:
    pass
