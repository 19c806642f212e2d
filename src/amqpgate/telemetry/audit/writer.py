"""The thread that writes. What it cannot write waits, and is tried again."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from amqpgate.records import Sort
from amqpgate.telemetry.audit.pieces import Piece, Pieces, Waiting
from amqpgate.telemetry.audit.rows import Sums

log = logging.getLogger(__name__)

#: How long the first event waits for others to be written with it, in seconds.
_GATHER = 0.5
#: It does not wait longer once there are so many.
_ENOUGH = 1000
#: Seconds between attempts to write.
_RETRY = 1.0
#: After so many seconds of work the interpreter is left to others for as long: the relay shares it.
_STINT = 0.001


class Sink(Protocol):
    """Where pieces go. Methods are called by one thread; each may raise ``OSError``, and is called again then."""

    def start(self) -> None:
        """Take what there is to be taken; called by whoever starts the log."""

    def recover(self) -> None:
        """Finish what earlier processes have left."""

    def write(self, piece: Piece) -> None:
        """Write all of the piece, once, however often it is called again after an error."""

    def settle(self) -> float | None:
        """Make sure that what was written lasts, and finish what is due.

        Returns in how many seconds something will be due, or None.
        """

    def close(self) -> None:
        """Finish everything."""


class Writer:
    """Takes events and windows from one thread, and gives them to a sink in another."""

    def __init__(self, sink: Sink, gateway: str, on_room: Callable[[], None]) -> None:
        self._sink, self._on_room = sink, on_room
        #: Closed windows that are not being written yet: at most one, but for the last.
        self.windows: deque[Sums] = deque()
        self._events: deque[Waiting] = deque()
        self._pieces = Pieces(gateway, secrets.token_hex(6))
        self._wake, self._hurry, self._give_up = threading.Event(), threading.Event(), threading.Event()
        self._stopping = False
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        #: What was taken over; written by the caller's thread only, all below by this one's.
        self._taken: dict[Sort, int] = {"events": 0, "usage": 0}
        self.written: dict[Sort, int] = {"events": 0, "usage": 0}
        self.dropped: dict[Sort, int] = {"events": 0, "usage": 0}
        #: Octets that do not wait any longer.
        self.released = 0
        self.failures = 0

    def queued(self, late: int) -> tuple[int, int]:
        """Events and rows of usage that wait; ``late`` more rows do not wait here yet."""
        events, usage = (
            self._taken[sort] - self.written[sort] - self.dropped[sort] for sort in self._taken
        )
        return events, usage + late

    def start(self) -> None:
        """Start the thread; ``OSError`` where the sink cannot be."""
        self._sink.start()
        self._thread.start()

    def stop(self, patience: float) -> bool:
        """Write all, and end; whether that was done in so many seconds. What is left is dropped."""
        if not self._thread.ident:
            return True
        self._stopping = True
        self._wake.set()
        self._hurry.set()
        self._thread.join(patience)
        if not self._thread.is_alive():
            return True
        self._give_up.set()
        self._thread.join(0.2)
        for sort, number in zip(self._taken, self.queued(0), strict=True):
            self.dropped[sort] += number
            if number:
                log.error("audit: %d %s could not be written and are lost", number, sort)
        return False

    def put(self, event: Waiting) -> None:
        """Take an event."""
        self._taken["events"] += 1
        self._events.append(event)
        if len(self._events) == 1:
            self._wake.set()
        elif len(self._events) >= _ENOUGH:
            self._hurry.set()

    def put_window(self, sums: Sums) -> None:
        """Take a closed window."""
        self._taken["usage"] += len(sums.rows)
        self.windows.append(sums)
        self._wake.set()
        self._hurry.set()
