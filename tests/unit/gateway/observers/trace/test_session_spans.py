"""Which messages are chosen by the context that they carry, and what their spans say."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.otlp import Collector
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.traced import ALL, MAKER, RATES, SAMPLED, TRACE, UNSAMPLED, carried, publish


def test_a_context_that_is_there_is_kept_and_decides(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    client, broker = traced(TRACE % "{id: r, operations: [basic.publish], ratio: 0}").opened()
    for headers in (
        {"a": 1},
        {"traceparent": UNSAMPLED},
        {"traceparent": SAMPLED, "tracestate": "v=1", "a": 1},
    ):
        publish(client, headers)
        message = broker.expect_content(amqp.BasicPublish)
        assert message.header.properties == amqp.BasicProperties(headers=Table.of(headers))
    [span] = collector.wait_for("publish orders")
    assert len(collector.spans) == 1
    assert (span.kind, span.trace, span.parent, span.links) == ("client", MAKER[0], MAKER[1], [MAKER])


def test_a_context_may_be_ignored_but_is_kept_and_linked_to(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    client, broker = traced(TRACE % "{id: r, operations: ['*'], ratio: 1, parent: ignore}").opened()
    publish(client, {"traceparent": UNSAMPLED})
    assert carried(broker) == (UNSAMPLED, b"x")
    [span] = collector.wait_for("publish orders")
    assert (span.kind, span.parent, span.links) == ("client", "", [MAKER])
    assert span.trace != MAKER[0]


def test_what_is_no_context_is_kept_and_not_replaced(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    client, broker = traced().opened()
    publish(client, {"traceparent": "nonsense"})
    assert carried(broker) == ("nonsense", b"x")
    [span] = collector.wait_for("publish orders")
    assert (span.kind, span.parent, span.links) == ("client", "", [])


def test_waiting_for_a_limit_is_an_event(traced: Callable[..., Stage], collector: Collector) -> None:
    limits = RATES % "messages: 1/s, burst: 1s"
    client, broker = traced(TRACE % "{id: r, operations: ['*'], ratio: 1}" + limits).opened()
    # Any part of a token lets a message begin: the second may pass, and then the third waits.
    for _ in range(3):
        publish(client)
    for _ in range(3):
        carried(broker)
    collector.wait_until(lambda: len(collector.named("publish orders")) == 3)
    first, *later = collector.named("publish orders")
    assert not first.events
    throttled = [(span, event) for span in later for event in span.events]
    assert throttled
    for span, event in throttled:
        waited = event.attributes["amqpgate.waited"]
        assert event.name == "amqpgate.throttled"
        assert isinstance(waited, float)
        assert 0.05 < waited <= (span.end - span.start) / 1e9


def test_a_request_that_waits_for_a_limit(traced: Callable[..., Stage], collector: Collector) -> None:
    client, broker = traced(ALL + RATES % "queueDeclares: 1/s, burst: 1s").opened()
    for queue in ("a", "b"):
        client.say(amqp.QueueDeclare(queue=queue), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk(queue), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    first, second = collector.wait_for("queue.declare a", "queue.declare b")
    assert [len(first.events), [event.name for event in second.events]] == [0, ["amqpgate.throttled"]]
