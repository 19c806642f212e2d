"""Audit records of real traffic where others get them: every record that the files have is there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.audit import records
from tests.support.bulk import BulkReceiver
from tests.support.gateway import Gateway, watched
from tests.support.inprocess import eventually
from tests.support.otlp import Collector
from tests.support.rabbitmq import RabbitMQ
from tests.unit.test_ocsf import check_of

pytestmark = pytest.mark.interop

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: orders}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: drop}
  rules:
  - {id: all, effect: allow, operations: ["connection.*", "channel.*"]}
  - {id: open, effect: allow, operations: [basic.publish], routingKey: {literal: open}}
"""


def gateway_for(rabbitmq: RabbitMQ, folder: Path, audit: str, workers: int = 1) -> Gateway:
    (folder / "policies").mkdir()
    (folder / "policies/all.yaml").write_text(POLICY)
    (folder / "audit").mkdir()
    return watched(
        rabbitmq.address, folder / "policies", workers=workers, admin=f"}}\naudit: {{window: 0.5s, {audit}"
    )


def traffic(gateway: Gateway, count: int) -> None:
    with pika.BlockingConnection(pika.URLParameters(gateway.url)) as client:
        channel = client.channel()
        for number in range(count):
            channel.basic_publish("", "open", b"x")
            channel.basic_publish("", f"secret.{number}", b"x")
        channel.confirm_delivery()
        channel.basic_publish("", "open", b"x")


def of_sinks(gateway: Gateway) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["sink"], sample.labels["outcome"]): sample.value
        for family in text_string_to_metric_families(gateway.get("/metrics")[1])
        if family.name == "amqpgate_audit_sink_records"
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def events() -> Iterator[RabbitMQ]:
    """The broker that gets the records."""
    broker = RabbitMQ()
    broker.start()
    yield broker
    broker.destroy()


@contextmanager
def channel_of(broker: RabbitMQ) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as client:
        yield client.channel()


def taken(broker: RabbitMQ) -> list[str]:
    """The ids of all messages; each is a valid event."""
    found = []
    with channel_of(broker) as channel:
        while True:
            method, properties, body = channel.basic_get("records", auto_ack=True)
            if method is None:
                return found
            event = json.loads(body)
            check_of(event["class_uid"])(event)
            assert event["metadata"]["uid"] == properties.message_id
            found.append(properties.message_id)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_record_is_everywhere_though_a_broker_is_killed_in_between(
    rabbitmq: RabbitMQ, events: RabbitMQ, tmp_path: Path, workers: int
) -> None:
    with channel_of(events) as channel:
        channel.exchange_declare("audit", "topic", durable=True)
        channel.queue_declare("records", durable=True)
        channel.queue_purge("records")
        channel.queue_bind("records", "audit", "#")
    with Collector() as collector, BulkReceiver(503, "closes") as search:
        gateway = gateway_for(
            rabbitmq,
            tmp_path,
            f"format: parquet, folder: '{tmp_path / 'audit'}', gateway: gw, rollInterval: 0.2s, "
            f"otlp: {{url: '{collector.of('logs')}'}}, openSearch: {{url: '{search.url}'}}, "
            f"amqp: {{url: '{events.url}%2f', exchange: audit, timeout: 5s}}",
            workers,
        )
        gateway.start()
        try:
            traffic(gateway, 100)
            eventually(lambda: of_sinks(gateway)["amqp", "written"] > 100, timeout=120)
            traffic(gateway, 100)
            events.kill()
            for _ in range(3):
                traffic(gateway, 100)
            events.start()
            traffic(gateway, 50)
            # Tries are up to 8 s apart by now.
            eventually(lambda: len(set(of_sinks(gateway).values()) - {0.0}) == 1, timeout=120)
        finally:
            ended = gateway.stop()
        assert "Traceback" not in ended.log
        assert "guest:guest" not in ended.log
        wanted = {
            str(one["record_id"]) for sort in ("events", "usage") for one in records(tmp_path / "audit", sort)
        }
        assert len(wanted) > 550
        messages = taken(events)
        assert set(messages) == wanted
        assert {number for _, number in search.documents} == wanted
        told = [one.value.string_value for _, _, line in collector.lines() for one in line.attributes]
        assert {one for one in told if one} == wanted


def test_one_that_hangs_delays_neither_clients_nor_the_end(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with BulkReceiver() as search, Collector() as collector:
        search.always = "hangs"
        gateway = gateway_for(
            rabbitmq,
            tmp_path,
            f"openSearch: {{url: '{search.url}'}}, otlp: {{url: '{collector.of('logs')}'}}",
        )
        gateway.start()
        try:
            traffic(gateway, 200)
            eventually(lambda: of_sinks(gateway)["otlp", "written"] > 200, timeout=120)
            assert of_sinks(gateway)["openSearch", "written"] == 0
            began = time.monotonic()
        finally:
            ended = gateway.stop()
        # The writer has 10 s, and so has what waits.
        assert time.monotonic() - began < 25
        assert ended.code == 0
        assert "were not taken by openSearch until the end, and are lost" in ended.log


def test_a_full_queue_is_not_ready_and_holds_new_clients_up_until_there_is_room(
    rabbitmq: RabbitMQ, tmp_path: Path
) -> None:
    with BulkReceiver() as search:
        search.always = 503
        gateway = gateway_for(rabbitmq, tmp_path, f"maxQueue: 64Ki, openSearch: {{url: '{search.url}'}}")
        gateway.start()
        try:
            client = pika.BlockingConnection(pika.URLParameters(gateway.url))
            channel = client.channel()
            for number in range(400):
                channel.basic_publish("", f"secret.{number}", b"x")
            eventually(lambda: gateway.get("/readyz")[0] == 503, timeout=60)
            search.always = 200
            eventually(lambda: gateway.get("/readyz")[0] == 200, timeout=60)
            eventually(
                lambda: sum("denied" in str(one) for one in search.of("amqpgate-audit")) >= 400, timeout=60
            )
            client.close()
            traffic(gateway, 1)
        finally:
            gateway.stop()
