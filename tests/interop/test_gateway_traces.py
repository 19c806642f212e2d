"""Traces through the gateway on a real RabbitMQ: one connected trace, whoever began it; and no collector."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client.parser import text_string_to_metric_families

from tests.interop.steps import HEADERS, PROPERTIES
from tests.support.gateway import Gateway
from tests.support.otlp import Collector, Received
from tests.support.rabbitmq import RabbitMQ

VHOST = "traces"
W3C = TraceContextTextMapPropagator()

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {broker}{upstream}}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s, closeTimeout: 1s}}
tracing: {{endpoint: '{endpoint}', interval: 50ms, queue: {queue}, timeout: 60s}}
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: all}
spec:
  subjects: [{user: guest}]
  rules: [{id: all, operations: ['*'], ratio: %s}]
"""


@pytest.fixture(scope="module")
def broker(rabbitmq: RabbitMQ) -> RabbitMQ:
    rabbitmq.fresh_vhost(VHOST)
    return rabbitmq


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@contextlib.contextmanager
def gateway(
    broker: RabbitMQ,
    folder: Path,
    endpoint: str,
    *,
    ratio: float = 1,
    queue: int = 1000,
    upstream: str = "",
    more: str = "",
    env: dict[str, str] | None = None,
) -> Iterator[Gateway]:
    policies = folder / "policies"
    policies.mkdir()
    (policies / "trace.yaml").write_text(POLICY % ratio)
    text = CONFIG.format(
        broker=broker.port, policies=policies, endpoint=endpoint, queue=queue, upstream=upstream
    )
    running = Gateway(config=text + more, env=env)
    running.start()
    try:
        yield running
    finally:
        if running._child is not None:
            assert running.stop().code == 0


def connect(gate: Gateway) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials("guest", "guest")
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", gate.port, VHOST, credentials, heartbeat=0)
    )


class Application:
    """A program with the OpenTelemetry SDK, whose spans go to the same collector."""

    def __init__(self, name: str, collector: Collector) -> None:
        self.provider = TracerProvider(
            resource=Resource.create({"service.name": name, "service.instance.id": name})
        )
        self.provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(collector.endpoint)))
        self.tracer = self.provider.get_tracer(name)

    def publish(self, gate: Gateway, queue: str, *, carries: bool) -> None:
        with contextlib.closing(connect(gate)) as connection:
            channel = connection.channel()
            channel.queue_declare(queue)
            channel.confirm_delivery()
            headers: dict[str, str] = {}
            with self.tracer.start_as_current_span("order", kind=trace.SpanKind.PRODUCER):
                if carries:
                    W3C.inject(headers)
                channel.basic_publish("", queue, b"4711", pika.BasicProperties(headers=headers or None))

    def consume(self, gate: Gateway, queue: str) -> None:
        with contextlib.closing(connect(gate)) as connection:
            channel = connection.channel()
            for method, properties, body in channel.consume(queue):
                assert body == b"4711"
                context = W3C.extract(properties.headers or {})
                maker = trace.get_current_span(context).get_span_context()
                with self.tracer.start_as_current_span(
                    "bill", context, trace.SpanKind.CONSUMER, links=[trace.Link(maker)]
                ):
                    channel.basic_ack(method.delivery_tag)
                break
            channel.cancel()


def of_one_trace(collector: Collector, *names: str) -> dict[str, Received]:
    """The last span of each name, all of one trace in which each but one has a parent of the trace."""
    spans = dict(zip(names, collector.wait_for(*names), strict=True))
    assert len({span.trace for span in spans.values()}) == 1, "one trace"
    ids = {span.id for span in spans.values()}
    roots = [name for name, span in spans.items() if not span.parent]
    assert len(roots) == 1, "one root"
    assert all(span.parent in ids for name, span in spans.items() if name not in roots), "connected"
    return spans


@pytest.mark.parametrize(
    "upstream", ["", ", connections: pooled, pool: {consumers: shared}"], ids=["own", "pooled"]
)
def test_publisher_gateway_and_consumer_are_one_trace(
    broker: RabbitMQ, tmp_path: Path, collector: Collector, upstream: str
) -> None:
    with gateway(broker, tmp_path, collector.endpoint, ratio=0, upstream=upstream) as gate:
        Application("shop", collector).publish(gate, "orders", carries=True)
        Application("billing", collector).consume(gate, "orders")
        spans = of_one_trace(collector, "order", "publish amq.default", "deliver orders", "bill")
    order, published, delivered, bill = spans.values()
    services = [span.service for span in spans.values()]
    assert services == ["shop", "amqpgate", "amqpgate", "billing"]
    assert [span.kind for span in spans.values()] == ["producer", "client", "consumer", "consumer"]
    assert published.parent == delivered.parent == bill.parent == order.id
    assert published.links == delivered.links == bill.links == [(order.trace, order.id)]
    assert order.start <= published.start < published.end <= order.end
    assert delivered.start <= bill.start


