"""Whole conversations in both roles, told as playbooks."""

from __future__ import annotations

import pytest

from amqpgate.broker.amqp.connection import Connection, LocalProtocolError
from amqpgate.broker.amqp.events import (
    ContentReceived,
    HeaderReceived,
    HeaderRefused,
    HeartbeatReceived,
    MethodReceived,
)
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, encode_frame
from amqpgate.protocol.handshake import ConnectionState, Tune
from amqpgate.protocol.header import HEADER_0_8, HEADER_0_8_AMQPLIB, HEADER_0_9, RABBITMQ_HEADERS
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.dialects import RABBITMQ_0_8
from amqpgate.wire.generated import v0_8
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.broker.amqp.pair import OPEN_OK, PROPERTIES, START, Pair, opened, violation, with_channel
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    CLOSE,
    CLOSE_OK,
    DECLARE,
    HEADER,
    OPEN,
    PUBLISH,
    START_OK,
    TUNE,
    TUNE_OK,
    body,
    broker_at,
    header,
    m,
)


def test_a_conversation_from_header_to_close() -> None:
    pair = Pair()
    assert pair.client_says(pair.client.send_header()) == [HeaderReceived(HEADER, (0, 9, 1))]
    assert pair.server.is_paused
    pair.down(0, START)
    assert not pair.server.is_paused
    pair.up(0, START_OK)
    pair.down(0, amqp.ConnectionSecure(challenge=b"who?"))
    pair.up(0, amqp.ConnectionSecureOk(response=b"me"))
    pair.down(0, amqp.ConnectionSecure(challenge=b"really?"))
    pair.up(0, amqp.ConnectionSecureOk(response=b"yes"))
    pair.down(0, TUNE)
    assert pair.server.is_silent
    pair.up(0, amqp.ConnectionTuneOk(channel_max=10, frame_max=4096, heartbeat=5))
    assert pair.client.tune == pair.server.tune == Tune(frame_max=4096, channel_max=10, heartbeat=5)
    assert not pair.server.is_silent
    pair.up(0, OPEN)
    assert not pair.server.is_open
    pair.down(0, OPEN_OK)
    assert pair.server.is_open
    assert pair.client.is_open

    pair.up(7, CHANNEL_OPEN)
    assert pair.client.open_channels == pair.server.open_channels == (7,)
    pair.down(7, amqp.ChannelOpenOk())
    assert pair.client.open_channels == pair.server.open_channels == (7,)
    payload = bytes(range(256)) * 100
    data = pair.client.send_content(7, PUBLISH, PROPERTIES, payload)
    content = ContentReceived(7, PUBLISH, ContentHeader(60, len(payload), PROPERTIES), payload)
    assert pair.client_says(data) == [content]
    deliver = amqp.BasicDeliver(consumer_tag="c", delivery_tag=1, routing_key="nowhere")
    data = pair.server.send_content(7, deliver, PROPERTIES, b"")
    assert pair.server_says(data) == [ContentReceived(7, deliver, ContentHeader(60, 0, PROPERTIES), b"")]
    pair.up(7, amqp.BasicAck(delivery_tag=1))
    assert pair.client_says(pair.client.send_heartbeat()) == [HeartbeatReceived()]
    pair.up(7, CHANNEL_CLOSE)
    pair.down(7, CHANNEL_CLOSE_OK)
    assert pair.client.open_channels == pair.server.open_channels == ()

    pair.up(0, CLOSE)
    pair.down(0, CLOSE_OK)
    assert pair.client.is_closed
    assert pair.server.is_closed
    assert pair.client_says(HEARTBEAT) == []


def test_a_server_that_closes_during_the_handshake_is_heard() -> None:
    for steps in range(6):
        pair = Pair()
        pair.client_says(pair.client.send_header())
        handshake = [
            (pair.down, START),
            (pair.up, START_OK),
            (pair.down, TUNE),
            (pair.up, TUNE_OK),
            (pair.up, OPEN),
        ]
        for say, method in handshake[:steps]:
            say(0, method)
        refusal = amqp.ConnectionClose(403, "ACCESS_REFUSED - no")
        pair.down(0, refusal)
        pair.up(0, CLOSE_OK)
        assert pair.client.is_closed
        assert pair.server.is_closed


@pytest.mark.parametrize("answers_first", ["client", "server"])
def test_crossing_connection_closes(answers_first: str) -> None:
    pair = with_channel()
    from_client, from_server = pair.client.send(0, CLOSE), pair.server.send(0, CLOSE)
    assert pair.client_says(from_client) == [MethodReceived(0, CLOSE)]
    assert pair.server_says(from_server) == [MethodReceived(0, CLOSE)]
    assert pair.client.state is pair.server.state is ConnectionState.BOTH_CLOSING
    first, second = (pair.up, pair.down) if answers_first == "client" else (pair.down, pair.up)
    first(0, CLOSE_OK)
    assert not pair.client.is_closed
    assert not pair.server.is_closed
    second(0, CLOSE_OK)
    assert pair.client.is_closed
    assert pair.server.is_closed


