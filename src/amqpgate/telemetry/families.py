"""Metrics as Prometheus knows them: families of samples, and a registry of who has some.

The gateway keeps and writes its metrics itself. The client library for Prometheus brings a server, a client
for push gateways and what they need of Python's: memory that every sidecar would hold for nothing. Its names
are kept here, and so is what it writes (`tests/unit/telemetry/test_exposition.py` compares both).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]


class Sample(NamedTuple):
    """One value of a series."""

    name: str
    labels: Mapping[str, str]
    value: float


class Metric:
    """A family: its samples, of one type. The name of a counter is without its ``_total``."""

    def __init__(self, name: str, documentation: str, kind: Kind) -> None:
        self.name, self.documentation, self.type = name, documentation, kind
        self.samples: list[Sample] = []

    def add_sample(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """One more."""
        self.samples.append(Sample(name, labels, value))


class _Family(Metric):
    """One of counters or gauges, filled in by whoever collects."""

    def __init__(
        self,
        name: str,
        documentation: str,
        kind: Kind,
        suffix: str,
        value: float | None,
        labels: Sequence[str],
    ) -> None:
        super().__init__(name, documentation, kind)
        self.label_names, self._sample = labels, name + suffix
        if value is not None:
            self.add_sample(self._sample, {}, value)

    def add_metric(self, values: Sequence[str], value: float) -> None:
        """One more, with these values of the labels."""
        self.add_sample(self._sample, dict(zip(self.label_names, values, strict=True)), value)


class CounterMetricFamily(_Family):
    """Of counters."""

    def __init__(
        self, name: str, documentation: str, value: float | None = None, labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, documentation, "counter", "_total", value, labels)


class GaugeMetricFamily(_Family):
    """Of gauges."""

    def __init__(
        self, name: str, documentation: str, value: float | None = None, labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, documentation, "gauge", "", value, labels)


class Collector(Protocol):
    """Who has metrics."""

    def collect(self) -> Iterable[Metric]:
        """What they are now."""


class CollectorRegistry:
    """Of everybody who has metrics, in the order in which they were registered."""

    def __init__(self) -> None:
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """One more."""
        self.collectors.append(collector)

    def collect(self) -> Iterator[Metric]:
        """The metrics of all."""
        for collector in self.collectors:
            yield from collector.collect()