def test_the_gateway_begins_the_trace_of_a_publisher_that_has_none(
    broker: RabbitMQ, tmp_path: Path, collector: Collector
) -> None:
    with gateway(broker, tmp_path, collector.endpoint) as gate:
        Application("shop", collector).publish(gate, "untraced", carries=False)
        Application("billing", collector).consume(gate, "untraced")
        spans = of_one_trace(collector, "publish amq.default", "deliver untraced", "bill")
        published, delivered, bill = spans.values()
        assert published.kind == "producer"
        assert delivered.parent == bill.parent == published.id
        # What is asked for on the way has spans of its own.
        collector.wait_for("connection.open", "channel.open", "queue.declare untraced", "confirm.select")


def test_message_and_properties_arrive_as_they_were(
    broker: RabbitMQ, tmp_path: Path, collector: Collector
) -> None:
    body = bytes(range(256)) * 2000
    with (
        gateway(broker, tmp_path, collector.endpoint) as gate,
        contextlib.closing(connect(gate)) as connection,
    ):
        channel = connection.channel()
        channel.queue_declare("whole")
        sent = pika.BasicProperties(**PROPERTIES, headers=dict(HEADERS))
        channel.basic_publish("", "whole", body, sent)
        _, got, received = next(iter(channel.consume("whole", auto_ack=True)))
        channel.cancel()
        assert received == body
        headers = dict(got.headers)
        [span] = collector.wait_for("publish amq.default")
        assert headers.pop("traceparent") == f"00-{span.trace}-{span.id}-03"
        assert headers == HEADERS
        got.headers = sent.headers = None
        assert got == sent


@pytest.mark.parametrize(
    ("opt_in", "present", "absent"),
    [
        ("", "messaging.system", "messaging.system.name"),
        ("http,messaging", "messaging.system.name", "messaging.system"),
        ("messaging/dup", "messaging.system", None),
    ],
)
def test_names_of_attributes_are_those_asked_for(
    broker: RabbitMQ, tmp_path: Path, collector: Collector, opt_in: str, present: str, absent: str | None
) -> None:
    env = {"OTEL_SEMCONV_STABILITY_OPT_IN": opt_in}
    with gateway(broker, tmp_path, collector.endpoint, env=env) as gate:
        Application("shop", collector).publish(gate, "names", carries=False)
        [span] = collector.wait_for("publish amq.default")
    assert span.attributes[present] == "rabbitmq"
    assert absent not in span.attributes
    if absent is None:
        assert span.attributes["messaging.system.name"] == "rabbitmq"


def test_each_worker_sends_its_own(broker: RabbitMQ, tmp_path: Path, collector: Collector) -> None:
    with gateway(broker, tmp_path, collector.endpoint, more="workers: 2\n") as gate:
        shop = Application("shop", collector)
        until = time.monotonic() + 30
        while True:
            shop.publish(gate, "workers", carries=False)
            senders = [one for one in collector.resources.values() if one["service.name"] == "amqpgate"]
            if len(senders) == 2:
                break
            assert time.monotonic() < until, "the kernel gives one of them nothing"
        assert len({one["process.pid"] for one in senders}) == 2


@pytest.mark.parametrize("manner", ["hangs", "refuses", "away"])
def test_a_collector_that_does_not_take_spans_stops_nothing(
    broker: RabbitMQ, tmp_path: Path, manner: str
) -> None:
    """Messages pass, spans are dropped and counted, and the end keeps its deadline."""
    with Collector("refuses" if manner == "refuses" else "hangs") as collector:
        endpoint = collector.endpoint if manner != "away" else "http://127.0.0.1:9/v1/traces"
        with gateway(broker, tmp_path, endpoint, queue=20) as gate:
            with contextlib.closing(connect(gate)) as connection:
                channel = connection.channel()
                channel.queue_declare("away")
                channel.queue_purge("away")
                channel.confirm_delivery()
                for number in range(300):
                    channel.basic_publish("", "away", b"%d" % number)
                for number, (method, _, body) in enumerate(channel.consume("away")):
                    assert body == b"%d" % number
                    channel.basic_ack(method.delivery_tag)
                    if number == 299:
                        break
            assert dropped(gate) >= 500
            began = time.monotonic()
            ended = gate.stop()
            assert ended.code == 0, ended.log
            assert time.monotonic() - began < 10


def dropped(gate: Gateway) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(gate.get("/metrics")[1])
        for sample in family.samples
        if sample.name == "amqpgate_trace_spans_dropped_total"
    )
