"""Which requests and messages of a session make spans, and what else happens to them: nothing."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from amqpgate.policy import PolicySet, Source, build
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.otlp import Collector
from tests.support.talker import Talker
from tests.unit.gateway.audited import confirming
from tests.unit.gateway.conftest import Stage

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


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture
def traced(collector: Collector, make_stage: MakeStage) -> Callable[..., Stage]:
    def make(policies: str = ALL, *, queue: int = 1000) -> Stage:
        return make_stage(text=SETTINGS % (collector.endpoint, queue), policies=policies)

    return make


def count(stage: Stage, name: str, **labels: str) -> float:
    return stage.running.gateway.metrics.registry.get_sample_value(f"amqpgate_trace_{name}", labels) or 0


def publish(client: Talker, headers: dict[str, object] | None = None, key: str = "k") -> None:
    properties = amqp.BasicProperties(headers=None if headers is None else Table.of(headers))
    client.publish(b"x", key, exchange="orders", properties=properties)


def carried(broker: Talker) -> tuple[str | None, bytes]:
    """The trace context of the next message, and its body."""
    message = broker.expect_content(amqp.BasicPublish)
    properties = message.header.properties
    assert isinstance(properties, amqp.BasicProperties)
    found = None if properties.headers is None else properties.headers.get("traceparent")
    assert found is None or isinstance(found, str)
    return found, message.body


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


def consume(client: Talker, broker: Talker, *, queue: str = "q", no_ack: bool = False) -> None:
    client.say(amqp.BasicConsume(queue=queue, consumer_tag="c", no_ack=no_ack), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)


def deliver(broker: Talker, tag: int, headers: dict[str, object] | None) -> None:
    properties = amqp.BasicProperties(headers=None if headers is None else Table.of(headers))
    broker.content(amqp.BasicDeliver("c", tag, False, "orders", "k"), b"x", properties=properties)


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


def test_the_set_up_has_its_stages(traced: Callable[..., Stage], collector: Collector) -> None:
    traced().opened()
    [whole] = collector.wait_for("connection.open")
    stages = [span for span in collector.spans if span.parent == whole.id]
    assert [span.name for span in stages] == ["protocol-header", "dial", "start-ok", "tune-ok", "open-ok"]
    assert {span.trace for span in stages} == {whole.trace}
    assert (whole.kind, whole.is_error, whole.attributes["amqpgate.user"]) == ("server", False, "guest")
    assert stages[0].start == whole.start
    assert all(before.end == after.start for before, after in itertools.pairwise(stages))


def test_a_set_up_that_fails(traced: Callable[..., Stage], collector: Collector) -> None:
    anybody = (TRACE % "{id: r, operations: [connection.open], ratio: 1}").replace("guest", "'*'")
    client, _ = traced(anybody).greeted()
    client.octets(b"\x01\0\0\0\0\0\0\x11")
    [whole] = collector.wait_for("connection.open")
    assert whole.is_error
    assert collector.named("dial")


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


RATES = """
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{user: guest}]
  limits: [{id: few, per: [connection], %s}]
"""


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


def test_a_request_that_waits_for_a_limit(traced: Callable[..., Stage], collector: Collector) -> None:
    client, broker = traced(ALL + RATES % "queueDeclares: 1/s, burst: 1s").opened()
    for queue in ("a", "b"):
        client.say(amqp.QueueDeclare(queue=queue), 1)
        broker.expect(amqp.QueueDeclare, 1)
        broker.say(amqp.QueueDeclareOk(queue), 1)
        client.expect(amqp.QueueDeclareOk, 1)
    first, second = collector.wait_for("queue.declare a", "queue.declare b")
    assert [len(first.events), [event.name for event in second.events]] == [0, ["amqpgate.throttled"]]


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
        # A header frame is 7 + 14 + 1 bytes and the properties; a short string has an octet of length.
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
    assert [context is not None for context in contexts] == [True, True, True, False, False]
    broker.say(amqp.BasicAck(5, True), 1)
    client.expect(amqp.BasicAck, 1)
    collector.wait_until(lambda: len(collector.spans) == 3)
    assert stage.running.call(lambda: count(stage, "spans_dropped_total", reason="open")) == 2
    publish(client)
    assert carried(broker)[0] is not None


def test_sessions_follow_other_policies(traced: Callable[..., Stage], collector: Collector) -> None:
    stage = traced()
    client, broker = stage.opened()
    publish(client)
    assert carried(broker)[0] is not None
    stage.running.call(lambda: stage.running.gateway.use(PolicySet.empty()))
    publish(client)
    assert carried(broker)[0] is None
    stage.running.call(lambda: stage.running.gateway.use(build([Source("p.yaml", ALL.encode())])))
    publish(client)
    assert carried(broker)[0] is not None


def test_without_tracing_in_the_settings_nothing_is_made(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ALL)
    client, broker = stage.opened()
    publish(client, {"traceparent": SAMPLED})
    assert carried(broker) == (SAMPLED, b"x")
    publish(client)
    assert carried(broker) == (None, b"x")
    [session] = stage.running.gateway.sessions.values()
    assert all(observer.part != "traces" for observer in session.observers)
    assert session.relay.up.flows is None


def test_who_traces_nothing_does_not_load_what_it_takes() -> None:
    found = "[name for name in sys.modules if name.startswith('opentelemetry')]"
    script = f"import sys, amqpgate.app.wiring; print({found})"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"
