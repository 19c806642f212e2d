"""Exemplars of the confirm latency, as Prometheus stores them: they lead to spans that the collector has."""

from __future__ import annotations

from pathlib import Path

import pika
import pytest

from tests.support.gateway import watched
from tests.support.inprocess import eventually
from tests.support.otlp import Collector
from tests.support.prometheus import Prometheus
from tests.support.rabbitmq import RabbitMQ
from tests.unit.telemetry.shipped import ALERTS

pytestmark = pytest.mark.interop

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, operations: [basic.publish], ratio: 1}]
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exemplar_leads_to_its_span(rabbitmq: RabbitMQ, tmp_path: Path, workers: int) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/trace.yaml").write_text(POLICY)
    with Collector() as collector:
        gateway = watched(
            rabbitmq.address,
            tmp_path / "policies",
            workers=workers,
            admin=f"}}\ntracing: {{endpoint: '{collector.endpoint}', interval: 50ms",
        )
        prometheus = Prometheus(f"127.0.0.1:{gateway.admin_port}", ALERTS)
        gateway.start()
        try:
            prometheus.start()
            with pika.BlockingConnection(pika.URLParameters(gateway.url)) as client:
                channel = client.channel()
                channel.confirm_delivery()

                def found() -> bool:
                    channel.basic_publish("", "nowhere", b"x")
                    return bool(prometheus.exemplars("amqpgate_confirm_latency_seconds_bucket"))

                eventually(found, timeout=120, every=0.2)
            told = prometheus.exemplars("amqpgate_confirm_latency_seconds_bucket")
            eventually(
                lambda: (
                    {(one["trace_id"], one["span_id"]) for one in told}
                    <= {(span.trace, span.id) for span in collector.spans}
                ),
                timeout=60,
            )
            # What Prometheus has from the format beside is as it was.
            assert prometheus.query("sum(amqpgate_connections_total)")
            assert gateway.get("/metrics")[1].startswith("# HELP")
            assert "trace_id" not in gateway.get("/metrics")[1]
        finally:
            prometheus.destroy()
            ended = gateway.stop()
        assert "Traceback" not in ended.log
