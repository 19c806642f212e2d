"""The thread that writes. What it cannot write waits, and is tried again."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from amqpgate.logs import log_failure
from amqpgate.records import Sort
from amqpgate.telemetry.audit.messages import WaitingMessages
from amqpgate.telemetry.audit.pieces import MESSAGES, PIECE_BYTES, ROW_BYTES, SIZE, Piece, Pieces, Waiting
from amqpgate.telemetry.audit.rows import Sums

T = TypeVar("T")
E = TypeVar("E", Waiting, WaitingMessages)

log = logging.getLogger(__name__)

#: How long the first event waits for others to be written with it, in seconds.
_GATHER = 0.5
#: It does not wait longer once there are so many.
_ENOUGH = 1000
#: Seconds between attempts to write.
_RETRY = 1.0
#: Seconds that the piece in hand may take once nobody waits for the others.
_LAST_PIECE = 2.0
#: What a sink raises for a value that cannot be written.
_UNWRITABLE = (TypeError, ValueError, OverflowError)
#: After each piece the interpreter is left to the relay for as long as the piece took, but at most so long.
_REST = 0.005


class Sink(Protocol):
    """Where pieces go. One thread calls; what raises ``OSError`` is called again until it does not."""

    def start(self) -> None:
        """Take what there is to be taken; called by whoever starts the log."""

    def recover(self) -> None:
        """Finish what earlier processes have left."""

    def write(self, piece: Piece) -> None:
        """Write all of the piece, once, however often it is called again after an ``OSError``.

        ``ValueError``, ``TypeError``: a record cannot be written at all; nothing of the piece was.
        """

    def settle(self) -> float | None:
        """Make sure that what was written lasts, and finish what is due.

        Returns in how many seconds something will be due, or None.
        """

    def close(self) -> None:
        """Finish everything."""


class _GivenUpError(Exception):
    """Nobody waits any longer for what is left."""


class Writer:
    """Takes events and windows from one thread, and gives them to a sink in another."""

    def __init__(self, sink: Sink, pieces: Pieces, on_room: Callable[[], None]) -> None:
        """``on_room`` is called, by the thread, whenever something was written."""
        self._sink, self._pieces, self._on_room = sink, pieces, on_room
        #: Closed windows that are not being written yet: at most one, but for the last.
        self.windows: deque[Sums] = deque()
        self._events: deque[Waiting | WaitingMessages] = deque()
        #: The rest of the window that is being written.
        self._window: Iterator[Piece] = iter(())
        self._wake, self._hurry, self._give_up = threading.Event(), threading.Event(), threading.Event()
        self._stopping = self._failing = False
        #: Events that are written one by one, since together they could not be.
        self._singly = 0
        #: Rows of the window that is being written which no piece has yet.
        self._rows = 0
        #: A defect has ended the thread's work, and it has not begun again.
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        #: Written by the caller's thread only; what follows, by this one's.
        self._taken: dict[Sort, int] = {"events": 0, "usage": 0}
        self.written: dict[Sort, int] = {"events": 0, "usage": 0}
        self.dropped: dict[Sort, int] = {"events": 0, "usage": 0}
        #: Bytes that do not wait any longer.
        self.released = 0
        self.failures = 0

    @property
    def is_down(self) -> bool:
        """Whether nothing is written because of a defect. A full disk is none: records wait for room."""
        return self._is_down or (self._thread.ident is not None and not self._thread.is_alive())

    @property
    def is_failing(self) -> bool:
        """Whether what was tried last could not be written, and is tried again."""
        return self._failing

    def queued(self) -> tuple[int, int]:
        """Events, and rows of usage, that wait."""
        events, usage = (self._taken[sort] - self.written[sort] - self.dropped[sort] for sort in self._taken)
        return events, usage

    def start(self) -> None:
        """Start the thread; ``OSError`` where the sink cannot be."""
        self._sink.start()
        self._thread.start()

    def stop(self, patience: float) -> bool:
        """Write all, and end; whether that was done in so many seconds. What is left is dropped."""
        if self._thread.ident is None:
            return True
        self._stopping = True
        self._wake.set()
        self._hurry.set()
        self._thread.join(patience)
        if not self._thread.is_alive():
            return True
        self._give_up.set()
        # It ends with the piece in hand. Of that one nobody knows before whether it is lost.
        self._thread.join(_LAST_PIECE)
        log.warning(
            "audit: the writer has not finished; files that it has begun are the next start's to finish"
        )
        for sort, number in zip(self._taken, self.queued(), strict=True):
            self.dropped[sort] += number
            if number:
                log.error("audit: %d records of %s could not be written, and are lost", number, sort)
        return False

    def put(self, event: Waiting) -> None:
        """Take an event."""
        self._taken["events"] += 1
        self._events.append(event)
        if len(self._events) == 1:
            self._wake.set()
        elif len(self._events) >= _ENOUGH:
            self._hurry.set()

    def put_messages(self, waiting: WaitingMessages) -> None:
        """Take messages, an event each."""
        self._taken["events"] += len(waiting.messages)
        self._events.append(waiting)
        if len(self._events) == 1:
            self._wake.set()
        elif self.queued()[0] >= _ENOUGH:
            self._hurry.set()

    def put_window(self, sums: Sums) -> None:
        """Take a closed window."""
        self._taken["usage"] += len(sums.rows)
        self.windows.append(sums)
        self._hurry.set()
        self._wake.set()

    def _run(self) -> None:
        """Work until it is told to stop. A defect in here costs the records that show it, and a pause."""
        try:
            self._attempt(self._sink.recover)
            while not self._work():
                pass
        except _GivenUpError:
            pass

    def _work(self) -> bool:
        """Whether all is done. False: it must begin again."""
        due: float | None = None
        try:
            while True:
                self._wake.wait(due)
                self._wake.clear()
                if self._events and not self._stopping:
                    self._hurry.wait(_GATHER)
                self._hurry.clear()
                # Read before, since whoever stops has put in all there is.
                stopping = self._stopping
                self._write_all()
                if stopping:
                    self._attempt(self._sink.close)
                    return True
                due = self._attempt(self._sink.settle)
                self._is_down = False
        except _GivenUpError:
            raise
        except Exception:
            self.failures += 1
            if not self._is_down:
                log_failure(log, "audit: the writer has failed, and begins again")
            self._is_down = True
            self._wake.set()
            return self._give_up.wait(_RETRY)

    def _write_all(self) -> None:
        while (piece := self._next()) is not None:
            if self._give_up.is_set():
                # It was counted as lost.
                raise _GivenUpError
            began = time.perf_counter()
            try:
                self._write(piece)
            except _GivenUpError:
                raise
            except Exception:
                self._lose(piece.sort, piece.length, piece.byte_count)
                raise
            self._on_room()
            if not self._stopping:
                time.sleep(min(time.perf_counter() - began, _REST))

    def _next(self) -> Piece | None:
        # An event may hold somebody up, so it does not wait for a whole window.
        if events := self._first(Waiting):
            return self._piece_of(self._pieces.of_events, events)
        if messages := self._first(WaitingMessages):
            return self._piece_of(self._pieces.of_messages, messages)
        if not self._rows and self.windows:
            sums = self.windows.popleft()
            self._rows = len(sums.rows)
            self._window = self._pieces.of_usage(sums)
        try:
            piece = next(self._window, None)
        except Exception:
            self._lose("usage", self._rows, self._rows * ROW_BYTES)
            self._rows = 0
            self._window = iter(())
            raise
        self._rows = 0 if piece is None else self._rows - piece.length
        return piece

    def _first(self, sort: type[E]) -> list[E]:
        """What waits first, if it is of this sort, and more of it behind: as much as one piece holds."""
        some: list[E] = []
        count = byte_count = 0
        most = 1 if self._singly else MESSAGES if sort is WaitingMessages else SIZE
        while self._events and byte_count < PIECE_BYTES:
            waiting = self._events[0]
            if not isinstance(waiting, sort) or (some and count + waiting.count > most):
                break
            self._events.popleft()
            some.append(waiting)
            count += waiting.count
            byte_count += waiting.byte_count
        return some

    def _piece_of(self, make: Callable[[list[E]], Piece], some: list[E]) -> Piece:
        """A record of which no piece can be made is lost, alone."""
        count = sum(waiting.count for waiting in some)
        try:
            piece = make(some)
        except Exception:
            if count == 1:
                self._lose("events", 1, some[0].byte_count)
                self._singly = max(0, self._singly - 1)
            else:
                first = some[0]
                halves = isinstance(first, WaitingMessages) and len(some) == 1 and first.halves()
                self._events.extendleft(reversed(halves or some))
                self._singly = max(self._singly, count)
            raise
        self._singly = max(0, self._singly - count)
        return piece

    def _lose(self, sort: Sort, count: int, byte_count: int) -> None:
        self.dropped[sort] += count
        self.released += byte_count

    def _write(self, piece: Piece) -> None:
        try:
            self._attempt(lambda: self._sink.write(piece), but=_UNWRITABLE)
        except _UNWRITABLE:
            if piece.clean():
                self._write(piece)
                return
            if piece.length > 1:
                for half in piece.halves():
                    self._write(half)
                return
            log.exception("audit: a record cannot be written, and is lost")
            self.dropped[piece.sort] += 1
        else:
            self.written[piece.sort] += piece.length
        self.released += piece.byte_count

    def _attempt(self, act: Callable[[], T], *, but: tuple[type[Exception], ...] = ()) -> T:
        """Do it until it succeeds; ``but`` is the caller's to deal with."""
        while True:
            try:
                done = act()
            except but:
                raise
            except Exception as error:
                self.failures += 1
                if not self._failing:
                    log.error("audit records cannot be written, and wait: %s", error)
                self._failing = True
                if self._give_up.wait(_RETRY):
                    raise _GivenUpError from None
            else:
                if self._failing:
                    log.info("audit records are written again")
                self._failing = False
                return done
