"""Memory that the workers of one gateway share: buckets of limits, connections at once, and the last hour.

The supervisor makes it and hands it to each worker. A limit's bucket is a *slot*: who draws on it changes the
one count that there is, on the data path, too. So nothing is handed out beforehand, and a worker that is
killed takes nothing with it. Slots are found by a digest of the limit as it is written, with its values::

    slot      digest (16) | tokens, stamp (16: `flows.LEVEL`) | rate, burst (16)
    worker    of each slot: how often the worker uses it, and its sessions (4 + 4)
    history   of each worker: a ring (`telemetry.history`)

All of it is bounded. A slot that nobody uses and that is full again is given to the next limit. Where none is
left for a limit, its worker counts alone, and the log says so. Slots are given out under a lock of the file,
which the kernel takes from a process that dies; who is gone uses nothing (``forget``).
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import mmap
import os
import struct
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self

import attrs

from amqpgate.digests import blake2b
from amqpgate.telemetry.history import RING
from amqpgate.values import define

if TYPE_CHECKING:
    from amqpgate.datapath.scanner import Bucket
    from amqpgate.policy import SharedLimit

log = logging.getLogger(__name__)

#: Slots, and how many of them a digest may be in.
SLOTS: Final = 1 << 16
NEAR: Final = 64

_DIGEST: Final = 16
_RATES: Final = struct.Struct("=dd")
_LEVEL: Final = struct.Struct("=dd")
_USES: Final = struct.Struct("=i")
_SLOT: Final = _DIGEST + _LEVEL.size + _RATES.size
_FREE: Final = bytes(_DIGEST)


def _size(workers: int) -> int:
    return SLOTS * (_SLOT + 2 * _USES.size * workers) + RING * workers


@define(eq=False)
class Slot:
    """A slot that this process uses."""

    shared: SharedMemory
    slot: int

    def bucket(self, rate: float, burst: float) -> Bucket:
        """The bucket that is there."""
        # The supervisor has the memory, too, and no data path.
        from amqpgate.datapath.scanner import Bucket

        found = Bucket(rate, burst)
        found.share(self.shared.memory, self.slot * _SLOT + _DIGEST)
        return found

    @property
    def others(self) -> int:
        """Sessions that other workers have."""
        mine = self.shared.worker
        return sum(
            self.shared.sessions(worker, self.slot) for worker in range(self.shared.workers) if worker != mine
        )

    def tell(self, sessions: int) -> None:
        """So many sessions has this worker."""
        self.shared.put(self.shared.worker, self.slot, 1, sessions)

    def leave(self) -> None:
        """It is used once less."""
        with self.shared.locked():
            self.shared.use(self.slot, -1)


@define(eq=False)
class SharedMemory:
    """The shared memory as one process sees it; ``worker`` is its number, and -1 for the supervisor."""

    fd: int
    workers: int
    worker: int
    memory: mmap.mmap = attrs.field(init=False)
    _depth: int = attrs.field(default=0, init=False)
    _is_told: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.memory = mmap.mmap(self.fd, self.size)

    @classmethod
    def make(cls, workers: int) -> Self:
        """A new one, empty. ``OSError`` where there is no memory."""
        fd = os.memfd_create("amqpgate-limits")
        os.ftruncate(fd, _size(workers))
        return cls(fd, workers, -1)

    @property
    def size(self) -> int:
        """Bytes; what nobody has written takes none."""
        return _size(self.workers)

    @property
    def history(self) -> memoryview:
        """The rings of all workers, by number. They outlive a worker."""
        return memoryview(self.memory)[self._at(self.workers, 0, 0) :]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """No other process looks for a slot, or counts sessions. May be nested."""
        if not self._depth:
            fcntl.lockf(self.fd, fcntl.LOCK_EX)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                fcntl.lockf(self.fd, fcntl.LOCK_UN)

    def claim(self, limit: SharedLimit, what: str, rate: float, burst: float) -> Slot | None:
        """The slot of a limit's bucket of that quantity, full if nobody has used it; None: there is none."""
        digest = blake2b(repr((attrs.astuple(limit), what)).encode(), digest_size=_DIGEST).digest()
        with self.locked():
            slot = self._find(digest, time.monotonic())
            if slot is None:
                if not self._is_told:
                    self._is_told = True
                    log.warning(
                        "limit %s is counted by each worker alone: there are too many limits", limit.name
                    )
                return None
            at = slot * _SLOT
            if self.memory[at : at + _DIGEST] != digest:
                level = _LEVEL.pack(burst, time.monotonic())
                self.memory[at : at + _SLOT] = digest + level + _RATES.pack(rate, burst)
            self.use(slot, 1)
        return Slot(self, slot)

    def _find(self, digest: bytes, now: float) -> int | None:
        """Where it is, or may be."""
        first, free = int.from_bytes(digest[:4], "big"), None
        for near in range(NEAR):
            slot = (first + near) % SLOTS
            at = slot * _SLOT
            found = self.memory[at : at + _DIGEST]
            if found == digest:
                return slot
            if free is None and (found == _FREE or self._is_idle(slot, now)):
                free = slot
        return free

    def _is_idle(self, slot: int, now: float) -> bool:
        if any(self._get(worker, slot, 0) > 0 for worker in range(self.workers)):
            return False
        at = slot * _SLOT + _DIGEST
        tokens, stamp = _LEVEL.unpack_from(self.memory, at)
        rate, burst = _RATES.unpack_from(self.memory, at + _LEVEL.size)
        return bool(tokens + (now - stamp) * rate >= burst)

    def use(self, slot: int, more: int) -> None:
        """This worker uses it so much more."""
        uses = self._get(self.worker, slot, 0) + more
        self.put(self.worker, slot, 0, uses)
        if not uses:
            self.put(self.worker, slot, 1, 0)

    def sessions(self, worker: int, slot: int) -> int:
        """How many a worker has there."""
        return self._get(worker, slot, 1)

    def put(self, worker: int, slot: int, column: int, value: int) -> None:
        """Uses (column 0) or sessions (1) of a worker's."""
        _USES.pack_into(self.memory, self._at(worker, slot, column), value)

    def _get(self, worker: int, slot: int, column: int) -> int:
        found: int = _USES.unpack_from(self.memory, self._at(worker, slot, column))[0]
        return found

    def _at(self, worker: int, slot: int, column: int) -> int:
        return SLOTS * _SLOT + ((2 * worker + column) * SLOTS + slot) * _USES.size

    def forget(self, worker: int) -> None:
        """A worker is gone: it uses nothing, and has no sessions."""
        with self.locked():
            begin, size = self._at(worker, 0, 0), 2 * SLOTS * _USES.size
            self.memory[begin : begin + size] = bytes(size)