@pytest.mark.parametrize("answers_first", ["client", "server"])
def test_crossing_channel_closes(answers_first: str) -> None:
    pair = with_channel()
    from_client, from_server = pair.client.send(1, CHANNEL_CLOSE), pair.server.send(1, CHANNEL_CLOSE)
    assert pair.client_says(from_client) == [MethodReceived(1, CHANNEL_CLOSE)]
    assert pair.server_says(from_server) == [MethodReceived(1, CHANNEL_CLOSE)]
    first, second = (pair.up, pair.down) if answers_first == "client" else (pair.down, pair.up)
    first(1, CHANNEL_CLOSE_OK)
    assert pair.client.open_channels == pair.server.open_channels == (1,)
    with pytest.raises(LocalProtocolError, match="second"):
        pair.client.send(1, CHANNEL_OPEN)
    second(1, CHANNEL_CLOSE_OK)
    assert pair.client.open_channels == pair.server.open_channels == ()
    pair.up(1, CHANNEL_OPEN)


def test_what_a_closing_channel_still_receives_is_dropped_and_other_channels_live() -> None:
    pair = with_channel()
    pair.up(2, CHANNEL_OPEN)
    pair.down(2, amqp.ChannelOpenOk())
    pair.down(1, CHANNEL_CLOSE)
    data = m(1, DECLARE) + m(1, PUBLISH) + header(1, 3) + m(2, DECLARE) + body(1, b"abc") + m(1, DECLARE)
    assert pair.client_says(data) == [MethodReceived(2, DECLARE)]
    # The client's side of it: the broker's deliveries after the client's own close.
    pair.up(2, CHANNEL_CLOSE)
    deliver = m(2, amqp.BasicDeliver()) + header(2, 1) + body(2, b"x")
    assert pair.server_says(deliver + m(2, CHANNEL_CLOSE_OK)) == [MethodReceived(2, CHANNEL_CLOSE_OK)]


def test_a_message_under_way_when_its_channel_is_refused_is_swallowed_whole() -> None:
    pair = with_channel()
    assert pair.client_says(m(1, PUBLISH) + header(1, 6) + body(1, b"abc")) == []
    pair.down(1, amqp.ChannelClose(403, "ACCESS_REFUSED - no", 60, 40))
    assert pair.client_says(body(1, b"def") + m(1, CHANNEL_CLOSE_OK)) == [MethodReceived(1, CHANNEL_CLOSE_OK)]
    assert pair.server.open_channels == ()


def test_a_client_may_go_on_before_open_ok() -> None:
    pair = opened()
    data = pair.client.send(1, CHANNEL_OPEN) + pair.client.send(1, DECLARE)
    assert pair.client_says(data) == [MethodReceived(1, CHANNEL_OPEN), MethodReceived(1, DECLARE)]
    with pytest.raises(LocalProtocolError, match="unimplemented"):
        pair.server.send(1, amqp.QueueDeclareOk())
    pair.down(1, amqp.ChannelOpenOk())
    pair.down(1, amqp.QueueDeclareOk())


def test_a_handshake_in_one_go_waits_for_each_answer() -> None:
    server = Connection("server")
    data = HEADER + m(0, START_OK) + m(0, TUNE_OK) + m(0, OPEN) + m(1, CHANNEL_OPEN)
    assert list(server.receive(data)) == [HeaderReceived(HEADER, (0, 9, 1))]
    assert list(server.receive()) == []
    server.send(0, START)
    assert list(server.receive()) == [MethodReceived(0, START_OK)]
    server.send(0, TUNE)
    assert list(server.receive()) == [MethodReceived(0, TUNE_OK), MethodReceived(0, OPEN)]
    assert list(server.receive()) == []
    server.send(0, OPEN_OK)
    assert list(server.receive()) == [MethodReceived(1, CHANNEL_OPEN)]


def test_events_are_lazy_so_that_each_can_be_answered_before_the_next() -> None:
    server = Connection("server")
    told = []
    answers = {HeaderReceived: START, "connection.start-ok": TUNE, "connection.open": OPEN_OK}
    for event in server.receive(HEADER + m(0, START_OK) + m(0, TUNE_OK) + m(0, OPEN) + m(1, CHANNEL_OPEN)):
        key = event.method.NAME if isinstance(event, MethodReceived) else type(event)
        told.append(key)
        if key in answers:
            server.send(0, answers[key])
    assert told == [
        HeaderReceived,
        "connection.start-ok",
        "connection.tune-ok",
        "connection.open",
        "channel.open",
    ]


def test_what_came_before_a_violation_is_reported() -> None:
    server = broker_at("channel").connection
    events = server.receive(m(1, DECLARE) + m(1, CHANNEL_OPEN) + m(1, DECLARE))
    assert next(events) == MethodReceived(1, DECLARE)
    with pytest.raises(ProtocolViolation, match="second"):
        next(events)


