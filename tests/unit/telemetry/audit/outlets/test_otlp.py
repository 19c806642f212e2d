"""Log records that a collector decodes: their bodies are events of OCSF."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from amqpgate.config import HttpUrl
from amqpgate.config.audit_sinks import AuditOtlp
from amqpgate.telemetry.audit.outlets.otlp import OtlpReceiver
from amqpgate.telemetry.audit.outlets.receiver import Ready
from amqpgate.telemetry.otlp.post import Poster
from tests.support.otlp import Collector
from tests.unit.telemetry.audit.records import NOW, ORIGIN, until

from .shipping import check, in_no_time, log_of, record_some


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    in_no_time(monkeypatch)


def plain(value: AnyValue) -> Any:
    """What it says."""
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)


def test_bodies_are_events_of_ocsf() -> None:
    with Collector() as collector:
        settings = AuditOtlp(url=HttpUrl.parse(collector.of("logs")), service_name="gate")
        with log_of(otlp=settings) as log:
            record_some(log, 300)
            log.event(
                ORIGIN,
                "session.open",
                NOW,
                reason="\udcff",
                detail='{"big": 99999999999999999999, "x": [1, null]}',
            )
        lines = [line for of in collector.logs for scope in of.scope_logs for line in scope.log_records]
        events = [check(plain(line.body)) for line in lines]
        assert len(events) == 302 == log.counts().outlets["otlp"].outcomes["written"]
        assert len({event["metadata"]["uid"] for event in events}) == 302
        for line, event in zip(lines, events, strict=True):
            said = {one.key: plain(one.value) for one in line.attributes}
            assert said == {"log.record.uid": event["metadata"]["uid"], "ocsf.class_uid": event["class_uid"]}
            assert line.time_unix_nano == event["time"] * 1_000_000
            assert line.severity_text == ("WARN" if event["status"] == "Failure" else "INFO")
            assert line.event_name == f"amqpgate.audit.{event['metadata']['event_code']}"
        (opened,) = [one for one in events if one["metadata"]["event_code"] == "session.open"]
        assert opened["message"] == "\\xff"
        assert opened["unmapped"]["detail"]["x"] == [1, None]
        (of, *_) = collector.logs
        assert {one.key: plain(one.value) for one in of.resource.attributes}["service.name"] == "gate"
        assert of.scope_logs[0].scope.name == "amqpgate.audit"


@pytest.mark.parametrize("inner", ['{"a":%s}', "[%s]"])
def test_what_is_nested_deeper_than_decoders_read_is_text(inner: str) -> None:
    """A client may declare a queue with 63 tables in each other; Python, C++ and Java read 100 messages."""
    said = '"leaf \\u00e9"'
    for _ in range(63):
        said = inner % said
    with Collector() as collector:
        with log_of(otlp=AuditOtlp(url=HttpUrl.parse(collector.of("logs")))) as log:
            record_some(log, 3)
            log.event(ORIGIN, "topology", NOW, operation="queue.declare", arguments=f'{{"x":{said}}}')
            record_some(log, 3)
        outcomes = log.counts().outlets["otlp"].outcomes
        bodies = [plain(line.body) for _, _, line in collector.lines()]
    assert (outcomes["written"], outcomes["rejected"]) == (9, 0)
    (found,) = [body["unmapped"]["arguments"] for body in bodies if "arguments" in body["unmapped"]]
    value, depth = found["x"], 0
    while not isinstance(value, str):
        value, depth = value["a"] if isinstance(value, dict) else value[0], depth + 1
    assert 10 < depth < 20
    again = json.loads(value)
    while not isinstance(again, str):
        again, depth = again["a"] if isinstance(again, dict) else again[0], depth + 1
    assert (again, depth) == ("leaf \u00e9", 63)


def test_a_collector_that_is_away_gets_them_later() -> None:
    with Collector("refuses") as collector:
        with log_of(otlp=AuditOtlp(url=HttpUrl.parse(collector.of("logs")))) as log:
            record_some(log, 10)
            until(lambda: log.counts().outlets["otlp"].retries > 3)
            collector.manner = "takes"
        assert len(collector.lines()) == 11


def test_a_record_that_a_collector_never_takes_holds_no_other_up(caplog: pytest.LogCaptureFixture) -> None:
    with Collector() as collector:
        collector.poison = b"poison"
        with log_of(otlp=AuditOtlp(url=HttpUrl.parse(collector.of("logs")))) as log:
            record_some(log, 5)
            log.event(ORIGIN, "denied", NOW, routing_key="poison")
            record_some(log, 5)
        outcomes = log.counts().outlets["otlp"].outcomes
        assert (outcomes["written"], outcomes["rejected"], outcomes["stopped"]) == (12, 1, 0)
        found = {plain(line.body)["metadata"]["uid"] for _, _, line in collector.lines()}
    assert len(found) == 12
    assert "1 records are rejected by otlp, and are lost: it answers 400 (the first is gw-" in caplog.text
    assert "poison" not in caplog.text


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        (ExportLogsServiceResponse().SerializeToString(), 3),
        (b"", 3),
        (b"\xff\xff\xff", 3),
        (ExportLogsServiceResponse(partial_success={"rejected_log_records": 2}).SerializeToString(), 1),
        (ExportLogsServiceResponse(partial_success={"rejected_log_records": 99}).SerializeToString(), 0),
        (ExportLogsServiceResponse(partial_success={"rejected_log_records": -5}).SerializeToString(), 3),
    ],
)
def test_what_a_collector_rejects_is_counted(
    answer: bytes, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    post: Callable[[object, bytes], bytes] = lambda self, body: answer  # noqa: E731
    monkeypatch.setattr(Poster, "post", post)
    receiver = OtlpReceiver(Poster(url := HttpUrl.parse("http://x/"), AuditOtlp(url=url)))
    sent = receiver.send([Ready(str(number), "", b"") for number in range(3)])
    assert (sent.written, sent.rejected) == (written, 3 - written)
