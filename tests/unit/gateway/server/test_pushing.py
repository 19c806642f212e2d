"""A look at the metrics after each interval, and one at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import trio
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.metrics_core import Metric
from trio.testing import MockClock

from amqpgate.config import parse
from amqpgate.gateway.server.pushing import MetricsPush
from amqpgate.gateway.server.scraping import Scraper
from amqpgate.telemetry.otlp.counts import COUNTS
from tests.support.otlp import Collector

REST = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n"


class OneCounter(Scraper):
    """Counts how often it was looked at."""

    def __init__(self) -> None:
        self.looks = Counter("looks", "Text.", registry=CollectorRegistry())

    async def families(self) -> Sequence[Metric]:
        self.looks.inc()
        return list(self.looks.collect())


def push_to(collector: Collector) -> MetricsPush:
    otlp = parse(f"{REST}otlp: {{metrics: '{collector.of('metrics')}', interval: 60s}}\n", {}).otlp
    assert otlp is not None
    assert otlp.metrics is not None
    return MetricsPush.of(otlp, otlp.metrics, "1.0", OneCounter())


def looks(collector: Collector) -> list[float]:
    return [
        metric.sum.data_points[0].as_double
        for of in collector.metrics
        for metric in of.scope_metrics[0].metrics
    ]


async def test_each_interval_and_at_the_end(mock_clock: MockClock) -> None:
    with Collector() as collector:
        push = push_to(collector)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(push.run)
            for number in (1, 2):
                # It may still wait for the thread of the look before.
                while trio.lowlevel.current_statistics().seconds_to_next_deadline == math.inf:
                    await trio.lowlevel.checkpoint()
                mock_clock.jump(60)
                # A thread sends it.
                while len(looks(collector)) < number:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert looks(collector) == [1, 2, 3]
        starts = {
            of.scope_metrics[0].metrics[0].sum.data_points[0].start_time_unix_nano for of in collector.metrics
        }
        assert len(starts) == 1


async def test_a_collector_that_rejects_or_asks_to_wait(caplog: pytest.LogCaptureFixture) -> None:
    before = COUNTS.now()
    answer = ExportMetricsServiceResponse(
        partial_success=ExportMetricsPartialSuccess(rejected_data_points=7)
    ).SerializeToString()
    with Collector() as collector:
        push = push_to(collector)
        collector.answers += [
            (200, {}, answer),
            (429, {"Retry-After": "30"}, b""),
            (503, {"Retry-After": "9999"}, b""),
        ]
        assert [await push._push() for _ in range(4)] == [0, 30, 60, 0]
    assert "it says that it rejects 7 data points" in caplog.text
    now = COUNTS.now()
    assert {key: now[key] - before[key] for key in now if now[key] != before[key]} == {
        ("metrics", "sent"): 1,
        ("metrics", "refused"): 3,
    }


async def test_who_does_not_answer_holds_up_the_next_look_and_not_the_end() -> None:
    with Collector("hangs") as collector:
        push = push_to(collector)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(push.run)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - began < float(push.poster.settings.timeout)
        assert looks(collector) == []
