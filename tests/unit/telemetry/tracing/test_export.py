"""The way of spans to a collector that is there, away or silent: nobody waits, and all are counted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from amqpgate.config import HttpUrl, Tracing
from amqpgate.telemetry.families import CollectorRegistry
from amqpgate.telemetry.tracing.counters import TraceCounters
from amqpgate.telemetry.tracing.export import Export
from amqpgate.telemetry.tracing.semconv import Key, Names
from amqpgate.telemetry.tracing.spans import Sort, Spans
from amqpgate.yamldoc import FilePath, Seconds
from tests.support.inprocess import eventually
from tests.support.metrics import sample_value
from tests.support.otlp import Collector
from tests.support.ports import free_port


class Stand:
    """An exporter with its counters."""

    def __init__(
        self, endpoint: str, *, queue: int = 100, timeout: float = 30, headers: Path | None = None
    ) -> None:
        self.registry = CollectorRegistry()
        settings = Tracing(
            endpoint=HttpUrl.parse(endpoint),
            queue=queue,
            interval=Seconds(0.01),
            timeout=Seconds(timeout),
            headers_file=None if headers is None else FilePath(headers),
            service_name="gate",
        )
        self.export = Export(settings, "1.2.3", TraceCounters(self.registry))
        self.spans = Spans(self.export, Names())

    def make(self, count: int) -> float:
        """So many spans; how long that took at most, in seconds."""
        longest = 0.0
        for number in range(count):
            began = time.perf_counter()
            self.spans.start(Sort.SEND, "publish", "", {Key.DELIVERY_TAG: number}).end()
            longest = max(longest, time.perf_counter() - began)
        return longest

    def sent(self) -> int:
        return int(sample_value(self.registry, "amqpgate_trace_spans_total") or 0)

    def dropped(self, reason: str) -> int:
        labels = {"reason": reason}
        return int(sample_value(self.registry, "amqpgate_trace_spans_dropped_total", labels) or 0)


def test_spans_arrive_with_who_sends_them(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("# who we are\nAuthorization: Bearer secret\n\nx-tenant:  blue \n")
    with Collector() as collector:
        stand = Stand(collector.endpoint, headers=headers)
        stand.make(3)
        collector.wait_until(lambda: len(collector.spans) == 3)
        stand.export.close(10)
        assert (stand.sent(), stand.dropped("stopped")) == (3, 0)
    request = collector.requests[0]
    assert (request["authorization"], request["x-tenant"]) == ("Bearer secret", "blue")
    [resource] = collector.resources.values()
    assert (resource["service.name"], resource["service.version"]) == ("gate", "1.2.3")


def test_what_waits_at_the_end_is_sent() -> None:
    with Collector() as collector:
        stand = Stand(collector.endpoint)
        stand.make(50)
        stand.export.close(10)
        assert len(collector.spans) == stand.sent() == 50
        stand.make(2)
        assert stand.dropped("stopped") == 2
        stand.export.close(10)


def test_a_collector_that_refuses() -> None:
    with Collector("refuses") as collector:
        stand = Stand(collector.endpoint)
        stand.make(20)
        eventually(lambda: stand.dropped("refused") == 20)
        collector.manner = "takes"
        stand.make(5)
        collector.wait_until(lambda: stand.sent() == 5)
        stand.export.close(10)
    assert len(collector.spans) == 5


@pytest.mark.parametrize("is_there", [True, False], ids=["hangs", "away"])
def test_a_collector_that_does_not_answer_blocks_nobody(is_there: bool) -> None:
    with Collector("hangs") as collector:
        stand = Stand(
            collector.endpoint if is_there else f"http://127.0.0.1:{free_port()}/v1/traces", queue=10
        )
        stand.make(1)
        # The first is on its way, or tried again and again, and ten wait.
        if is_there:
            collector.wait_until(lambda: len(collector.requests) == 1)
        else:
            eventually(lambda: stand.export._queue._counting.begun == 1)
        assert stand.make(100) < 5
        assert stand.dropped("queue") == 90
        began = time.monotonic()
        stand.export.close(0.2)
        assert time.monotonic() - began < 5
        assert stand.sent() + sum(stand.dropped(why) for why in ("queue", "refused", "stopped")) == 101
