"""The reserve of memory in numbers: what is there for small pieces when there is no other memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ReserveMetrics(Collector):
    """Registered beside the gateway's other metrics.

    ``numbers`` gives bytes in use, the most there ever were, pieces given out, and requests that
    found it full.
    """

    def __init__(self, registry: CollectorRegistry, numbers: Callable[[], tuple[int, int, int, int]]) -> None:
        self._numbers = numbers
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        used, most, given, lacked = self._numbers()
        yield GaugeMetricFamily(
            "amqpgate_memory_reserve_used_bytes", "Bytes of the memory reserve that are in use.", used
        )
        yield GaugeMetricFamily(
            "amqpgate_memory_reserve_used_max_bytes",
            "The most of it that was ever in use; of several workers, added up.",
            most,
        )
        yield CounterMetricFamily(
            "amqpgate_memory_reserve_pieces",
            "Requests that it served since there was no other memory.",
            given,
        )
        yield CounterMetricFamily(
            "amqpgate_memory_reserve_exhausted", "Requests that found the memory reserve full.", lacked
        )
