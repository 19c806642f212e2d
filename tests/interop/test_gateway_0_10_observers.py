"""Who looks on at clients of AMQP 0-10 sees what they do: records, spans, taps, rows, copies."""

from __future__ import annotations

import base64
from pathlib import Path

from amqpgate.gateway.observers.tap.taps import TapRequest
from amqpgate.operator.sessions import sessions
from amqpgate.policy.engine.taps import parse
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.events import EventSubscriber, EventText
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.clients_0_10 import POLICY, Make, make, opened, queue
from tests.support.audit import records, setting, sums
from tests.support.client_0_10 import Client010, headers
from tests.support.inprocess import InProcess, eventually
from tests.support.otlp import Collector
from tests.support.rabbitmq import RabbitMQ
from tests.support.said_0_10 import Splitter
from tests.support.talk_0_10 import E, b, e, frame
from tests.support.talker import Talker

__all__ = ["make", "queue"]

TRACE = POLICY % "TracePolicy" + "  rules: [{id: all, operations: ['*'], ratio: 1}]\n"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def found(running: InProcess, **where: str) -> list[dict[str, JSON]]:
    """The rows of sessions that `amqpgate sessions` shows."""
    told = running.ask(lambda: sessions(running.gateway, {"where": where, "sort": "id", "most": 10}))
    assert isinstance(told, dict)
    return told["sessions"]  # type: ignore[return-value]


def test_sessions_are_shown_with_their_version(make: Make, queue: str) -> None:
    running = make()
    properties = {"product": "qpid python client", "qpid.client_process": "orders"}
    with opened(running, properties=properties) as (_, session), running.dial() as other:
        other.open()
        session.declare(queue, auto_delete=True)
        session.subscribe(queue)
        session.publish(b"x" * 10, queue)
        session.get()
        (row,) = found(running, version="0-10")
        assert (row["version"], row["upstream_version"]) == ("0-10", "0-9-1")
        assert (row["user"], row["vhost"], row["product"]) == ("guest", "/", "qpid python client")
        assert (row["consumers"], row["flow"]) == (1, "running")
        assert (row["published"], row["published_bytes"]) == (1, 10)
        assert (row["delivered"], row["delivered_bytes"]) == (1, 10)
        (row,) = found(running, version="0-9-1")
        assert row["version"] == "0-9-1"
        versions = running.ask(running.gateway.totals).versions
        assert versions["0-10", "0-9-1"] == versions["0-9-1", "0-9-1"] == sum(versions.values()) / 2 == 1
        other.bye()


def test_records_say_which_version_the_client_speaks(make: Make, queue: str, tmp_path: Path) -> None:
    running = make(more=setting(tmp_path / "audit", 3600))
    with opened(running) as (client, session), running.dial() as other:
        other.open()
        session.declare(queue, auto_delete=True)
        for _ in range(3):
            session.publish(b"x" * 10, queue)
        session.subscribe(queue)
        session.get()
        session.detach()
        client.end()
        other.bye()
    running.wait_idle()
    running.stop()
    usage = records(tmp_path / "audit", "usage")
    assert {one["amqp_version"] for one in usage} == {"0-10", "0-9-1"}
    of_client = [one for one in usage if one["amqp_version"] == "0-10"]
    counted = sums(of_client, "operation", "exchange", "routing_key", "queue")
    assert counted["basic.publish", "", queue, None] == (3, 30)
    assert counted["queue.declare", None, None, queue] == (2, 0)
    assert counted["basic.consume", None, None, queue] == (1, 0)
    delivered = [one for one in of_client if one["operation"] == "basic.deliver"]
    assert sum(int(str(one["messages"])) for one in delivered) == 3
    events = records(tmp_path / "audit", "events")
    ended = {(one["kind"], one["amqp_version"]) for one in events if one["session"] is not None}
    assert {("session.open", "0-10"), ("session.close", "0-10"), ("session.open", "0-9-1")} <= ended


def test_what_a_client_claims_of_a_size_counts_for_nothing(make: Make, queue: str, tmp_path: Path) -> None:
    """content-length is the client's word; what has come is what is published, limited and recorded."""
    running = make(more=setting(tmp_path / "audit", 3600), limits=", maxMessageBytes: 10")
    with opened(running) as (client, session):
        session.declare(queue, auto_delete=True)
        for claimed in (0, 1 << 20, (1 << 64) - 1):
            session.publish(b"12345", queue, properties=amqp.MessageProperties(content_length=claimed))
        session.subscribe(queue)
        for _ in range(3):
            message = session.get()
            assert message.body == b"12345"
            claims = message.properties or amqp.MessageProperties()
            assert claims.content_length in (None, 5)
        session.detach()
        client.end()
    running.wait_idle()
    running.stop()
    counted = sums(records(tmp_path / "audit", "usage"), "operation")
    assert counted["basic.publish",] == (3, 15)


