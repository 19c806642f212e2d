"""Which requests and messages of a session make spans, and what else happens to them: nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.otlp import Collector
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.traced import (
    ACCESS,
    ALL,
    MAKER,
    RATES,
    SAMPLED,
    SETTINGS,
    TRACE,
    MakeStage,
    carried,
    confirming,
    consume,
    count,
    deliver,
    publish,
)


def test_a_publish_is_a_span_until_its_confirm_and_carries_it(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    client, broker = traced().opened()
    confirming(client, broker)
    publish(client)
    context, body = carried(broker)
    assert body == b"x"
    assert context is not None
    assert not collector.named("publish orders")
    broker.say(amqp.BasicAck(1), 1)
    assert client.expect(amqp.BasicAck, 1) == amqp.BasicAck(1)
    [span] = collector.wait_for("publish orders")
    # Sampled, and of a random trace id (W3C Trace Context, level 2).
    assert context == f"00-{span.trace}-{span.id}-03"
    assert (span.kind, span.parent, span.links, span.is_error) == ("producer", "", [], False)
    assert span.attributes["messaging.system"] == "rabbitmq"
    assert span.attributes["messaging.operation.name"] == "publish"
    assert span.attributes["messaging.operation.type"] == "send"
    assert span.attributes["messaging.destination.name"] == "orders:k"
    assert span.attributes["messaging.rabbitmq.destination.routing_key"] == "k"
    assert span.attributes["messaging.message.body.size"] == 1
    assert span.attributes["amqpgate.trace.rule"] == "t/all"
    assert (span.attributes["amqpgate.user"], span.attributes["amqpgate.vhost"]) == ("guest", "/")
    assert span.attributes["network.peer.address"] == "127.0.0.1"
    assert "error.type" not in span.attributes


@pytest.mark.parametrize("ratio", [0.5, 0.3, 0.04])
@pytest.mark.parametrize("parent", ["respect", "ignore"])
def test_the_share_is_exact_and_the_others_pass_as_they_are(
    traced: Callable[..., Stage], collector: Collector, ratio: float, parent: str
) -> None:
    stage = traced(TRACE % f"{{id: r, operations: [basic.publish], ratio: {ratio}, parent: {parent}}}")
    client, broker = stage.opened()
    upcalls = stage.running.call(lambda: stage.running.gateway.pump.counters.upcalls)
    for _ in range(1000):
        publish(client)
    contexts = [carried(broker)[0] for _ in range(1000)]
    chosen = [context for context in contexts if context is not None]
    assert abs(len(chosen) - 1000 * ratio) <= 1
    # One in N is shown, method and header, and the first is a miss.
    shown = (stage.running.call(lambda: stage.running.gateway.pump.counters.upcalls) - upcalls - 1) / 2
    assert shown <= 1000 // int(1 / ratio) + 1
    collector.wait_until(lambda: len(collector.named("publish orders")) == len(chosen))
    assert {f"00-{span.trace}-{span.id}-03" for span in collector.spans} == set(chosen)


def test_a_delivery_that_is_not_acknowledged_ends_at_once(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    client, broker = traced(TRACE % "{id: r, operations: [basic.consume], ratio: 1}").opened()
    consume(client, broker, no_ack=True)
    deliver(broker, 1, None)
    client.expect_content(amqp.BasicDeliver)
    [span] = collector.wait_for("deliver q")
    assert (span.parent, span.links, span.is_error) == ("", [], False)
    assert collector.wait_for("basic.consume q")[0].kind == "client"


def test_a_tag_may_be_another_consumers(traced: Callable[..., Stage], collector: Collector) -> None:
    client, broker = traced(TRACE % "{id: r, operations: [basic.consume], queue: q, ratio: 1}").opened()
    for queue in ("other", "q", "other"):
        consume(client, broker, queue=queue, no_ack=True)
        deliver(broker, 1, None)
        client.expect_content(amqp.BasicDeliver)
        client.say(amqp.BasicCancel("c"), 1)
        broker.expect(amqp.BasicCancel, 1)
        broker.say(amqp.BasicCancelOk("c"), 1)
        client.expect(amqp.BasicCancelOk, 1)
    collector.wait_for("deliver q")
    assert not collector.named("deliver other")


def test_denials_are_events(traced: Callable[..., Stage], collector: Collector) -> None:
    client, broker = traced(ALL + ACCESS).opened()
    confirming(client, broker)
    publish(client, key="other")
    client.expect(amqp.BasicNack, 1)
    publish(client, {"secret": 1, "traceparent": SAMPLED})
    client.expect(amqp.BasicNack, 1)
    client.say(amqp.QueueDelete(queue="q"), 1)
    broker.expect(amqp.ChannelClose, 1)
    collector.wait_until(lambda: len(collector.named("publish orders")) == 2)
    [delete] = collector.wait_for("queue.delete q")
    early, late = collector.named("publish orders")
    for span in (early, late, delete):
        assert [event.name for event in span.events] == ["amqpgate.denied"]
        assert (span.is_error, span.attributes["error.type"]) == (True, "access-refused")
    assert late.events[0].attributes == {"amqpgate.rule": "default"}
    assert (late.trace, late.parent) == MAKER


def test_a_message_that_is_too_large_is_a_span(collector: Collector, make_stage: MakeStage) -> None:
    settings = SETTINGS % (collector.endpoint, 1000)
    stage = make_stage(text=settings, policies=ALL, limits="maxMessageBytes: 10")
    client, broker = stage.opened()
    client.publish(b"12345678901", "k", exchange="orders")
    broker.expect(amqp.ChannelClose, 1)
    [span] = collector.wait_for("publish orders")
    assert span.attributes["error.type"] == "over-limit"
    [event] = span.events
    assert (event.name, event.attributes["amqpgate.rule"]) == ("amqpgate.throttled", "maxMessageBytes")


@pytest.mark.parametrize("quantity", ["messages", "queueDeclares"])
def test_what_a_limit_refuses_is_an_event(
    traced: Callable[..., Stage], collector: Collector, quantity: str
) -> None:
    client, broker = traced(ALL + RATES % f"{quantity}: 1/m, burst: 1m, action: reject").opened()
    confirming(client, broker)
    if quantity == "messages":
        for _ in range(2):
            publish(client)
        carried(broker)
        client.expect(amqp.BasicNack, 1)
        name = "publish orders"
    else:
        for _ in range(2):
            client.say(amqp.QueueDeclare(queue="q"), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.expect(amqp.ChannelClose, 1)
        name = "queue.declare q"
    [span] = collector.wait_for(name)
    assert [event.name for event in span.events] == ["amqpgate.throttled"]
    assert span.attributes["error.type"] == "over-limit"


def test_a_header_that_would_not_fit_gets_no_context(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    """Of a frame of 4,096 bytes 77 are left, then 76, then 75."""
    stage = traced()
    tune = amqp.ConnectionTune(2047, 4096, 0)
    client, broker = stage.opened(tune=tune)
    for left, fits in ((76, True), (75, False)):
        # A header frame is 7 + 14 + 1 bytes and the properties; a short string has a byte of length.
        properties = amqp.BasicProperties(headers=Table.of({"h": "x" * (4096 - left - 22 - 4 - 2 - 5)}))
        client.publish(b"x", "k", exchange="orders", properties=properties)
        message = broker.expect_content(amqp.BasicPublish)
        assert message.largest == 4096 - left if not fits else message.largest <= 4096
        got = message.header.properties
        assert isinstance(got, amqp.BasicProperties)
        assert got.headers is not None
        assert ("traceparent" in got.headers) is fits
    collector.wait_until(lambda: len(collector.named("publish orders")) == 2)
    assert [span.kind for span in collector.named("publish orders")] == ["producer", "client"]
    assert stage.running.call(lambda: count(stage, "contexts_not_injected_total")) == 1
