"""What became of metrics and log lines that were to be sent by OTLP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Final, Literal, TypeAlias

import attrs
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from amqpgate.values import define

#: What is sent: log lines one by one, or all metrics at once. ``queue``: too many waited. ``refused``: the
#: collector was not there, or did not take all of it. ``stopped``: the process ended first.
Outcome: TypeAlias = Literal["sent", "queue", "refused", "stopped"]
_OUTCOMES: Final[tuple[Outcome, ...]] = ("sent", "queue", "refused", "stopped")
Signal: TypeAlias = Literal["metrics", "logs"]
_KINDS: Final[tuple[tuple[Signal, Outcome], ...]] = (
    ("metrics", "sent"),
    ("metrics", "refused"),
    *(("logs", outcome) for outcome in _OUTCOMES),
)


@define(eq=False)
class OtlpCounts:
    """Of one process. Threads count."""

    _counts: dict[tuple[Signal, Outcome], int] = attrs.field(factory=lambda: dict.fromkeys(_KINDS, 0))
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def add(self, signal: Signal, outcome: Outcome, count: int = 1) -> None:
        """So many more."""
        with self._lock:
            self._counts[signal, outcome] += count

    def now(self) -> dict[tuple[Signal, Outcome], int]:
        """By signal and outcome."""
        with self._lock:
            return dict(self._counts)


#: The log is the process's, and so are these.
COUNTS: Final = OtlpCounts()


class OtlpMetrics(Collector):
    """Part of a gateway's metrics."""

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand."""
        return ()

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "amqpgate_otlp_exports",
            "Looks at the metrics, and log lines, that were to be sent by OTLP, by what became of them.",
            labels=["signal", "outcome"],
        )
        for key, count in COUNTS.now().items():
            family.add_metric(key, count)
        yield family
