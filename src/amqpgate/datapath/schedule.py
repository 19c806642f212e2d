"""Who has a turn and when, in the plain engine: the clock, the queues of the next step, waits for a time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from amqpgate.datapath.budgets import TURN, PumpCounters
from amqpgate.datapath.endpoint import PlainRelayEndpoint
from amqpgate.datapath.tables import ScanResult
from amqpgate.datapath.wheel import Wheel


class Schedule:
    """The turns of one pump. Its parts share it."""

    def __init__(self, clock: Callable[[], float] | None, on_failure: Callable[[Exception], None]) -> None:
        self.clock = clock or time.monotonic
        self._on_failure = on_failure
        #: An eventfd: readable when the next step has something to do, whatever epoll says.
        self.event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        #: To look at in the next step: first who has not had a turn, then who has.
        self.unserved: list[PlainRelayEndpoint] = []
        self.ready: list[PlainRelayEndpoint] = []
        #: Endpoints whose bucket is empty, by ``Lane.ready_at``.
        self.throttles: Wheel[PlainRelayEndpoint] = Wheel()
        #: When the step began; what the clock said last.
        self.now = self.latest = self.clock()
        #: When the present turn is over; 0: no upcall has begun it.
        self._turn_ends = 0.0
        #: The present turn is over.
        self.is_over = False
        self.counters = PumpCounters()

    def close(self) -> None:
        os.close(self.event)

    def wake(self) -> None:
        """Make the next step begin at once. Safe from other threads and signal handlers."""
        os.eventfd_write(self.event, 1)

    def look(self) -> float:
        """What the clock says; it is ``latest`` then."""
        self.latest = self.clock()
        return self.latest

    def begin(self) -> None:
        """What is done now is no part of a step."""
        self.now = self.clock()

    def begin_step(self) -> None:
        self.now = self.look()

    def take_queues(self) -> tuple[list[PlainRelayEndpoint], list[PlainRelayEndpoint]]:
        """Whom this step is to look at: who has not had a turn, and who has. The queues are empty then."""
        late, self.unserved = self.unserved, []
        ready, self.ready = self.ready, []
        return late, ready

    def put_back(self, late: list[PlainRelayEndpoint], ready: list[PlainRelayEndpoint]) -> None:
        """Who is left of them goes first the next time."""
        self.unserved[:0] = late
        self.ready[:0] = ready

    def note(self, error: Exception) -> None:
        """Count a failure and tell of it; where even that fails, for want of memory maybe, go on."""
        with contextlib.suppress(Exception):
            self.counters.failures += 1
            self._on_failure(error)

    def begin_turn(self) -> None:
        """Another endpoint's turn is next."""
        self._turn_ends, self.is_over = 0.0, False

    def begin_upcall(self, result: ScanResult) -> None:
        """An upcall is next: count it. The first one begins the turn's time."""
        self.counters.called[result] += 1
        self.begin_timed()

    def begin_timed(self) -> None:
        """What is next takes time as an upcall does."""
        if not self._turn_ends:
            self._turn_ends = self.look() + TURN

    def ends_turn(self, endpoint: PlainRelayEndpoint) -> bool:
        """After an upcall: whether others have their turn now. The endpoint goes on when it has its next."""
        if self.look() < self._turn_ends:
            return False
        endpoint.fresh = True
        self.end_turn(endpoint)
        return True

    def end_turn(self, endpoint: PlainRelayEndpoint) -> None:
        """Others have their turn now."""
        self.is_over = True
        self.go_on(endpoint)

    def go_on(self, endpoint: PlainRelayEndpoint) -> None:
        """It has had its turn, and has more to say."""
        self._queue(self.ready, endpoint)

    def serve(self, endpoint: PlainRelayEndpoint) -> None:
        """It has something to say that epoll does not know of."""
        self._queue(self.unserved, endpoint)

    def look_soon(self, endpoint: PlainRelayEndpoint) -> None:
        """What is kept for it may be relayed in the next step."""
        endpoint.fresh = True
        self.serve(endpoint)

    def wait(self, endpoint: PlainRelayEndpoint) -> None:
        """Look again at ``Lane.ready_at``."""
        endpoint.throttled = endpoint.fresh = True
        self.counters.throttled += 1
        self.throttles.set(endpoint, endpoint.lane.ready_at)

    def _queue(self, queue: list[PlainRelayEndpoint], endpoint: PlainRelayEndpoint) -> None:
        if not endpoint.queued:
            queue.append(endpoint)
            endpoint.queued = True
            self.wake()
