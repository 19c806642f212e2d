"""What counts: counters, gauges and histograms, with labels or without.

Each registers itself. Those with labels have a child for each combination of values that was asked for by
``labels``, and count nothing themselves. All may be used by several threads.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import ClassVar, Generic, TypeVar

from amqpgate.telemetry.families import CollectorRegistry, Kind, Metric

C = TypeVar("C")


class _Instrument(Generic[C]):
    """One family, and its children of type C."""

    KIND: ClassVar[Kind]

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        self._name, self._documentation, self.label_names = name, documentation, tuple(labels)
        self._lock = threading.Lock()
        self._children: dict[tuple[str, ...], C] = {}
        if not labels:
            self.labels()
        registry.register(self)

    def _make(self, lock: threading.Lock) -> C:
        raise NotImplementedError

    def _add(self, metric: Metric, labels: dict[str, str], child: C) -> None:
        raise NotImplementedError

    def labels(self, *values: str) -> C:
        """The child of these values of the labels. Raises ``ValueError`` for too few or too many."""
        child = self._children.get(values)
        if child is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self._name} has the labels {self.label_names}")
            with self._lock:
                child = self._children.setdefault(values, self._make(self._lock))
        return child

    def remove(self, *values: str) -> None:
        """Forget a child. Raises ``KeyError``."""
        with self._lock:
            del self._children[values]

    def clear(self) -> None:
        """Forget all children."""
        with self._lock:
            self._children.clear()

    def collect(self) -> Iterator[Metric]:
        metric = Metric(self._name, self._documentation, self.KIND)
        with self._lock:
            children = list(self._children.items())
        for values, child in children:
            self._add(metric, dict(zip(self.label_names, values, strict=True)), child)
        yield metric


class MetricValue:
    """A number."""

    __slots__ = ("_function", "_lock", "_value")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._value = lock, 0.0
        self._function: Callable[[], float] | None = None

    def inc(self, amount: float = 1) -> None:
        """So much more."""
        with self._lock:
            self._value += amount

    def set(self, value: float) -> None:
        """It is this."""
        with self._lock:
            self._value = float(value)

    def set_function(self, function: Callable[[], float]) -> None:
        """It is what this gives at the scrape."""
        self._function = function

    def get(self) -> float:
        """What it is."""
        return self._value if self._function is None else float(self._function())


class _Observed:
    """The counts of a histogram."""

    __slots__ = ("_bounds", "_lock", "counts", "sum")

    def __init__(self, lock: threading.Lock, bounds: Sequence[float]) -> None:
        self._lock, self._bounds = lock, bounds
        #: Of each bucket alone.
        self.counts = [0] * len(bounds)
        self.sum = 0.0

    def observe(self, amount: float) -> None:
        """Count it where it belongs: in the first bucket whose bound it does not exceed."""
        with self._lock:
            self.counts[bisect_left(self._bounds, amount)] += 1
            self.sum += amount


class _Single(_Instrument[MetricValue]):
    def _make(self, lock: threading.Lock) -> MetricValue:
        return MetricValue(lock)

    def inc(self, amount: float = 1) -> None:
        """So much more, of one without labels."""
        self._children[()].inc(amount)


class CounterMetric(_Single):
    """What only grows. Its name may be given with or without ``_total``."""

    KIND = "counter"

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        super().__init__(name.removesuffix("_total"), documentation, labels, registry=registry)

    def _add(self, metric: Metric, labels: dict[str, str], child: MetricValue) -> None:
        metric.add_sample(f"{self._name}_total", labels, child.get())


class GaugeMetric(_Single):
    """What goes up and down."""

    KIND = "gauge"

    def _add(self, metric: Metric, labels: dict[str, str], child: MetricValue) -> None:
        metric.add_sample(self._name, labels, child.get())

    def set(self, value: float) -> None:
        """It is this, without labels."""
        self._children[()].set(value)

    def set_function(self, function: Callable[[], float]) -> None:
        """It is what this gives at the scrape, without labels."""
        self._children[()].set_function(function)


class HistogramMetric(_Instrument[_Observed]):
    """How many were at most so large, for each of the ``buckets``' bounds."""

    KIND = "histogram"

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._bounds = (*map(float, buckets), inf)
        super().__init__(name, documentation, labels, registry=registry)

    def _make(self, lock: threading.Lock) -> _Observed:
        return _Observed(lock, self._bounds)

    def _add(self, metric: Metric, labels: dict[str, str], child: _Observed) -> None:
        total = 0
        for bound, count in zip(self._bounds, child.counts, strict=True):
            total += count
            le = "+Inf" if bound == inf else repr(bound)
            metric.add_sample(f"{self._name}_bucket", {**labels, "le": le}, total)
        metric.add_sample(f"{self._name}_count", labels, total)
        metric.add_sample(f"{self._name}_sum", labels, child.sum)

    def observe(self, amount: float) -> None:
        """Count one, without labels."""
        self._children[()].observe(amount)
