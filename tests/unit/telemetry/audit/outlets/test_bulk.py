"""Documents of a receiver that is well, and of some that are not: each record is there once, or told."""

from __future__ import annotations

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
from tests.support.bulk import BulkReceiver, Manner
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
        return {0: 429, 1: 400, 2: 503}.get(int(number.rpartition("-")[2]) % 4, 201)

    with BulkReceiver(some) as receiver:
        with log_of(open_search=search(receiver.url)) as log:
            for number in range(40):
                log.event(ORIGIN, "denied", NOW, routing_key=str(number))
        (times, documents) = (receiver.times, receiver.documents)
        never = of(log).outcomes["rejected"]
        # Those of the first request.
        assert 0 < never <= 10
        assert len(documents) == 40 - never == of(log).outcomes["written"]
        assert max(times.values()) == 2
        assert all(times[number] == 1 for number in times if int(number.rpartition("-")[2]) % 4 == 3)
        assert "400 some_exception" in caplog.text
        assert "hunter2" not in caplog.text


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
