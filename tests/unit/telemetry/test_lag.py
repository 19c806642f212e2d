"""How late the event loop is."""

from __future__ import annotations

from amqpgate.telemetry.families import CollectorRegistry
from amqpgate.telemetry.lag import WINDOW, LagMetrics
from tests.support.metrics import sample_value


class Rig:
    def __init__(self) -> None:
        self.now = 1000.0
        self.registry = CollectorRegistry()
        self.metrics = LagMetrics(self.registry, lambda: self.now)

    def value(self, name: str, **labels: str) -> float | None:
        return sample_value(self.registry, name, labels)

    @property
    def worst(self) -> float | None:
        return self.value("amqpgate_loop_lag_max_seconds")


def test_the_longest_of_the_last_minute() -> None:
    rig = Rig()
    assert rig.worst == 0
    for late in (0.1, 0.7, 0.2, 0.4):
        rig.metrics.late(late)
        rig.now += 1
    assert rig.worst == 0.7
    rig.now = 1001 + WINDOW
    assert rig.worst == 0.7
    rig.now += 0.5
    assert rig.worst == 0.4, "what came later, and was less"
    rig.now += 2
    assert rig.worst == 0


def test_a_clock_that_is_early_is_not_late() -> None:
    rig = Rig()
    rig.metrics.late(-0.001)
    assert rig.worst == 0
    assert rig.value("amqpgate_loop_lag_seconds_sum") == 0


def test_looks_are_counted_by_how_late_they_are() -> None:
    rig = Rig()
    for late in (0.002, 0.003, 0.3):
        rig.metrics.late(late)
    assert rig.value("amqpgate_loop_lag_seconds_bucket", le="0.0025") == 1
    assert rig.value("amqpgate_loop_lag_seconds_bucket", le="0.25") == 2
    assert rig.value("amqpgate_loop_lag_seconds_count") == 3
