"""Each rule on clients is kept by an ordinary conversation, and broken by one that breaks it."""

from __future__ import annotations

import pytest

from amqpgate.conformance.client.findings import KEPT, ClientFindings
from amqpgate.conformance.client.watch import ClientWatch
from amqpgate.conformance.peer import BODY, HEADER, HEARTBEAT, METHOD
from amqpgate.conformance.versions import VERSIONS
from amqpgate.protocol.frames import Frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

PROPERTIES = Table.of(dict.fromkeys(("product", "version", "platform", "copyright", "information"), "x"))
START = amqp.ConnectionStart(0, 9, Table(), b"PLAIN", b"en_US")
START_OK = amqp.ConnectionStartOk(PROPERTIES, "PLAIN", b"\0guest\0guest", "en_US")
TUNE = amqp.ConnectionTune(10, 8192, 60)
#: A method with a channel before it: the client's. A tuple: the broker's.
Said = tuple[int, Method] | Frame

HANDSHAKE: tuple[Said, ...] = (
    (0, START_OK),
    (0, amqp.ConnectionTuneOk(10, 8192, 0)),
    (0, amqp.ConnectionOpen("/")),
    (1, amqp.ChannelOpen()),
)


def header(size: int, class_id: int = 60, weight: int = 0, **properties: object) -> Frame:
    payload = encode_header(ContentHeader(class_id, size, amqp.BasicProperties(**properties)))  # type: ignore[arg-type]
    return Frame(HEADER, 1, payload[:2] + weight.to_bytes(2, "big") + payload[4:])


def body(size: int, channel: int = 1) -> Frame:
    return Frame(BODY, channel, b"x" * size)


PUBLISH = (1, amqp.BasicPublish())
BYE = (0, amqp.ConnectionClose(200))


def watch(*said: Said, handshake: tuple[Said, ...] = HANDSHAKE) -> dict[str, str]:
    findings = ClientFindings()
    watched = ClientWatch(findings, VERSIONS["0-9-1"])
    for method in (START, TUNE):
        watched.told(0, method)
    for one in (*handshake, *said):
        frame = one if isinstance(one, Frame) else Frame(METHOD, one[0], one[1].encode())
        watched.heard(frame)
        if 1 in watched.channels and not watched.channels[1].highest:
            # One that is to be settled, and one that is not.
            watched.channels[1].delivered(1, no_ack=False)
            watched.channels[1].delivered(2, no_ack=True)
    watched.ended()
    return findings.outcomes


def broken(*said: Said, handshake: tuple[Said, ...] = HANDSHAKE) -> set[str]:
    return {rule for rule, seen in watch(*said, handshake=handshake).items() if seen != KEPT}


def test_an_ordinary_conversation_keeps_them() -> None:
    said = watch(
        PUBLISH,
        header(8190, delivery_mode=2, priority=9),
        body(8184),
        body(6),
        (1, amqp.BasicAck(1)),
        (1, amqp.BasicConsume(queue="q", consumer_tag="t")),
        (1, amqp.QueueDeclare(queue="amq.gen-x")),
        (1, amqp.ExchangeDeclare(exchange="mine")),
        (1, amqp.ConfirmSelect()),
        Frame(HEARTBEAT, 0, b""),
        (1, amqp.ChannelClose(200)),
        BYE,
    )
    assert {rule: seen for rule, seen in said.items() if seen != KEPT} == {}
    assert len(said) >= 30


