"""When spans end: with the broker's answer, the client's, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.otlp import Collector
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.traced import (
    MAKER,
    SAMPLED,
    TRACE,
    UNSAMPLED,
    carried,
    confirming,
    consume,
    count,
    deliver,
    publish,
)


def test_confirms_of_many_and_of_none(traced: Callable[..., Stage], collector: Collector) -> None:
    """Broker's numbers: 1 and 2 acknowledged together, 3 refused, 4 not answered."""
    stage = traced(TRACE % "{id: r, operations: [basic.publish], ratio: 1}")
    client, broker = stage.opened()
    confirming(client, broker)
    for _ in range(4):
        publish(client)
    contexts = [(carried(broker)[0] or "").split("-")[2] for _ in range(4)]
    broker.say(amqp.BasicAck(2, True), 1)
    broker.say(amqp.BasicNack(3), 1)
    assert client.expect(amqp.BasicAck, 1) == amqp.BasicAck(2, True)
    assert client.expect(amqp.BasicNack, 1) == amqp.BasicNack(3)
    collector.wait_until(lambda: len(collector.spans) == 3)
    assert stage.running.call(lambda: count(stage, "spans_open")) == 1
    client.close()
    collector.wait_until(lambda: len(collector.spans) == 4)
    whys = {span.id: span.attributes.get("error.type") for span in collector.spans}
    assert [whys[context] for context in contexts] == [None, None, "nack", "connection-closed"]
    assert stage.running.call(lambda: count(stage, "spans_open")) == 0


def test_confirms_pass_the_data_path_again_when_no_span_waits(traced: Callable[..., Stage]) -> None:
    stage = traced(TRACE % "{id: r, operations: [basic.publish], ratio: 0}")
    client, broker = stage.opened()
    confirming(client, broker)
    publish(client, {"traceparent": SAMPLED})
    carried(broker)
    broker.say(amqp.BasicAck(1), 1)
    client.expect(amqp.BasicAck, 1)
    upcalls = stage.running.call(lambda: stage.running.gateway.pump.counters.upcalls)
    for number in range(2, 12):
        publish(client)
        carried(broker)
        broker.say(amqp.BasicAck(number), 1)
        client.expect(amqp.BasicAck, 1)
    assert stage.running.call(lambda: stage.running.gateway.pump.counters.upcalls) == upcalls


@pytest.mark.parametrize(
    ("answer", "why"),
    [(amqp.BasicAck(7), None), (amqp.BasicNack(0, True), "nack"), (amqp.BasicReject(7), "reject")],
    ids=["ack", "nack", "reject"],
)
def test_a_delivery_is_a_span_until_the_client_settles_it(
    traced: Callable[..., Stage],
    collector: Collector,
    answer: amqp.BasicAck | amqp.BasicNack | amqp.BasicReject,
    why: str | None,
) -> None:
    client, broker = traced(TRACE % "{id: r, operations: [basic.consume], ratio: 0}").opened()
    consume(client, broker)
    deliver(broker, 6, {"traceparent": UNSAMPLED})
    deliver(broker, 7, {"traceparent": SAMPLED})
    for _ in range(2):
        client.expect_content(amqp.BasicDeliver)
    client.say(amqp.BasicAck(6), 1)
    broker.expect(amqp.BasicAck, 1)
    assert not collector.spans
    client.say(answer, 1)
    assert broker.expect(type(answer), 1) == answer
    [span] = collector.wait_for("deliver q")
    assert (span.kind, span.trace, span.parent, span.links) == ("consumer", MAKER[0], MAKER[1], [MAKER])
    assert span.attributes["messaging.operation.type"] == "process"
    assert span.attributes["messaging.destination.name"] == "orders:k:q"
    assert span.attributes["messaging.rabbitmq.message.delivery_tag"] == 7
    assert span.attributes.get("error.type") == why
    assert len(collector.spans) == 1


