"""Whether a gateway accepts connections, and who hears of it."""

from __future__ import annotations

import trio

from amqpgate.gateway.server.readiness import Readiness
from amqpgate.telemetry.families import CollectorRegistry
from amqpgate.telemetry.instruments import GaugeMetric
from tests.support.metrics import sample_value


async def test_a_change_is_told_and_nothing_else_is(autojump_clock: trio.testing.MockClock) -> None:
    registry = CollectorRegistry()
    readiness = Readiness(GaugeMetric("ready", "ready", registry=registry))
    first = readiness.changed
    readiness.become(False)
    assert (readiness.ready, readiness.started, first.is_set()) == (False, False, False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.wait)
        await trio.testing.wait_all_tasks_blocked()
        readiness.become(True)
    assert (readiness.ready, readiness.started) == (True, True)
    assert sample_value(registry, "ready") == 1
    second = readiness.changed
    assert second is not first
    readiness.become(False)
    # It was ready once: that does not end.
    assert (readiness.ready, readiness.started, second.is_set()) == (False, True, True)
    assert sample_value(registry, "ready") == 0
