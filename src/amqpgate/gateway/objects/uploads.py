"""The body of one message on its way to a store, in parts, as it comes.

::

    add ──▶ a part is full, none under way ──▶ a thread sends it ──▶ the next one
      │     a part is full, one is under way: `is_full`, the sender waits
    finish ──▶ the last part ──▶ complete ──▶ on_done
    abandon, or a part that fails ──▶ the upload is aborted, what was complete is removed

No thread is held by a sender that is slow; two parts of each upload are in memory at most. How many uploads
there may be at once is `UploadSlots`'.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

import attrs
import trio

from amqpgate.gateway.objects.store import PART, ObjectStore, StoreError
from amqpgate.gateway.objects.threads import StoreThreads, Work
from amqpgate.logs import log_failure
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

#: Uploads of one process at once: two parts of each may be in memory, which is 160 MiB.
MOST_UPLOADS: Final = 16


@frozen
class Uploaded:
    """What is there now."""

    key: str
    byte_count: int
    #: SHA-256, as hexadecimal digits.
    digest: str


@define(eq=False)
class _Sent:
    """What the threads know of one upload: they work on it one after the other."""

    store: ObjectStore
    key: str
    upload: str = ""
    parts: list[str] = attrs.field(factory=list)
    byte_count: int = 0
    is_there: bool = False
    _digest: hashlib._Hash = attrs.field(factory=lambda: hashlib.sha256())

    def send(self, data: bytearray, *, is_last: bool) -> Uploaded:
        """The next part."""
        self._digest.update(data)
        self.byte_count += len(data)
        if is_last and not self.upload:
            self.store.put(self.key, data)
            self.is_there = True
        else:
            self.upload = self.upload or self.store.begin(self.key)
            if data or not self.parts:
                self.parts.append(self.store.part(self.key, self.upload, len(self.parts) + 1, data))
            if is_last:
                self.store.complete(self.key, self.upload, self.parts)
                self.is_there = True
        return Uploaded(self.key, self.byte_count, self._digest.hexdigest())

    def undo(self) -> None:
        """Nothing of it stays there, as far as the store can be asked. What stays, `claims collect` finds."""
        with contextlib.suppress(StoreError):
            if self.is_there:
                self.store.delete(self.key)
            elif self.upload:
                self.store.abort(self.key, self.upload)
            else:
                # A put that failed may have been done all the same.
                self.store.delete(self.key)


@define(eq=False)
class Upload:
    """Of one message. The gateway's thread alone calls it, and is called."""

    threads: StoreThreads
    store: ObjectStore
    key: str
    #: The sender need not wait any more.
    on_room: Callable[[], None]
    #: It is there, or never will be. Not called after `abandon`.
    on_done: Callable[[Uploaded | StoreError], None]
    _sent: _Sent = attrs.field(init=False)
    _next: bytearray = attrs.field(factory=bytearray, init=False)
    _is_sending: bool = attrs.field(default=False, init=False)
    _is_whole: bool = attrs.field(default=False, init=False)
    _is_over: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._sent = _Sent(self.store, self.key)

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be added until ``on_room``."""
        return self._is_sending and len(self._next) >= PART

    def add(self, data: bytes | memoryview) -> None:
        """More of the body has come."""
        if not self._is_over:
            self._next += data
            self._send()

    def finish(self) -> None:
        """All of it has come."""
        self._is_whole = True
        self._send()

    def abandon(self) -> None:
        """Nobody wants it any more, be it there or not."""
        if not self._is_over:
            self._end()
            if not self._is_sending:
                self._undo()

    def discard(self) -> None:
        """It is there, and nobody has heard of it, nor will."""
        self._undo()

    def _send(self) -> None:
        if self._is_sending or self._is_over or not (self._is_whole or len(self._next) >= PART):
            return
        data = self._next
        is_last = self._is_whole and len(data) <= PART
        self._next = bytearray()
        if len(data) > PART:
            self._next += memoryview(data)[PART:]
            del data[PART:]
        self._is_sending = True
        sent = self._sent

        def work() -> tuple[Uploaded, bool]:
            return sent.send(data, is_last=is_last), is_last

        self.threads.start(Work.PUT, work, self._went)

    def _went(self, result: tuple[Uploaded, bool] | StoreError) -> None:
        self._is_sending = False
        if self._is_over:
            self._undo()
            return
        if isinstance(result, StoreError):
            on_done = self._end()
            self._undo()
            on_done(result)
            return
        uploaded, is_last = result
        if is_last:
            self._end()(uploaded)
            return
        self._send()
        self.on_room()

    def _end(self) -> Callable[[Uploaded | StoreError], None]:
        """It is over: whom to tell, which leads back here, and so is not kept."""
        self._is_over = True
        self._next = bytearray()
        on_done = self.on_done
        del self.on_room, self.on_done
        return on_done

    def _undo(self) -> None:
        if self._sent.is_there or self._sent.upload or self._sent.byte_count:
            self.threads.start(Work.PUT, self._sent.undo, lambda _: None)


class Uploader(Protocol):
    """Who waits for a turn, or has it."""

    @property
    def owner(self) -> object:
        """Whose it is: a user has no more than a share."""

    def on_turn(self) -> None:
        """It may go on."""

    def is_late(self, now: float) -> bool:
        """Whether it has had nothing to send, or no turn, for too long; ``now`` is on the monotonic clock."""

    def expire(self) -> None:
        """It is late, and others wait: give the place back."""


@define(eq=False)
class UploadSlots:
    """How many uploads there may be at once; who comes later waits in line.

    Of one owner there are half as many at most: slow ones cannot keep others waiting. Owners take turns.
    """

    most: int = MOST_UPLOADS
    _taken: dict[Uploader, None] = attrs.field(factory=dict, init=False)
    #: By owner, the one first whose turn it is.
    _line: dict[object, dict[Uploader, None]] = attrs.field(factory=dict, init=False)
    _contended: trio.Event = attrs.field(factory=trio.Event, init=False)

    def take(self, who: Uploader) -> None:
        """It may go on now, or waits in line for its turn."""
        if self._has_room(who.owner):
            self._taken[who] = None
        else:
            self._line.setdefault(who.owner, {})[who] = None
            self._contended.set()

    def has(self, who: Uploader) -> bool:
        """Whether it has its turn."""
        return who in self._taken

    def give_back(self, who: Uploader) -> None:
        """It does not upload, or wait, any more."""
        waiting = self._line.get(who.owner, {})
        waiting.pop(who, None)
        if not waiting:
            self._line.pop(who.owner, None)
        if who in self._taken:
            del self._taken[who]
            self._serve()

    def _has_room(self, owner: object) -> bool:
        share = max(1, self.most // 2)
        return len(self._taken) < self.most and sum(one.owner == owner for one in self._taken) < share

    def _serve(self) -> None:
        for owner, waiting in self._line.items():
            if self._has_room(owner):
                other = next(iter(waiting))
                del waiting[other]
                del self._line[owner]
                if waiting:
                    self._line[owner] = waiting
                self._taken[other] = None
                other.on_turn()
                return

    async def look_after(self) -> None:
        """While anybody waits: who is late is told every second, until this is cancelled."""
        while True:
            await self._contended.wait()
            await trio.sleep(1)
            try:
                self.expire(time.monotonic())
            except Exception:
                log_failure(log, "a claim check failed")
            if not self._line:
                self._contended = trio.Event()

    def expire(self, now: float) -> None:
        """Others wait: who is late gives back its place."""
        if self._line:
            for who in [*self._taken, *(who for waiting in self._line.values() for who in waiting)]:
                if who.is_late(now):
                    who.expire()
