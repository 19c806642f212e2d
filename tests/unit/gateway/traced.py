"""Sessions that are traced, whose client and broker are the test itself."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.metrics import sample_value
from tests.support.talker import Talker

from .conftest import Stage

MakeStage = Callable[..., Stage]

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}}}]
limits: {{{limits}}}
tracing: {{endpoint: '%s', interval: 20ms, timeout: 2s, queue: %d}}
"""
TRACE = """
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: t}
spec:
  subjects: [{user: guest}]
  rules: [%s]
"""
ALL = TRACE % "{id: all, operations: ['*'], ratio: 1}"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-%s"
SAMPLED, UNSAMPLED = TRACEPARENT % "01", TRACEPARENT % "00"
MAKER = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
RATES = """
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{user: guest}]
  limits: [{id: few, per: [connection], %s}]
"""
ACCESS = """
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: few}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: small, effect: allow, operations: [basic.publish], exchange: orders, routingKey: k,
     properties: {headers: {deny: [secret]}}}
"""


def count(stage: Stage, name: str, **labels: str) -> float:
    return sample_value(stage.running.gateway.metrics.registry, f"amqpgate_trace_{name}", labels) or 0


def publish(client: Talker, headers: dict[str, object] | None = None, key: str = "k") -> None:
    properties = amqp.BasicProperties(headers=None if headers is None else Table.of(headers))
    client.publish(b"x", key, exchange="orders", properties=properties)


def confirming(client: Talker, broker: Talker) -> None:
    client.say(amqp.ConfirmSelect(), 1)
    broker.expect(amqp.ConfirmSelect, 1)
    broker.say(amqp.ConfirmSelectOk(), 1)
    client.expect(amqp.ConfirmSelectOk, 1)


def carried(broker: Talker) -> tuple[str | None, bytes]:
    """The trace context of the next message, and its body."""
    message = broker.expect_content(amqp.BasicPublish)
    properties = message.header.properties
    assert isinstance(properties, amqp.BasicProperties)
    found = None if properties.headers is None else properties.headers.get("traceparent")
    assert found is None or isinstance(found, str)
    return found, message.body


def consume(client: Talker, broker: Talker, *, queue: str = "q", no_ack: bool = False) -> None:
    client.say(amqp.BasicConsume(queue=queue, consumer_tag="c", no_ack=no_ack), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)


def deliver(broker: Talker, tag: int, headers: dict[str, object] | None) -> None:
    properties = amqp.BasicProperties(headers=None if headers is None else Table.of(headers))
    broker.content(amqp.BasicDeliver("c", tag, False, "orders", "k"), b"x", properties=properties)