def test_a_violation_is_raised_until_the_close_is_sent() -> None:
    server = broker_at("channel").connection
    first = violation(server, m(1, CHANNEL_OPEN))
    assert violation(server, m(1, DECLARE)) is first
    server.send(0, CLOSE)
    assert list(server.receive(m(1, DECLARE) + m(0, CLOSE_OK))) == [MethodReceived(0, CLOSE_OK)]
    assert server.is_closed


def test_garbage_leaves_the_stream_broken() -> None:
    server = broker_at("channel").connection
    assert violation(server, b"\x01" * 20).code == 501
    assert server.is_broken
    server.send(0, CLOSE)
    assert list(server.receive(m(0, CLOSE_OK))) == []
    assert not server.is_closed


def test_garbage_after_a_close_is_no_second_violation() -> None:
    server = broker_at("channel").connection
    server.send(0, CLOSE)
    assert list(server.receive(b"\x01" * 20 + m(0, CLOSE_OK))) == []
    assert server.is_broken


def test_only_a_close_ok_on_channel_0_ends_a_closing_connection() -> None:
    pair = with_channel()
    pair.server.send(0, CLOSE)
    payload = CLOSE_OK.encode()
    for frame in (m(1, CLOSE_OK), encode_frame(2, 0, payload), encode_frame(3, 0, payload)):
        assert pair.client_says(frame) == []
        assert not pair.server.is_closed
    assert pair.client_says(m(0, CLOSE_OK)) == [MethodReceived(0, CLOSE_OK)]
    assert pair.server.is_closed


def test_a_client_hears_that_the_server_speaks_something_else() -> None:
    client = Connection("client")
    client.send_header()
    assert list(client.receive(b"AMQP\x01\x01")) == []
    assert list(client.receive(b"\x00\x0a")) == [HeaderRefused(b"AMQP\x01\x01\x00\x0a", b"")]
    assert client.is_closed


def test_a_server_refuses_headers_that_it_was_not_told_of() -> None:
    assert list(Connection("server").receive(HEADER_0_8)) == [HeaderRefused(HEADER_0_8, HEADER)]
    both = Connection("server", headers=RABBITMQ_HEADERS)
    assert list(both.receive(HEADER_0_8_AMQPLIB)) == [HeaderReceived(HEADER_0_8_AMQPLIB, (0, 8, 0))]
    assert both.dialect is RABBITMQ_0_8


def test_the_0_9_header_starts_0_9_1_as_on_rabbitmq() -> None:
    assert list(Connection("server").receive(HEADER_0_9)) == [HeaderReceived(HEADER_0_9, (0, 9, 1))]


def test_0_8_closes_with_other_numbers() -> None:
    client, server = Connection("client", RABBITMQ_0_8), Connection("server", RABBITMQ_0_8)
    assert list(server.receive(client.send_header())) == [HeaderReceived(HEADER_0_8, (0, 8, 0))]
    for sender, receiver, method in (
        (server, client, v0_8.ConnectionStart(version_major=8)),
        (client, server, v0_8.ConnectionStartOk(mechanism="AMQPLAIN")),
        (server, client, v0_8.ConnectionTune(10, 8192, 0)),
        (client, server, v0_8.ConnectionTuneOk(0, 0, 0)),
        (client, server, v0_8.ConnectionOpen(virtual_host="/")),
        (server, client, v0_8.ConnectionRedirect(host="elsewhere")),
        (client, server, v0_8.ConnectionClose(reply_code=200)),
        (server, client, v0_8.ConnectionCloseOk()),
    ):
        data = sender.send(0, method)
        assert list(receiver.receive(data)) == [MethodReceived(0, method)]
    assert data[7:11] == b"\x00\x0a\x00\x3d"
    assert server.tune == Tune(frame_max=8192, channel_max=10, heartbeat=0)
    assert client.is_closed


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (m(0, START), 504),
        (m(0, START_OK), 504),
        (m(1, amqp.ChannelOpenOk()), 503),
        (m(1, PUBLISH), 503),
        (m(1, CHANNEL_OPEN), 503),
        (m(1, DECLARE), 503),
        (m(2, amqp.BasicDeliver()), 504),
        (m(1, CHANNEL_CLOSE_OK), 503),
        (header(1, 0), 505),
        (m(1, amqp.BasicDeliver()) + m(1, amqp.BasicAck()), 505),
        (encode_frame(8, 1, b""), 505),
        (encode_frame(5, 0, b""), 501),
    ],
)
def test_a_client_notices_a_broker_that_breaks_the_protocol(data: bytes, code: int) -> None:
    assert violation(with_channel().client, data).code == code


def test_passwords_are_in_no_repr() -> None:
    for method in (
        START_OK,
        amqp.ConnectionSecureOk(response=b"guest"),
        amqp.ConnectionUpdateSecret(new_secret=b"guest"),
    ):
        assert repr(MethodReceived(0, method)) == f"MethodReceived(channel=0, method=<{method.NAME}>)"
    assert "nowhere" in repr(MethodReceived(1, PUBLISH))