def test_a_trace_goes_through_and_is_begun(make: Make, queue: str) -> None:
    with Collector() as collector:
        running = make(TRACE, more=f"tracing: {{endpoint: '{collector.endpoint}', interval: 20ms}}")
        with opened(running) as (client, session):
            session.declare(queue, auto_delete=True)
            session.publish(b"x", queue, properties=headers(traceparent=TRACEPARENT))
            session.publish(b"y", queue)
            session.subscribe(queue)
            one, two = session.get(), session.get()
            session.accept(one, two)
            session.detach()
            client.end()
        running.wait_idle()
        deliver = f"deliver {queue}"
        collector.wait_until(lambda: len(collector.named(deliver)) == 2)
        running.stop()
        published = {span.trace for span in collector.named("publish amq.default")}
        assert {span.trace for span in collector.named(deliver)} == published
    assert one.headers["traceparent"] == TRACEPARENT.encode()
    begun = two.headers["traceparent"]
    assert isinstance(begun, bytes)
    assert published == {TRACEPARENT.split("-")[1], begun.decode().split("-")[1]}


def test_taps_show_its_own_frames(make: Make, queue: str) -> None:
    """What a tap shows is what policies judge; frames of it are 0-10's, which Wireshark reads."""
    running = make()
    subscriber = EventSubscriber()
    registry = running.gateway.observers.taps
    request = TapRequest(match=parse(""), frames=True, asker={"by": "test"})
    tap = running.call(lambda: registry.open(request, subscriber))
    with opened(running) as (client, session):
        session.declare(queue, auto_delete=True)
        session.publish(b"x" * 10, queue)
        session.subscribe(queue)
        session.get()
        client.end()
    running.wait_idle()
    running.call(lambda: registry.close(tap))
    lines = running.call(lambda: taken(subscriber))
    assert {line["amqp_version"] for line in lines} == {"0-10"}
    shown = {}
    for line in lines:
        frames = base64.b64decode(str(line["frames"]))
        # A body is not shown, and is what is missing.
        if line["operation"] in ("basic.publish", "basic.deliver"):
            frames += frame(E | b | e, 3, b"x" * 10, channel=int(str(line["channel"])))
        for sent in Splitter(header=False).feed(frames):
            shown[line["operation"], type(sent.command)] = sent
    assert set(shown) == {
        ("queue.declare", amqp.QueueDeclare),
        ("queue.declare", amqp.QueueQuery),
        ("basic.publish", amqp.MessageTransfer),
        ("basic.consume", amqp.MessageSubscribe),
        ("basic.deliver", amqp.MessageTransfer),
    }
    published = shown["basic.publish", amqp.MessageTransfer]
    assert published.structs is not None
    assert published.structs[0] == amqp.DeliveryProperties(routing_key=queue.encode())


def taken(subscriber: EventSubscriber) -> list[dict[str, JSON]]:
    """What a tap was shown."""
    found: list[JSON] = []
    while (item := subscriber.at_hand()) is not None:
        # Text is what is captured, and that has no frames.
        assert not isinstance(item[1], EventText)
        found.append(item[1])
    return [item for item in found if isinstance(item, dict) and item["event"] == "operation"]


def test_mirrors_get_what_is_published(make: Make, queue: str, rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    mirrored = "m-" + queue
    rabbitmq.fresh_vhost(mirrored)
    route = f"""
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {{name: p}}
spec:
  routes:
  - id: r
    match: {{vhosts: [/]}}
    upstream:
      cluster: broker
      mirror: {{cluster: broker, vhost: {mirrored}, user: guest, passwordFile: pw}}
"""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "pw").write_text("guest")
    with Talker.dial(rabbitmq.port) as green:
        green.open(vhost=mirrored)
        green.ask(v0_9_1.QueueDeclare(queue=queue), v0_9_1.QueueDeclareOk, 1)
        running = make(route)
        with opened(running, vhost="/") as (_, session):
            session.declare(queue, auto_delete=True)
            session.publish(b"copied", queue, properties=headers(a="b"))
            passive = v0_9_1.QueueDeclare(queue=queue, passive=True)
            eventually(lambda: green.ask(passive, v0_9_1.QueueDeclareOk, 1).message_count == 1)
            green.say(v0_9_1.BasicGet(queue=queue), 1)
            message = green.expect_content(v0_9_1.BasicGetOk)
            assert message.body == b"copied"
        running.stop()
        green.bye()
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{mirrored}">>, <<"guest">>).')


def test_who_fails_to_log_in_is_told_of(make: Make) -> None:
    running = make()
    with Client010.dial(running.port()) as client:
        client.greet()
        client.say(amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0wrong", locale=b"en_US"))
        assert client.expect_close().code == 403
        client.expect_end()
    running.wait_idle()
    assert running.outcomes() == {"refused": 1}
