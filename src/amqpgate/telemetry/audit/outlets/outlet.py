"""A bounded queue of pieces, and the thread that makes records of them, which are sent until they are
taken."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from amqpgate.logs import RECURRING, log_failure
from amqpgate.telemetry.audit.outlets.counts import OUTCOMES, OutletCounts
from amqpgate.telemetry.audit.outlets.events import events_of, without_bodies
from amqpgate.telemetry.audit.outlets.receiver import Ready, Receiver
from amqpgate.telemetry.audit.outlets.sending import GivenUpError, Sending
from amqpgate.telemetry.audit.pieces import Piece
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Records, and bytes, of one request.
RECORDS: Final = 512
BYTES: Final = 2 << 20
#: So many records are made ready at once. Then the interpreter is left to the relay for as long as it took.
_AT_ONCE: Final = 32
_REST: Final = 0.005


@define(eq=False)
class Outlet:
    """To one receiver. The log's writer puts, its own thread takes."""

    name: str
    receiver: Receiver
    max_queue: int
    #: Whether those wait who cause events while it is full.
    waits: bool
    #: Called by its thread when there is more room.
    on_room: Callable[[], None]
    #: By outcome, and `retries`. Each is written by one thread only.
    counts: Counter[str] = attrs.field(factory=Counter, init=False)
    _queue: deque[Piece] = attrs.field(factory=deque, init=False)
    _woken: threading.Event = attrs.field(factory=threading.Event, init=False)
    #: Somebody waits for the end; nobody does any longer.
    _over: threading.Event = attrs.field(factory=threading.Event, init=False)
    _given_up: threading.Event = attrs.field(factory=threading.Event, init=False)
    _sending: Sending = attrs.field(init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._sending = Sending(self.name, self.receiver, self.counts, self._over, self._given_up)

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=f"audit {self.name}", daemon=True)
        self._thread.start()

    def put(self, piece: Piece) -> None:
        """Take a piece. It is taken even without room where somebody waits for that."""
        if not self.waits and self.held >= self.max_queue:
            self.counts["dropped"] += piece.length
            log.warning("audit: records for %s are dropped: too many wait", self.name, extra=RECURRING)
            return
        kept = without_bodies(piece)
        self.counts["taken"] += kept.length
        self.counts["bytes taken"] += kept.byte_count
        self._queue.append(kept)
        self._woken.set()

    @property
    def held(self) -> int:
        """Bytes that wait."""
        return self.counts["bytes taken"] - self.counts["bytes released"]

    @property
    def waiting(self) -> int:
        """Records that wait."""
        counts = self.counts
        ended = counts["written"] + counts["rejected"] + counts["unroutable"] + counts["stopped"]
        return max(0, counts["taken"] - ended)

    @property
    def is_down(self) -> bool:
        """Whether what is to be written can neither be sent nor wait."""
        return self.waits and self._sending.is_failing and self.held >= self.max_queue

    def reading(self) -> OutletCounts:
        """What became of its records so far."""
        outcomes = {outcome: self.counts[outcome] for outcome in OUTCOMES}
        return OutletCounts(self.waiting, self.held, outcomes, self.counts["retries"])

    def hurry(self) -> None:
        """Nothing more comes, and somebody waits for the end."""
        self._over.set()
        self._woken.set()

    def stop(self, until: float) -> bool:
        """Wait for the end, until that time of the monotonic clock at most: whether all was sent. Comes after
        `hurry`."""
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))
        self._given_up.set()
        left = self.waiting
        if left:
            self.counts["stopped"] += left
            log.error("audit: %d records were not taken by %s until the end, and are lost", left, self.name)
        return not left

    def _run(self) -> None:
        try:
            while not self._over.is_set() or self._queue:
                self._woken.wait()
                self._woken.clear()
                while self._queue:
                    self._deliver()
        except GivenUpError:
            return
        finally:
            try:
                self.receiver.close()
            except Exception:
                log_failure(log, "audit: the connection to %s could not be closed", self.name)

    def _deliver(self) -> None:
        """The first piece, and those behind it that go into the same request."""
        pieces = [self._queue.popleft()]
        count = pieces[0].length
        while self._queue and count + self._queue[0].length <= RECORDS:
            pieces.append(self._queue.popleft())
            count += pieces[-1].length
        for batch in _batches(record for piece in pieces for record in self._ready(piece)):
            self._sending.send(batch)
        self.counts["bytes released"] += sum(piece.byte_count for piece in pieces)
        self.on_room()

    def _ready(self, piece: Piece) -> list[Ready]:
        """Its records; those that cannot be written at all are lost, alone."""
        try:
            return self._made(piece)
        except Exception:
            # Of whatever it comes: a defect costs the records that show it, and not the thread.
            if piece.clean():
                return self._ready(piece)
            if piece.length > 1:
                return [record for half in piece.halves() for record in self._ready(half)]
            log.exception("audit: a record cannot be written for %s, and is lost", self.name)
            self.counts["rejected"] += 1
            return []

    def _made(self, piece: Piece) -> list[Ready]:
        made: list[Ready] = []
        began = time.perf_counter()
        for event in events_of(piece):
            made.append(self.receiver.ready(event))
            if len(made) % _AT_ONCE == 0 and not self._over.is_set():
                time.sleep(min(time.perf_counter() - began, _REST))
                began = time.perf_counter()
        return made


def _batches(records: Iterator[Ready]) -> Iterator[list[Ready]]:
    batch: list[Ready] = []
    size = 0
    for record in records:
        if batch and (len(batch) >= RECORDS or size + len(record.data) > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.data)
    if batch:
        yield batch
