"""Messages put together: what is kept, what is not, and where it ends."""

from __future__ import annotations

import pytest

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.content import ReceivedContent
from amqpgate.broker.amqp.events import ContentReceived, MethodReceived
from amqpgate.broker.amqp.limits import ConnectionLimits
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    CLOSE,
    DECLARE,
    PUBLISH,
    body,
    broker_at,
    header,
    m,
)

EMPTY = amqp.BasicProperties()


def received(size: int, payload: bytes, channel: int = 1) -> ContentReceived:
    return ContentReceived(channel, PUBLISH, ContentHeader(60, size, EMPTY), payload)


def server(limits: ConnectionLimits | None = None) -> Connection:
    return broker_at("channel", limits).connection


def violation(connection: Connection, data: bytes) -> ProtocolViolation:
    with pytest.raises(ProtocolViolation) as caught:
        list(connection.receive(data))
    return caught.value


@pytest.mark.parametrize(
    "pieces",
    [[b"abcdef"], [b"abc", b"def"], [b"", b"abcdef"], [b"a", b"", b"bcde", b"f"], [b"a"] + [b"b"] * 5],
)
def test_a_body_in_any_number_of_frames(pieces: list[bytes]) -> None:
    connection = server()
    data = m(1, PUBLISH) + header(1, 6) + b"".join(body(1, piece) for piece in pieces)
    (event,) = connection.receive(data)
    assert event == received(6, b"".join(pieces))
    assert type(event.body) is bytes


def test_no_body_is_complete_with_its_header() -> None:
    assert list(server().receive(m(1, PUBLISH) + header(1, 0))) == [received(0, b"")]


def test_nothing_is_reported_before_the_last_byte() -> None:
    connection = server()
    data = m(1, PUBLISH) + header(1, 3) + body(1, b"abc")
    assert list(connection.receive(data[:-1])) == []
    assert list(connection.receive(data[-1:])) == [received(3, b"abc")]


def test_messages_on_several_channels_at_once() -> None:
    connection = server()
    list(connection.receive(m(2, CHANNEL_OPEN)))
    data = (
        m(1, PUBLISH),
        m(2, PUBLISH),
        header(2, 2),
        header(1, 2),
        body(1, b"a"),
        body(2, b"cd"),
        body(1, b"b"),
    )
    assert list(connection.receive(b"".join(data))) == [received(2, b"cd", 2), received(2, b"ab", 1)]


def test_a_body_above_the_limit_costs_its_channel_and_is_not_kept() -> None:
    connection = server(ConnectionLimits(body=10))
    assert list(connection.receive(m(1, PUBLISH) + header(1, 10) + body(1, bytes(10)))) == [
        received(10, bytes(10))
    ]
    error = violation(connection, m(1, PUBLISH) + header(1, 11) + body(1, bytes(11)) + m(1, DECLARE))
    assert (error.code, error.scope, error.channel) == (406, "channel", 1)
    assert (error.class_id, error.method_id) == (60, 40)
    assert error.text == "message size 11 is larger than configured max size 10"
    connection.send(1, amqp.ChannelClose(406, error.reply_text, 60, 40))
    assert list(connection.receive(m(1, CHANNEL_CLOSE_OK))) == [MethodReceived(1, CHANNEL_CLOSE_OK)]


def test_after_a_body_above_the_limit_the_connection_goes_on_even_if_nobody_closes_the_channel() -> None:
    connection = server(ConnectionLimits(body=10))
    violation(connection, m(1, PUBLISH) + header(1, 11))
    data = body(1, bytes(11)) + m(1, PUBLISH) + header(1, 1) + body(1, b"x")
    assert list(connection.receive(data)) == [received(1, b"x")]


def test_unfinished_messages_of_all_channels_have_one_limit() -> None:
    connection = server(ConnectionLimits(body_total=10))
    list(connection.receive(m(2, CHANNEL_OPEN)))
    half = m(1, PUBLISH) + header(1, 9) + body(1, bytes(6)) + m(2, PUBLISH) + header(2, 9)
    assert list(connection.receive(half)) == []
    assert list(connection.receive(body(2, bytes(4)))) == []
    error = violation(connection, body(2, b"x"))
    assert (error.code, error.scope) == (506, "connection")


def test_finished_refused_and_closed_messages_count_no_more() -> None:
    connection = server(ConnectionLimits(body_total=10))
    for _ in range(3):
        data = m(1, PUBLISH) + header(1, 10) + body(1, bytes(5)) + body(1, bytes(5))
        assert list(connection.receive(data)) == [received(10, bytes(10))]
    for _ in range(3):
        list(connection.receive(m(1, PUBLISH) + header(1, 9) + body(1, bytes(8))))
        connection.send(1, CHANNEL_CLOSE)
        list(connection.receive(body(1, bytes(1)) + m(1, CHANNEL_CLOSE_OK) + m(1, CHANNEL_OPEN)))
        connection.send(1, amqp.ChannelOpenOk())
    data = m(1, PUBLISH) + header(1, 10) + body(1, bytes(10))
    assert list(connection.receive(data)) == [received(10, bytes(10))]


def test_what_is_dropped_is_not_kept() -> None:
    connection = server(ConnectionLimits(body_total=10, body=10))
    connection.send(1, CHANNEL_CLOSE)
    dropped = m(1, PUBLISH) + header(1, 1000) + body(1, bytes(500)) + body(1, bytes(500))
    assert list(connection.receive(dropped * 3 + m(0, CLOSE))) == [MethodReceived(0, CLOSE)]


def test_malformed_properties_are_541_as_on_rabbitmq() -> None:
    data = encode_frame(2, 1, b"\x00\x3c\x00\x00" + bytes(8) + b"\x80\x00\x05a")
    error = violation(server(), m(1, PUBLISH) + data)
    assert (error.code, error.scope, error.channel) == (541, "connection", 1)


def test_a_header_of_fewer_than_twelve_bytes_is_no_header() -> None:
    error = violation(server(), m(1, PUBLISH) + encode_frame(2, 1, bytes(11)))
    assert (error.code, error.text) == (501, "type 2, 11 bytes: unknown_frame")


def test_many_small_bodies_take_no_more_memory_than_their_bytes() -> None:
    content = ReceivedContent(1, 60, 40, PUBLISH)
    content.add_header(
        b"\x00\x3c\x00\x00" + (100_000).to_bytes(8, "big") + b"\x00\x00", RABBITMQ_0_9_1, 1 << 20
    )
    for _ in range(99_999):
        assert not content.add_body(b"x")
    assert content.held == 99_999
    assert content.add_body(b"x")
    assert content.body() == b"x" * 100_000


def test_bodies_are_not_in_the_repr() -> None:
    assert "abc" not in repr(received(3, b"abc"))
    content = ReceivedContent(1, 60, 40, PUBLISH)
    content.add_header(header(1, 6)[7:-1], RABBITMQ_0_9_1, 10)
    content.add_body(b"abc")
    assert "abc" not in repr(content)
