"""Metrics and log lines of a gateway that works, as a collector gets them by OTLP."""

from __future__ import annotations

import time
from pathlib import Path

import pika
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import Gateway, watched
from tests.support.inprocess import eventually
from tests.support.otlp import Collector
from tests.support.rabbitmq import RabbitMQ

pytestmark = pytest.mark.interop

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: orders}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: all, effect: allow, operations: ["connection.*", "channel.*", "queue.*"]}
  - {id: open, effect: allow, operations: [basic.publish], properties: {headers: {deny: [secret]}}}
"""
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def gateway_for(rabbitmq: RabbitMQ, folder: Path, collector: Collector, workers: int = 1) -> Gateway:
    (folder / "policies").mkdir()
    (folder / "policies/all.yaml").write_text(POLICY)
    otlp = f"otlp: {{metrics: '{collector.of('metrics')}', logs: '{collector.of('logs')}', interval: 1s"
    return watched(rabbitmq.address, folder / "policies", workers=workers, admin=f"}}\n{otlp}")


def deny(gateway: Gateway) -> None:
    with pika.BlockingConnection(pika.URLParameters(gateway.url)) as client:
        channel = client.channel()
        properties = pika.BasicProperties(
            headers={"secret": "yes", "traceparent": f"00-{TRACE}-{SPAN}-01", "other": "x"}
        )
        channel.basic_publish("", "amqp://bob:hunter2@there/", b"x", properties)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("", exclusive=True)


def sums(collector: Collector, name: str, process: object = None) -> float:
    """Of the last look of each process."""
    last: dict[object, float] = {}
    for of in list(collector.metrics):
        resource = {one.key: one.value for one in of.resource.attributes}
        for metric in of.scope_metrics[0].metrics:
            if metric.name == name:
                last[resource["process.pid"].int_value] = sum(
                    point.as_double for point in metric.sum.data_points
                )
    return sum(last.values())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_denial_is_a_line_with_its_trace_and_counted(
    rabbitmq: RabbitMQ, tmp_path: Path, workers: int
) -> None:
    with Collector() as collector:
        gateway = gateway_for(rabbitmq, tmp_path, collector, workers)
        gateway.start()
        try:
            deny(gateway)
            eventually(lambda: any("denied: basic.publish" in text for text, _, _ in collector.lines()))
            eventually(lambda: sums(collector, "amqpgate_denials_total") == 1)
            names = {metric.name for of in collector.metrics for metric in of.scope_metrics[0].metrics}
            read = {
                family.name + "_total" * (family.type == "counter")
                for family in text_string_to_metric_families(gateway.get("/metrics")[1])
                if family.samples
            }
            assert read == names
        finally:
            gateway.stop()
        lines = collector.lines()
        ((_, said, record),) = [one for one in lines if "denied: basic.publish" in one[0]]
        assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE, SPAN)
        assert (said["amqpgate.rule"], said["amqpgate.user"]) == ("default", "guest")
        assert said["amqpgate.operation"] == "basic.publish"
        assert "hunter2" not in str(lines)
        # The last lines come, too.
        assert any("over: closed" in text for text, _, _ in lines)
        assert len({of.scope_metrics[0].scope.name for of in collector.metrics}) == 1


def test_a_collector_that_hangs_delays_neither_clients_nor_the_end(
    rabbitmq: RabbitMQ, tmp_path: Path
) -> None:
    with Collector("hangs") as collector:
        gateway = gateway_for(rabbitmq, tmp_path, collector)
        gateway.start()
        try:
            eventually(lambda: len(collector.requests) >= 2)
            for _ in range(20):
                deny(gateway)
            text = gateway.get("/metrics")[1]
            assert 'amqpgate_denials_total{policy="",rule="default"} 20.0' in text
            assert 'amqpgate_otlp_exports_total{outcome="sent",signal="metrics"} 0.0' in text
            began = time.monotonic()
        finally:
            gateway.stop()
        # Its end waits for limits.closeTimeout at most, and not for a collector's answer.
        assert time.monotonic() - began < 30