def test_requests_are_spans_until_their_answers(traced: Callable[..., Stage], collector: Collector) -> None:
    client, broker = traced().opened()
    client.say(amqp.QueueDeclare(queue="q"), 1)
    client.say(amqp.QueueBind(queue="", exchange="orders", routing_key="k"), 1)
    client.say(amqp.QueueBind(queue="q", exchange="orders", routing_key="n", no_wait=True), 1)
    client.say(amqp.QueueDeclare(queue="other"), 1)
    for kind in (amqp.QueueDeclare, amqp.QueueBind, amqp.QueueBind, amqp.QueueDeclare):
        broker.expect(kind, 1)
    broker.say(amqp.QueueDeclareOk("q"), 1)
    broker.say(amqp.QueueBindOk(), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.expect(amqp.QueueBindOk, 1)
    collector.wait_until(lambda: len(collector.named("queue.bind q")) == 2)
    declare = collector.named("queue.declare q")[0]
    assert (declare.kind, declare.attributes["messaging.destination.name"]) == ("client", "q")
    binds = {span.attributes["messaging.destination.name"] for span in collector.named("queue.bind q")}
    assert binds == {"orders:k:q", "orders:n:q"}
    # What answers nothing ends nothing.
    broker.say(amqp.BasicCancel("c", True), 1)
    client.expect(amqp.BasicCancel, 1)
    broker.say(amqp.ChannelClose(406, "PRECONDITION_FAILED - no", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    [failed] = collector.wait_for("queue.declare other")
    assert (failed.is_error, failed.attributes["error.type"]) == (True, "precondition-failed")
    assert collector.wait_for("channel.open")[0].kind == "client"


def test_too_many_spans_at_once_are_not_begun(
    traced: Callable[..., Stage], collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpgate.gateway.observers.trace.under_way.OPEN_PER_SESSION", 3)
    stage = traced(TRACE % "{id: r, operations: [basic.publish], ratio: 1}")
    client, broker = stage.opened()
    confirming(client, broker)
    for _ in range(5):
        publish(client)
    contexts = [carried(broker)[0] for _ in range(5)]
    # The data path does not know of it: they name spans of which nobody hears.
    assert None not in contexts
    broker.say(amqp.BasicAck(5, True), 1)
    client.expect(amqp.BasicAck, 1)
    collector.wait_until(lambda: len(collector.spans) == 3)
    assert stage.running.call(lambda: count(stage, "spans_dropped_total", reason="open")) == 2
    publish(client)
    assert carried(broker)[0] is not None


def open_spans(stage: Stage) -> float:
    return stage.running.call(lambda: count(stage, "spans_open"))


@pytest.mark.parametrize("is_answered", [True, False])
def test_deliveries_that_the_broker_recovers_are_acknowledged_by_nobody(
    traced: Callable[..., Stage], collector: Collector, is_answered: bool
) -> None:
    """A client that recovers again and again is traced on."""
    stage = traced(TRACE % "{id: r, operations: [basic.consume], ratio: 1}")
    client, broker = stage.opened()
    consume(client, broker)
    for tag in (1, 2):
        deliver(broker, tag, None)
        client.expect_content(amqp.BasicDeliver)
    assert open_spans(stage) == 2
    recover = amqp.BasicRecover(True) if is_answered else amqp.BasicRecoverAsync(True)
    client.say(recover, 1)
    assert broker.expect(type(recover), 1) == recover
    if is_answered:
        assert open_spans(stage) == 2
        broker.say(amqp.BasicRecoverOk(), 1)
        client.expect(amqp.BasicRecoverOk, 1)
    assert open_spans(stage) == 0
    collector.wait_until(lambda: len(collector.named("deliver q")) == 2)
    assert {span.attributes["error.type"] for span in collector.named("deliver q")} == {"recover"}
    client.say(amqp.BasicNack(0, True), 1)
    broker.expect(amqp.BasicNack, 1)
    # Nothing waits for an acknowledgement, so none is looked at any more.
    upcalls = stage.running.call(lambda: stage.running.gateway.pump.counters.upcalls)
    client.say(amqp.BasicAck(0, True), 1)
    broker.expect(amqp.BasicAck, 1)
    assert stage.running.call(lambda: stage.running.gateway.pump.counters.upcalls) == upcalls
    deliver(broker, 3, None)
    client.expect_content(amqp.BasicDeliver)
    client.say(amqp.BasicAck(3), 1)
    broker.expect(amqp.BasicAck, 1)
    collector.wait_until(lambda: len(collector.named("deliver q")) == 3)
    assert open_spans(stage) == 0


def test_a_broker_that_says_a_tag_twice_leaves_no_span_open(
    traced: Callable[..., Stage], collector: Collector
) -> None:
    stage = traced(TRACE % "{id: r, operations: [basic.consume], ratio: 1}")
    client, broker = stage.opened()
    consume(client, broker)
    for _ in range(2):
        deliver(broker, 1, None)
        client.expect_content(amqp.BasicDeliver)
    collector.wait_for("deliver q")
    assert open_spans(stage) == 1
    client.say(amqp.BasicAck(1), 1)
    broker.expect(amqp.BasicAck, 1)
    collector.wait_until(lambda: len(collector.named("deliver q")) == 2)
    assert open_spans(stage) == 0
    assert [span.attributes.get("error.type") for span in collector.named("deliver q")] == [
        "said-again",
        None,
    ]
