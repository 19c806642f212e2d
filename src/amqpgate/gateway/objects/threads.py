"""Threads in which a store's calls block, and how the gateway's thread hears of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from queue import SimpleQueue
from threading import Thread
from typing import Final, TypeVar

import attrs
import trio

from amqpgate.gateway.objects.store import StoreError
from amqpgate.logs import log_failure
from amqpgate.values import define

T = TypeVar("T")

log = logging.getLogger(__name__)


class Work(Enum):
    """What a thread is for: none of these waits for another."""

    PUT = "put"
    GET = "get"
    #: A file of this machine's.
    FILE = "file"


#: How many threads there are for each. A part has 5 MiB, so what uploads hold in calls is 40 MiB.
THREADS: Final = {Work.PUT: 8, Work.GET: 8, Work.FILE: 2}


@define(eq=False)
class _Pool:
    """Threads for one kind of work. No process waits for them at its end: a store may be silent for long."""

    name: str
    most: int
    _queue: SimpleQueue[Callable[[], None] | None] = attrs.field(factory=SimpleQueue, init=False)
    _threads: int = attrs.field(default=0, init=False)

    def submit(self, work: Callable[[], None]) -> None:
        """Do it when a thread is free. It must not raise."""
        self._queue.put(work)
        if self._threads < self.most:
            self._threads += 1
            Thread(target=self._run, name=f"{self.name}-{self._threads}", daemon=True).start()

    def close(self) -> None:
        """End the threads, each after what it does now, and what was submitted before."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()


@define(eq=False)
class StoreThreads:
    """Of one gateway. They start when they are first needed."""

    #: Runs a function on the gateway's thread, from any; None: the gateway does not run.
    _soon: Callable[[Callable[[], object]], None] | None = attrs.field(default=None, init=False)
    _pools: dict[Work, _Pool] = attrs.field(factory=dict, init=False)

    async def run(self) -> None:
        """Until it is cancelled. What is under way then is not waited for."""
        self._soon = trio.lowlevel.current_trio_token().run_sync_soon
        try:
            await trio.sleep_forever()
        finally:
            self._soon = None
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def start(
        self,
        kind: Work,
        work: Callable[[], T],
        done: Callable[[T | StoreError], None],
        undo: Callable[[T], None] | None = None,
    ) -> bool:
        """Do it in a thread, and then call ``done`` on the gateway's, in no upcall.

        False: the gateway does not run. What else than `StoreError` it raises is a defect: it is logged, and
        told as one. If the gateway has ended meanwhile nobody hears of the result: ``undo`` gets it, in the
        thread.
        """

        def run() -> None:
            result: T | StoreError
            try:
                result = work()
            except StoreError as error:
                result = error
            except Exception as error:
                log_failure(log, "a claim check failed")
                result = StoreError(f"cannot use the object store: {type(error).__name__}")
                result.__cause__ = error
            if (
                not self.soon(lambda: done(result))
                and undo is not None
                and not isinstance(result, StoreError)
            ):
                undo(result)

        if self._soon is None:
            return False
        pool = self._pools.get(kind)
        if pool is None:
            pool = self._pools[kind] = _Pool(f"claims-{kind.value}", THREADS[kind])
        pool.submit(run)
        return True

    def soon(self, call: Callable[[], None]) -> bool:
        """Call it on the gateway's thread, in no upcall. Safe from all threads. False: it has ended."""

        def contained() -> None:
            try:
                call()
            except Exception:
                log_failure(log, "a claim check failed")

        soon = self._soon
        if soon is None:
            return False
        try:
            soon(contained)
        except trio.RunFinishedError:
            return False
        return True
