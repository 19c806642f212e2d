"""How late the event loop is: what waits for its turn waits at least as long."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from amqpgate.telemetry.faults import contained

#: Seconds between looks. A loop that stands still for longer is always seen; for half that, every other time.
INTERVAL: Final = 0.25
#: Seconds for which the worst is remembered: longer than scrapes are apart.
WINDOW: Final = 60.0


class LagMetrics:
    """Registered beside the gateway's other metrics. ``clock`` gives seconds."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: When, and how late: each less than the one before it.
        self._worst: deque[tuple[float, float]] = deque()
        self._lag = Histogram(
            "amqpgate_loop_lag_seconds",
            "How late the event loop got to a timer, as seen by one look in a quarter of a second.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
            registry=registry,
        )
        longest = Gauge(
            "amqpgate_loop_lag_max_seconds",
            "How late it was at most in the last minute; of several workers, the latest.",
            registry=registry,
        )
        longest.set_function(self._longest)

    @contained("metrics", None)
    def late(self, seconds: float) -> None:
        """What was due was run so much later."""
        seconds = max(0.0, seconds)
        self._lag.observe(seconds)
        while self._worst and self._worst[-1][1] <= seconds:
            self._worst.pop()
        self._worst.append((self._clock(), seconds))
        self._forget()

    def _forget(self) -> None:
        since = self._clock() - WINDOW
        while self._worst and self._worst[0][0] < since:
            self._worst.popleft()

    def longest(self, since: float) -> float:
        """How late it was at most since then, which is no longer ago than a minute; on the clock of this."""
        return next((seconds for at, seconds in self._worst if at >= since), 0.0)

    def _longest(self) -> float:
        return self.longest(self._clock() - WINDOW)