BREAKS: list[tuple[str, tuple[Said, ...]]] = [
    ("framing.frame-max", (PUBLISH, header(8192), body(8192), BYE)),
    ("framing.heartbeat", (Frame(HEARTBEAT, 1, b""), BYE)),
    ("framing.heartbeat", (Frame(HEARTBEAT, 0, b"x"), BYE)),
    ("framing.channel.class", ((0, amqp.BasicQos()), BYE)),
    ("framing.channel.class", ((1, amqp.ConnectionClose(200)), BYE)),
    ("framing.method.known", (Frame(METHOD, 1, b"\x01\x02\x03\x04"), BYE)),
    ("framing.method.known", ((1, amqp.BasicQosOk()), BYE)),
    ("framing.method.fields", (Frame(METHOD, 1, amqp.BasicQos().encode() + b"x"), BYE)),
    ("framing.method.reserved", ((1, amqp.BasicGet(1, "q")), BYE)),
    ("channel.open.channel-max", ((11, amqp.ChannelOpen()), BYE)),
    ("channel.open.first", ((2, amqp.BasicQos()), BYE)),
    ("channel.open.reuse", ((1, amqp.ChannelOpen()), BYE)),
    ("channel.open.reuse", ((1, amqp.ChannelClose(200)), (1, amqp.ChannelOpen()), BYE)),
    ("channel.close.last", ((1, amqp.ChannelClose(200)), (1, amqp.BasicQos()), BYE)),
    ("connection.close.last", (BYE, (1, amqp.BasicQos()))),
    ("connection.close.said", ()),
    ("content.order", (PUBLISH, header(3), (1, amqp.BasicQos()), BYE)),
    ("content.order", (PUBLISH, body(1), BYE)),
    ("content.header.class", (PUBLISH, Frame(HEADER, 1, b"\0\x0a" + header(0).payload[2:]), BYE)),
    ("content.header.weight", (PUBLISH, header(0, weight=1), BYE)),
    ("content.header.properties", (PUBLISH, Frame(HEADER, 1, header(0).payload + b"x"), BYE)),
    ("content.header.delivery-mode", (PUBLISH, header(0, delivery_mode=3), BYE)),
    ("content.header.priority", (PUBLISH, header(0, priority=10), BYE)),
    ("content.body-size", (PUBLISH, header(2), body(3), BYE)),
    ("basic.ack.known", ((1, amqp.BasicAck(3)), BYE)),
    ("basic.ack.known", ((1, amqp.BasicReject(0)), BYE)),
    ("basic.ack.once", ((1, amqp.BasicAck(1)), (1, amqp.BasicNack(1)), BYE)),
    ("basic.ack.no-ack", ((1, amqp.BasicAck(2)), BYE)),
    (
        "basic.consume.tag",
        ((1, amqp.BasicConsume(consumer_tag="t")), (1, amqp.BasicConsume(consumer_tag="t")), BYE),
    ),
    ("queue.declare.reserved", ((1, amqp.QueueDeclare(queue="amq.mine")), BYE)),
    ("exchange.declare.reserved", ((1, amqp.ExchangeDeclare(exchange="amq.mine")), BYE)),
    ("confirm.select.tx", ((1, amqp.TxSelect()), (1, amqp.ConfirmSelect()), BYE)),
]


@pytest.mark.parametrize(("rule", "said"), BREAKS)
def test_each_is_broken_by_what_breaks_it(rule: str, said: tuple[Said, ...]) -> None:
    # A class of its own has properties of its own, and a method that is not taken leaves its channel open.
    assert broken(*said) - {"content.header.properties"} == {rule} - {"content.header.properties"}
    assert rule in broken(*said)


@pytest.mark.parametrize(
    ("rule", "at", "said"),
    [
        ("connection.start-ok.mechanism", 0, amqp.ConnectionStartOk(PROPERTIES, "X", b"", "en_US")),
        ("connection.start-ok.response", 0, amqp.ConnectionStartOk(PROPERTIES, "PLAIN", b"guest", "en_US")),
        ("connection.start-ok.locale", 0, amqp.ConnectionStartOk(PROPERTIES, "PLAIN", b"\0a\0b", "de_DE")),
        (
            "connection.start-ok.client-properties",
            0,
            amqp.ConnectionStartOk(Table(), "PLAIN", b"\0a\0b", "en_US"),
        ),
        ("connection.tune-ok.channel-max", 1, amqp.ConnectionTuneOk(0, 8192, 0)),
        ("connection.tune-ok.channel-max", 1, amqp.ConnectionTuneOk(11, 8192, 0)),
        ("connection.tune-ok.frame-max", 1, amqp.ConnectionTuneOk(10, 8193, 0)),
        ("connection.tune-ok.frame-max", 1, amqp.ConnectionTuneOk(10, 4095, 0)),
    ],
)
def test_handshakes_that_break_one(rule: str, at: int, said: Method) -> None:
    handshake = list(HANDSHAKE)
    handshake[at] = (0, said)
    assert broken(BYE, handshake=tuple(handshake)) == {rule}


def test_the_order_of_a_handshake() -> None:
    assert "connection.order" in broken(BYE, handshake=((0, START_OK), (0, amqp.ConnectionOpen("/"))))


def test_what_comes_after_the_brokers_close_does_not_count() -> None:
    findings = ClientFindings()
    watched = ClientWatch(findings, VERSIONS["0-9-1"])
    watched.told(0, amqp.ConnectionClose(320))
    watched.heard(Frame(METHOD, 7, amqp.BasicQos().encode()))
    assert set(findings.outcomes.values()) <= {KEPT}


def test_closes_may_cross() -> None:
    findings = ClientFindings()
    watched = ClientWatch(findings, VERSIONS["0-9-1"])
    for channel, method in (
        (0, START_OK),
        (0, amqp.ConnectionTuneOk(0, 8192, 0)),
        (0, amqp.ConnectionOpen("/")),
    ):
        watched.heard(Frame(METHOD, channel, method.encode()))
    watched.heard(Frame(METHOD, 1, amqp.ChannelOpen().encode()))
    watched.heard(Frame(METHOD, 1, amqp.ChannelClose(200).encode()))
    watched.told(1, amqp.ChannelClose(406))
    watched.told(1, amqp.ChannelCloseOk())
    watched.heard(Frame(METHOD, 1, amqp.ChannelCloseOk().encode()))
    watched.heard(Frame(METHOD, 1, amqp.ChannelOpen().encode()))
    assert findings.outcomes["channel.open.reuse"] == findings.outcomes["channel.close.last"] == KEPT
    assert findings.outcomes["channel.open.first"] == KEPT
