"""Log lines arrive whole and without secrets, and nobody waits for who takes them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceResponse,
)

from amqpgate.config import Otlp, parse
from amqpgate.logs import about
from amqpgate.telemetry.otlp.counts import COUNTS
from amqpgate.telemetry.otlp.logs import LogShipper
from tests.support.inprocess import eventually
from tests.support.otlp import Collector

REST = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n"


def settings(collector: Collector, more: str = "") -> Otlp:
    found = parse(f"{REST}otlp: {{logs: '{collector.of('logs')}'{more}}}\n", {}).otlp
    assert found is not None
    return found


@contextmanager
def shipping(otlp: Otlp) -> Iterator[LogShipper]:
    assert otlp.logs is not None
    shipper = LogShipper.of(otlp, otlp.logs, "1.0")
    try:
        yield shipper
    finally:
        shipper.close(0)


def line(text: str, *args: object, level: int = logging.INFO, extra: object = None) -> logging.LogRecord:
    record = logging.LogRecord("amqpgate.test", level, "file", 1, text, args, None)
    for name, value in (extra or {}).items():  # type: ignore[attr-defined]
        setattr(record, name, value)
    return record


def outcomes() -> dict[str, int]:
    return {outcome: count for (signal, outcome), count in COUNTS.now().items() if signal == "logs"}


def since(before: dict[str, int]) -> dict[str, int]:
    return {name: count - before[name] for name, count in outcomes().items() if count != before[name]}


def test_a_line_has_its_fields_and_no_password(tmp_path: Path) -> None:
    (tmp_path / "headers").write_text("authorization: Bearer secret\n")
    before = outcomes()
    with Collector() as collector, shipping(settings(collector)) as shipper:
        bearing = attrs.evolve(shipper.poster.settings, headers_file=tmp_path / "headers")
        with shipping(bearing) as other:
            fields = about(session="s1", reply_code=403, trace_id="ab" * 16, span_id="cd" * 8, queue=None)
            other.take(line("to %s \ud800", "amqp://u:hunter2@h/", level=logging.WARNING, extra=fields))
            eventually(lambda: bool(collector.lines()))
            eventually(lambda: since(before) == {"sent": 1})
        ((text, said, record),) = collector.lines()
        assert text == "to amqp://u:***@h/ \\ud800"
        assert (record.severity_number, record.severity_text) == (13, "WARNING")
        assert said == {"amqpgate.session": "s1", "amqpgate.reply_code": 403, "logger.name": "amqpgate.test"}
        assert (record.trace_id.hex(), record.span_id.hex()) == ("ab" * 16, "cd" * 8)
        assert collector.requests[0]["authorization"] == "Bearer secret"
        assert "hunter2" not in str(collector.logs)


def test_who_hangs_delays_nobody_and_what_does_not_fit_is_counted() -> None:
    before = outcomes()
    with Collector("hangs") as collector, shipping(settings(collector, ", queue: 10")) as shipper:
        for _ in range(5):
            shipper.take(line("one"))
        eventually(lambda: bool(collector.requests))
        began = time.monotonic()
        for _ in range(100):
            shipper.take(line("one"))
        shipper.close(0)
        assert time.monotonic() - began < collector_patience(shipper)
        assert since(before) == {"queue": 95, "stopped": 10}
        shipper.take(line("late"))
        assert since(before) == {"queue": 95, "stopped": 11}
    # Its thread counts what nobody takes any more: not in the next test.
    eventually(lambda: not any(thread.name == "otlp logs" for thread in threading.enumerate()))


def collector_patience(shipper: LogShipper) -> float:
    """Seconds for which it would wait for an answer."""
    return float(shipper.poster.settings.timeout)


def test_what_is_refused_twice_is_counted() -> None:
    before = outcomes()
    with Collector("refuses") as collector, shipping(settings(collector)) as shipper:
        shipper.take(line("one"))
        eventually(lambda: since(before).get("refused") == 1)
        assert len(collector.requests) == 2


def test_what_a_collector_rejects_is_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    before = outcomes()
    answer = ExportLogsServiceResponse(partial_success=ExportLogsPartialSuccess(rejected_log_records=2))
    with Collector() as collector, shipping(settings(collector)) as shipper:
        collector.answers.append((200, {}, answer.SerializeToString()))
        for _ in range(5):
            shipper.take(line("one"))
        eventually(lambda: since(before) == {"sent": 3, "refused": 2})
    assert "log lines are not taken by" in caplog.text
    assert "it says that it rejects them" in caplog.text


def test_what_is_too_large_is_halved() -> None:
    before = outcomes()
    with Collector() as collector, shipping(settings(collector)) as shipper:
        collector.most = 2000
        for number in range(100):
            shipper.take(line("line %d", number))
        shipper.take(line("x" * 3000))
        shipper.close(20)
        assert since(before) == {"sent": 100, "refused": 1}
        assert [text for text, _, _ in collector.lines()] == [f"line {number}" for number in range(100)]


def test_a_collector_is_left_alone_for_as_long_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    before, asked = outcomes(), list[float | None]()
    wait = threading.Event.wait

    def waited(self: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "otlp logs" and timeout is not None:
            asked.append(timeout)
            return False
        return wait(self, timeout)

    monkeypatch.setattr(threading.Event, "wait", waited)
    with Collector() as collector, shipping(settings(collector)) as shipper:
        collector.answers += [(429, {"Retry-After": "30"}, b"")]
        shipper.take(line("one"))
        eventually(lambda: since(before) == {"sent": 1})
        collector.answers += [(503, {"Retry-After": "9999"}, b""), (503, {}, b"")]
        shipper.take(line("two"))
        eventually(lambda: since(before) == {"sent": 1, "refused": 1})
    assert asked == [30, 60]


def test_what_waits_at_the_end_is_sent() -> None:
    before = outcomes()
    with Collector() as collector, shipping(settings(collector)) as shipper:
        for number in range(1000):
            shipper.take(line("line %d", number))
        shipper.close(20)
        assert since(before) == {"sent": 1000}
        assert [text for text, _, _ in collector.lines()] == [f"line {number}" for number in range(1000)]
