"""Documents of a receiver that is well, and of some that are not: each record is there once, or told."""

from __future__ import annotations

import json
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from amqpgate.config import Audit, HttpUrl
from amqpgate.config.audit_sinks import AuditOtlp
from amqpgate.ocsf import OcsfEvent
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.outlets import bulk as outlets_bulk
from amqpgate.telemetry.audit.outlets.counts import OutletCounts
from amqpgate.telemetry.audit.outlets.receiver import Ready
from amqpgate.yamldoc import FilePath, Seconds, Secret
from tests.support.bulk import CLOSED, UNFIT, BulkReceiver, Fields, Manner, Refusal
from tests.support.otlp import Collector
from tests.unit.telemetry.audit.records import NOW, ORIGIN, until

from .shipping import check, in_no_time, log_of, record_some, search, small

INDEX = "amqpgate-audit"


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    in_no_time(monkeypatch)


def of(log: AuditLog) -> OutletCounts:
    return log.counts().outlets["openSearch"]


def unmapped(document: dict[str, Any]) -> str:
    return str(document["unmapped"].get("routing_key"))


def test_documents_are_events_of_ocsf_by_their_ids() -> None:
    with BulkReceiver() as receiver:
        with log_of(open_search=search(receiver.url, index="audit-1")) as log:
            record_some(log, 300)
            log.event(None, "policies", NOW, reason="caf\udce9 \u00e9", detail="{}")
        documents = receiver.of("audit-1")
        assert len(documents) == 302 == of(log).outcomes["written"]
        assert (of(log).queued, of(log).queued_bytes, of(log).retries) == (0, 0, 0)
        for (_, number), document in receiver.documents.items():
            assert number == document["metadata"]["uid"]
            assert document.pop("@timestamp") == document["time"]
            check(document)
        assert {unmapped(one) for one in documents} >= {str(number) for number in range(300)}
        (told,) = [one for one in documents if one["metadata"]["event_code"] == "policies"]
        assert told["status_detail"] == "caf\\xe9 \u00e9"
        assert {headers["content-type"] for _, headers, _ in receiver.requests} == {"application/x-ndjson"}
        assert len(receiver.requests) < 100


