"""Faults of what only looks on. They are counted, and end no session.

That is audit, metrics, traces, taps, mirrors, and what operators see of decisions, bindings and sessions.

What they raise is logged once for each place, and counted always. The edge of what sessions call is
`gateway.session.observer`; all other edges are held by `contained`.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec, TypeVar

import attrs
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from amqpgate.logs import log_failure
from amqpgate.values import define

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

log = logging.getLogger(__name__)

#: Those that are there from the start, with 0 faults.
PARTS: Final = ("audit", "decisions", "metrics", "mirrors", "taps", "traces")


@define
class Faults:
    """Of one process, by part."""

    counts: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(PARTS, 0))
    #: Places that have been logged.
    _told: set[str] = attrs.field(factory=set)

    def caught(self, part: str, where: str) -> None:
        """Count the exception that is being handled; it is logged for the first time at each place."""
        self.counts[part] = self.counts.get(part, 0) + 1
        if where not in self._told:
            self._told.add(where)
            log_failure(log, "%s failed in %s; its further faults there are only counted", part, where)


FAULTS: Final = Faults()


def contained(part: str, otherwise: U) -> Callable[[Callable[P, T]], Callable[P, T | U]]:
    """A function that gives ``otherwise`` where it would raise."""

    def decorated(function: Callable[P, T]) -> Callable[P, T | U]:
        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T | U:
            try:
                return function(*args, **kwargs)
            except Exception:
                FAULTS.caught(part, function.__qualname__)
                return otherwise

        return called

    return decorated


class FaultMetrics(Collector):
    """How many there were."""

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "amqpgate_internal_errors",
            "Exceptions in parts that only look on; they ended nothing else.",
            labels=["part"],
        )
        for part, count in FAULTS.counts.items():
            family.add_metric([part], count)
        yield family


class Registry(CollectorRegistry):
    """Of metrics, each of which can fail on its own."""

    def collect(self) -> Iterator[Metric]:
        for collector in list(self._collector_to_names):
            try:
                # All of them or none: half a family would be half its series.
                metrics = list(collector.collect())
            except Exception:
                FAULTS.caught("metrics", type(collector).__name__)
            else:
                yield from metrics
