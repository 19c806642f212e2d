"""The reserve of memory is seen in the metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from amqpgate.telemetry.memory_reserve import ReserveMetrics


def test_it_is_read_when_it_is_asked_for() -> None:
    registry = CollectorRegistry()
    numbers = (0, 0, 0, 0)
    ReserveMetrics(registry, lambda: numbers)
    assert registry.get_sample_value("amqpgate_memory_reserve_used_bytes") == 0
    numbers = (1, 2, 3, 4)
    names = ("used_bytes", "used_max_bytes", "pieces_total", "exhausted_total")
    assert [registry.get_sample_value(f"amqpgate_memory_reserve_{name}") for name in names] == [1, 2, 3, 4]
