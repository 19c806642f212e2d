"""Messages that a broker confirms, and what becomes of them where it does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pika
import pytest

from amqpgate.config import Audit
from amqpgate.config.address import AmqpUrl
from amqpgate.config.audit_sinks import AuditAmqp
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.outlets.counts import OutletCounts
from amqpgate.yamldoc import Seconds
from tests.support.embedded import embedded_broker
from tests.unit.telemetry.audit.records import until

from .shipping import checked, in_no_time, log_of, record_some


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    in_no_time(monkeypatch)


def of(log: AuditLog) -> OutletCounts:
    return log.counts().outlets["amqp"]


def exchange(port: int, *, password: str = "guest", timeout: float = 20) -> Audit:
    url = AmqpUrl.parse(f"amqp://guest:{password}@127.0.0.1:{port}/%2f")
    return Audit(gateway="gw", amqp=AuditAmqp(url=url, exchange="audit", timeout=Seconds(timeout)))


@contextmanager
def broker_with(*bindings: str) -> Iterator[tuple[int, pika.adapters.blocking_connection.BlockingChannel]]:
    with embedded_broker() as (host, port):
        client = pika.BlockingConnection(pika.ConnectionParameters(host, port))
        channel = client.channel()
        if bindings:
            channel.exchange_declare("audit", "topic", durable=True)
            channel.queue_declare("records", durable=True)
        for key in bindings:
            channel.queue_bind("records", "audit", key)
        yield port, channel
        client.close()


def test_messages_are_events_by_their_class_kind_and_outcome() -> None:
    with broker_with("#") as (port, channel):
        with log_of(exchange(port)) as log:
            record_some(log, 200)
        assert of(log).outcomes["written"] == 201
        keys, ids = set(), set()
        for _ in range(201):
            method, properties, body = channel.basic_get("records", auto_ack=True)
            event = checked(body)
            assert properties.message_id == event["metadata"]["uid"]
            assert (properties.delivery_mode, properties.content_type) == (2, "application/json")
            keys.add(method.routing_key)
            ids.add(properties.message_id)
        assert len(ids) == 201
        assert keys == {"datastore_activity.usage.success", "api_activity.denied.failure"}


def test_what_reaches_no_queue_is_counted() -> None:
    with broker_with("datastore_activity.#") as (port, _):
        with log_of(exchange(port)) as log:
            record_some(log, 20)
        assert (of(log).outcomes["written"], of(log).outcomes["unroutable"]) == (1, 20)


def test_an_exchange_that_comes_later_gets_them(caplog: pytest.LogCaptureFixture) -> None:
    with broker_with() as (port, channel):
        with log_of(exchange(port)) as log:
            record_some(log, 20)
            until(lambda: of(log).retries > 2)
            channel.exchange_declare("audit", "fanout", durable=True)
            channel.queue_declare("records", durable=True)
            channel.queue_bind("records", "audit", "")
            until(lambda: of(log).outcomes["written"] + of(log).outcomes["unroutable"] == 21)
        assert "404 NOT_FOUND - no exchange 'audit'" in caplog.text


def test_a_login_that_is_wrong_is_told_without_it(caplog: pytest.LogCaptureFixture) -> None:
    with broker_with("#") as (port, _):
        with log_of(exchange(port, password="hunter2"), patience=0.2) as log:
            record_some(log, 1)
            until(lambda: of(log).retries > 1)
        assert "ACCESS_REFUSED" in caplog.text
        assert "hunter2" not in caplog.text
        assert of(log).outcomes["stopped"] == 2


@pytest.mark.parametrize(
    "said", [b"", b"AMQP\x00\x00\x09\x01", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x01" + b"\xff" * 40]
)
def test_a_peer_that_says_nothing_or_nonsense_ends_a_try(
    said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            with server.accept()[0] as peer:
                peer.sendall(said)
                while peer.recv(4096):
                    pass

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        with log_of(exchange(server.getsockname()[1], timeout=0.3), patience=0.5) as log:
            record_some(log, 1)
            until(lambda: of(log).retries >= 1)
        thread.join(20)
    assert "records are not taken by amqp, and wait" in caplog.text
    assert "Traceback" not in caplog.text