@pytest.mark.parametrize("manner", [429, 500, 503, 401, 404, 302, "garbage", "infinite", "closes", "forgets"])
def test_what_is_not_taken_is_sent_again_and_there_once(
    manner: Manner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with BulkReceiver(manner, manner) as receiver:
        settings = search(receiver.url, user="u", password=Secret("hunter2"))
        with log_of(open_search=settings) as log:
            record_some(log, 10)
            until(lambda: of(log).outcomes["written"] == 11)
        assert len(receiver.of(INDEX)) == 11
        assert of(log).retries == 2
        assert "records are not taken by openSearch, and wait" in caplog.text
        assert "records are taken by openSearch again" in caplog.text
        assert "hunter2" not in caplog.text


def test_documents_that_fail_alone_are_sent_again_alone(caplog: pytest.LogCaptureFixture) -> None:
    def some(number: str) -> int:
        return {0: 429, 2: 503}.get(int(number.rpartition("-")[2]) % 4, 201)

    def refuses(document: dict[str, Any]) -> Refusal | None:
        return UNFIT if int(document["metadata"]["uid"].rpartition("-")[2]) % 4 == 1 else None

    with BulkReceiver(some) as receiver:
        receiver.refuses = refuses
        with log_of(open_search=search(receiver.url)) as log:
            for number in range(40):
                log.event(ORIGIN, "denied", NOW, routing_key=str(number))
        (times, documents) = (receiver.times, receiver.documents)
        never = of(log).outcomes["rejected"]
        assert never == 10
        assert len(documents) == 40 - never == of(log).outcomes["written"]
        # As it is, and as text in two fields.
        assert {times[number] for number in times if int(number.rpartition("-")[2]) % 4 == 1} == {3}
        assert all(times[number] == 1 for number in times if int(number.rpartition("-")[2]) % 4 == 3)
        assert "400 mapper_parsing_exception" in caplog.text
        assert "hunter2" not in caplog.text


#: Headers of a message, the later of which do not fit where the first have made fields.
HEADERS: tuple[tuple[str, ...], ...] = (
    ('{"n": 1}', '{"n": "text"}'),
    ('{"a": 1}', '{"a.b": 1}', '{"a": {"b": 1}}'),
    ('{"a": 1}', '{"": 1}', '{" ": 1}', '{"a..b": 1}'),
)


@pytest.mark.parametrize("headers", HEADERS)
def test_a_document_that_does_not_fit_is_there_as_text(
    headers: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with BulkReceiver() as receiver:
        receiver.refuses = Fields().refuses
        with log_of(open_search=search(receiver.url)) as log:
            for number, one in enumerate(headers):
                log.event(ORIGIN, "message", NOW + number, operation="basic.publish", headers=one)
        assert of(log).outcomes["written"] == len(headers) == len(receiver.of(INDEX))
        assert of(log).outcomes["rejected"] == 0
        whole, *text = sorted(receiver.of(INDEX), key=lambda one: int(one["time"]))
        assert "raw_data" not in whole
        for one, said in zip(text, headers[1:], strict=True):
            assert one["message"] == "message: see raw_data"
            assert "unmapped" not in one
            event = json.loads(one["raw_data"])
            assert event["unmapped"]["headers"] == json.loads(said)
            assert {name: event[name] for name in one if name not in ("message", "raw_data")} == {
                name: one[name] for name in one if name not in ("message", "raw_data")
            }
    assert "do not fit the index of openSearch, and are there as text: it answers 400 mapper" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_name_that_looks_like_a_date_keeps_no_other_out() -> None:
    with BulkReceiver() as receiver:
        receiver.refuses = Fields().refuses
        with log_of(open_search=search(receiver.url)) as log:
            for number, name in enumerate(("2026-11-30", "orders", "2026-12-01", "bills")):
                log.event(ORIGIN, "denied", NOW + number, operation="queue.declare", queue=name)
        assert len(receiver.of(INDEX)) == 4
        assert sum("raw_data" in one for one in receiver.of(INDEX)) == 2


def test_an_index_that_takes_no_further_field_has_it_in_one_that_each_event_has() -> None:
    with BulkReceiver() as receiver:
        fields = Fields()
        receiver.refuses = fields.refuses
        with log_of(open_search=search(receiver.url)) as log:
            log.event(ORIGIN, "message", NOW, operation="basic.publish", headers="{}")
            until(lambda: of(log).outcomes["written"] == 1)
            fields.most = len(fields.kinds)
            log.event(ORIGIN, "message", NOW, operation="basic.publish", headers='{"a": 1}')
            until(lambda: of(log).outcomes["written"] == 2)
        _, text = receiver.of(INDEX)
        assert json.loads(text["message"])["unmapped"]["headers"] == {"a": 1}
        assert "raw_data" not in text


def test_what_is_too_large_as_text_is_halved_and_lost_alone(caplog: pytest.LogCaptureFixture) -> None:
    def refuses(document: dict[str, Any]) -> Refusal | None:
        return UNFIT if "unmapped" in document else None

    with BulkReceiver() as receiver:
        receiver.refuses = refuses
        with log_of(open_search=search(receiver.url)) as log:
            for number in range(8):
                log.event(ORIGIN, "denied", NOW + number, reason='"' * (700 if number == 5 else 10))
            receiver.most = 3000
            record_some(log, 0)
        assert len(receiver.of(INDEX)) == 8
        assert of(log).outcomes["rejected"] == 1
    assert "413" in caplog.text


@pytest.mark.parametrize("manner", [503, "closes", "garbage"])
def test_what_may_not_be_there_as_text_is_sent_again(manner: Manner) -> None:
    with BulkReceiver(200, manner) as receiver:
        receiver.refuses = Fields().refuses
        with log_of(open_search=search(receiver.url)) as log:
            for number, one in enumerate(('{"n": 1}', '{"n": "text"}')):
                log.event(ORIGIN, "message", NOW + number, operation="basic.publish", headers=one)
        assert of(log).outcomes["written"] == 2 == len(receiver.of(INDEX))
        assert of(log).retries == 1


def test_an_index_that_takes_none_loses_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with BulkReceiver() as receiver:
        with log_of(open_search=search(receiver.url)) as log:
            record_some(log, 10)
            until(lambda: of(log).outcomes["written"] == 11)
            receiver.refuses = lambda document: CLOSED
            record_some(log, 100)
            until(lambda: of(log).retries > 2)
            assert of(log).queued == 101
            receiver.refuses = lambda document: None
        assert (of(log).outcomes["written"], of(log).outcomes["rejected"]) == (112, 0)
        assert len(receiver.of(INDEX)) == 112
    assert (
        "records are not taken by openSearch, and wait: it answers 400 index_closed_exception" in caplog.text
    )
    assert "records are taken by openSearch again" in caplog.text


def test_a_record_that_fits_in_no_form_is_lost_alone(caplog: pytest.LogCaptureFixture) -> None:
    def refuses(document: dict[str, Any]) -> Refusal | None:
        return UNFIT if "seven" in json.dumps(document) else None

    with BulkReceiver() as receiver:
        receiver.refuses = refuses
        with log_of(open_search=search(receiver.url)) as log:
            record_some(log, 10)
            until(lambda: of(log).outcomes["written"] == 11)
            # No other is in its request.
            log.event(ORIGIN, "denied", NOW, reason="seven")
            until(lambda: of(log).outcomes["rejected"] == 1)
            record_some(log, 10)
        assert of(log).outcomes["written"] == 22 == len(receiver.of(INDEX))
    assert "1 records are rejected by openSearch, and are lost: it answers 400 mapper" in caplog.text


def test_a_request_that_is_too_large_is_halved() -> None:
    with BulkReceiver() as receiver:
        receiver.most = 3000
        with log_of(open_search=search(receiver.url)) as log:
            record_some(log, 100)
            log.event(ORIGIN, "denied", NOW, reason="x" * 3000)
        assert len(receiver.of(INDEX)) == 101
        assert of(log).outcomes["rejected"] == 1
        assert len(receiver.requests) > 50


def test_an_answer_that_drips_or_does_not_come_ends() -> None:
    with BulkReceiver("drips", "hangs") as receiver:
        settings = search(receiver.url, timeout=Seconds(0.3))
        with log_of(open_search=settings) as log:
            record_some(log, 5)
            until(lambda: of(log).outcomes["written"] == 6)
        assert of(log).retries == 2


def test_whoever_is_full_holds_those_up_who_cause_events_and_no_other() -> None:
    rooms: list[int] = []
    with BulkReceiver() as broken:
        broken.always = 503
        # Lines go to standard output.
        settings = small(open_search=search(broken.url), format="json")
        with log_of(settings, patience=0.2, on_room=lambda: rooms.append(1)) as log:
            number = 0
            while log.has_room:
                log.event(ORIGIN, "denied", NOW, routing_key=str(number))
                number += 1
                assert number < 1000
                until(lambda: log.counts().queued == (0, 0))
            # What is written beside goes on, and the log says so.
            assert log.counts().written[0] == number
            until(lambda: log.is_down)
            # Usage is summed on meanwhile.
            record_some(log, 0)
            assert log.counts().late_windows == 1
            broken.always = 200
            until(lambda: len(broken.of(INDEX)) == number)
            until(lambda: bool(rooms))
            assert log.has_room
            assert not log.is_down
        assert of(log).outcomes["dropped"] == 0


def test_what_is_too_much_is_dropped_where_the_settings_say_so() -> None:
    with BulkReceiver() as receiver:
        receiver.always = 503
        with log_of(small(open_search=search(receiver.url, when_full="drop")), patience=0.2) as log:
            for number in range(250):
                assert log.has_room
                log.event(ORIGIN, "denied", NOW, routing_key=str(number))
                until(lambda: log.counts().queued == (0, 0))
            assert not log.is_down
            assert of(log).queued_bytes < 200 << 10
            dropped = of(log).outcomes["dropped"]
            assert 50 < dropped < 250
            assert of(log).queued == 250 - dropped
        # What waited at the end is lost, and counted.
        assert of(log).outcomes["stopped"] == 250 - dropped


def test_a_stop_sends_what_waits_and_waits_no_longer_than_it_may(caplog: pytest.LogCaptureFixture) -> None:
    with BulkReceiver(pause=0.05) as receiver:
        with log_of(open_search=search(receiver.url)) as log:
            record_some(log, 600)
        assert len(receiver.of(INDEX)) == 601
    with BulkReceiver() as receiver:
        receiver.always = "hangs"
        with log_of(open_search=search(receiver.url), patience=0.3) as log:
            record_some(log, 20)
        assert "21 records were not taken by openSearch until the end, and are lost" in caplog.text
        assert of(log).outcomes["stopped"] == 21
        assert of(log).queued == 0


def test_logins_are_read_each_time(tmp_path: Path) -> None:
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text("one\n")
    password.write_text("first\n")
    with BulkReceiver(500) as receiver:
        with log_of(open_search=search(receiver.url, token_file=FilePath(token))) as log:
            record_some(log, 1)
            until(lambda: of(log).outcomes["written"] == 2)
            token.write_text("ApiKey two\n")
            record_some(log, 0)
            until(lambda: of(log).outcomes["written"] == 3)
        with log_of(open_search=search(receiver.url, user="u", password_file=FilePath(password))) as log:
            record_some(log, 0)
        with log_of(open_search=search(receiver.url)) as log:
            record_some(log, 0)
        said = [headers.get("authorization") for _, headers, _ in receiver.requests]
        assert list(dict.fromkeys(said)) == ["Bearer one", "ApiKey two", "Basic dTpmaXJzdA==", None]


def test_a_certificate_that_nobody_knows_is_not_trusted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, others = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.issue_cert("127.0.0.1").configure_cert(context)
    for name, ca in (("ours", ours), ("others", others)):
        ca.cert_pem.write_to_path(tmp_path / name)
    with BulkReceiver(tls=context) as receiver:
        with log_of(
            open_search=search(receiver.url, ca=FilePath(tmp_path / "others"), token_file=None), patience=0.3
        ) as log:
            record_some(log, 1)
            until(lambda: of(log).retries > 1)
        assert "certificate verify failed" in caplog.text
        assert receiver.requests == []
        with log_of(open_search=search(receiver.url, ca=FilePath(tmp_path / "ours"))) as log:
            record_some(log, 1)
        assert len(receiver.of(INDEX)) == 2


def test_a_record_that_cannot_be_sent_is_lost_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ready = outlets_bulk.BulkReceiver.ready

    def broken(self: outlets_bulk.BulkReceiver, event: OcsfEvent) -> Ready:
        if "'routing_key': '7'" in str(event):
            raise KeyError("defect")
        return ready(self, event)

    monkeypatch.setattr(outlets_bulk.BulkReceiver, "ready", broken)
    with BulkReceiver() as receiver:
        with log_of(open_search=search(receiver.url)) as log:
            record_some(log, 20)
        assert (of(log).outcomes["written"], of(log).outcomes["rejected"], of(log).queued) == (20, 1, 0)
        assert len(receiver.of(INDEX)) == 20
    assert "a record cannot be written for openSearch, and is lost" in caplog.text


def test_two_sinks_do_not_wait_for_each_other() -> None:
    with BulkReceiver() as receiver, Collector("hangs") as collector:
        otlp = AuditOtlp(url=HttpUrl.parse(collector.of("logs")), when_full="drop")
        settings = Audit(gateway="gw", open_search=search(receiver.url), otlp=otlp)
        with log_of(settings, patience=1) as log:
            record_some(log, 100)
            until(lambda: of(log).outcomes["written"] == 101)
            assert log.counts().outlets["otlp"].queued == 101
