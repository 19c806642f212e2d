"""What each login counts, as plain numbers that a scrape reads.

prometheus_client takes a lock and a dozen calls for each increment, so that threads may count together. These
are counted by the gateway's thread alone: another one that reads them meanwhile sees them a moment earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector


class Tallies(Collector):
    """A counter; ``counts`` by its labels, which are the caller's to increment."""

    def __init__(self, registry: CollectorRegistry, name: str, told: str, labels: Sequence[str]) -> None:
        self._name, self._told, self._labels = name, told, labels
        self.counts: dict[tuple[str, ...], int] = defaultdict(int)
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """For the registry, which refuses a second metric of that name."""
        return (CounterMetricFamily(self._name, self._told, labels=self._labels),)

    def collect(self) -> Iterator[Metric]:
        """All that has been counted."""
        family = CounterMetricFamily(self._name, self._told, labels=self._labels)
        for labels, count in list(self.counts.items()):
            family.add_metric(labels, count)
        yield family
