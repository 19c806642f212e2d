"""Virtual time: what the process takes for the clock, trio's clock, and timers that go off by it.

It stands still while nothing asks for it, goes on by a little with each look, and jumps when all is quiet.
"""

from __future__ import annotations

import heapq
import math
import os
import time
from collections.abc import Callable
from itertools import count

import trio

#: What ``time.time`` says at the beginning: 2030-01-01.
EPOCH = 1_893_456_000.0
#: trio's clock began at another time than the process'.
TRIO_OFFSET = 77_777.0
#: Seconds that pass with each look: code that waits for a moment within its turn comes to it.
TICK = 2e-7
#: Seconds that a jump takes at least: rounding never keeps the clock where it is.
LEAST = 1e-6


class Clock(trio.abc.Clock):
    """All time of one world, and what is to be done in it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []
        #: A timer has gone off since this was taken back.
        self.has_rung = False
        #: What the world does: when, in which order, what.
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def rang(self) -> bool:
        """Whether a timer has gone off since this was asked."""
        has_rung, self.has_rung = self.has_rung, False
        return has_rung

    # -- what the code asks --------------------------------------------------------------------

    def monotonic(self) -> float:
        self.now += TICK
        return self.now

    def time(self) -> float:
        return EPOCH + self.monotonic()

    def time_ns(self) -> int:
        return int(self.time() * 1e9)

    def start_clock(self) -> None:
        """trio begins."""

    def current_time(self) -> float:
        return self.monotonic() + TRIO_OFFSET

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()

    # -- what the world does ---------------------------------------------------------------------

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Do it then."""
        heapq.heappush(self._agenda, (when, next(self._order), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do it in so many seconds."""
        self.at(self.now + seconds, act)

    def fire(self) -> bool:
        """Do what is due; whether anything was."""
        fired = False
        for timer in self.timers:
            if timer.when <= self.now and timer.fire(self.now):
                fired = self.has_rung = True
        agenda = self._agenda
        while agenda and agenda[0][0] <= self.now:
            heapq.heappop(agenda)[2]()
            fired = True
        return fired

    def jump(self, due: float = math.inf) -> bool:
        """To what comes next, ``due`` at the latest; False: nothing ever does."""
        for timer in self.timers:
            if timer.when < due:
                due = timer.when
        if self._agenda and self._agenda[0][0] < due:
            due = self._agenda[0][0]
        if due == math.inf:
            return False
        self.now = max(due, self.now + LEAST)
        return True


class Timer:
    """As ``datapath.timer.Timer``, by the clock of the world that is being played."""

    #: Set by whoever plays a world.
    clock: Clock

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.when = self._asked = math.inf
        self.is_set_off = False
        self.clock.timers.append(self)

    def fileno(self) -> int:
        return self._fd

    def set(self, when: float) -> None:
        if when == self._asked:
            return
        self._lower()
        self.when = self._asked = when

    def drain(self) -> None:
        self._asked = math.nan
        self._lower()

    def fire(self, now: float) -> bool:
        """Whether it goes off now."""
        if self.is_set_off or self.when > now:
            return False
        self.is_set_off, self.when = True, math.inf
        os.eventfd_write(self._fd, 1)
        return True

    def _lower(self) -> None:
        if self.is_set_off:
            os.eventfd_read(self._fd)
            self.is_set_off = False

    def close(self) -> None:
        self.clock.timers.remove(self)
        os.close(self._fd)


def install(clock: Clock) -> None:
    """From now on the process has this time. Before anything of amqpgate is imported."""
    Timer.clock = clock
    time.monotonic = time.perf_counter = lambda: Timer.clock.monotonic()
    time.time = lambda: Timer.clock.time()
    time.time_ns = lambda: Timer.clock.time_ns()
