"""Every split of the byte stream gives the same events and the same answers.

Three ways to cut: byte by byte, at each single place, and at places that Hypothesis chooses.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import Event
from amqpgate.protocol.frames import HEARTBEAT, encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.unit.broker.amqp.playbook import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    CLOSE,
    CLOSE_OK,
    DECLARE,
    HEADER,
    MISSING,
    OPEN,
    PUBLISH,
    START_OK,
    TUNE,
    TUNE_OK,
    PlaybookBroker,
    body,
    header,
    m,
)

HANDSHAKE = HEADER + m(0, START_OK) + m(0, TUNE_OK) + m(0, OPEN)
CHANNEL = HANDSHAKE + m(1, CHANNEL_OPEN)
MESSAGE = content_frames(
    1,
    PUBLISH,
    amqp.BasicProperties(content_type="text/plain", headers=Table.of({"a": 1, "b": [True, "x"]})),
    b"hello, world",
    frame_max=13,
)

#: What clients say, from the first octet on; the broker of the playbook answers.
UP = {
    "handshake": HANDSHAKE,
    "handshake with heartbeats": HEARTBEAT.join([HEADER + m(0, START_OK), m(0, TUNE_OK), m(0, OPEN), b""]),
    "refused header": b"AMQP\x00\x01\x00\x00",
    "closed in the handshake": HEADER + m(0, START_OK) + m(0, CLOSE),
    "handshake out of order": HEADER + m(0, TUNE_OK),
    "opened and closed": CHANNEL + m(1, CHANNEL_CLOSE) + m(0, CLOSE),
    "message": CHANNEL + MESSAGE + m(1, DECLARE),
    "empty message": CHANNEL + m(1, PUBLISH) + header(1, 0) + m(1, DECLARE),
    "interleaved messages": CHANNEL
    + m(9, CHANNEL_OPEN)
    + m(1, PUBLISH)
    + m(9, PUBLISH)
    + HEARTBEAT
    + header(9, 2)
    + header(1, 2)
    + body(9, b"c")
    + body(1, b"ab")
    + body(9, b"d"),
    "channel error and a new start": CHANNEL
    + m(1, MISSING)
    + MESSAGE
    + m(1, CHANNEL_CLOSE_OK)
    + m(1, CHANNEL_OPEN)
    + MESSAGE,
    "body too long": CHANNEL + m(1, PUBLISH) + header(1, 1) + body(1, b"ab") + m(0, CLOSE_OK),
    "method within a message": CHANNEL + m(1, PUBLISH) + m(1, DECLARE) + m(0, CLOSE_OK),
    "bad end octet": HANDSHAKE + m(1, CHANNEL_OPEN)[:-1] + b"\x00" + m(0, CLOSE_OK),
    "unknown type": HANDSHAKE + encode_frame(7, 0, b"abc") + m(0, CLOSE_OK),
}

DELIVER = content_frames(
    1, amqp.BasicDeliver(consumer_tag="c", delivery_tag=1), amqp.BasicProperties(), b"hello, world", 12
)
START = m(0, amqp.ConnectionStart(version_minor=9, mechanisms=b"PLAIN AMQPLAIN", locales=b"en_US"))

#: What brokers say; the client has asked for it all beforehand, as far as it may.
DOWN = {
    "handshake": START + m(0, TUNE) + m(0, amqp.ConnectionOpenOk()),
    "challenges": START + m(0, amqp.ConnectionSecure(challenge=b"?")) * 2 + m(0, TUNE),
    "refused": START + m(0, amqp.ConnectionClose(403, "ACCESS_REFUSED - no")),
    "another header": b"AMQP\x01\x01\x00\x0a",
    "messages": START
    + m(0, TUNE)
    + m(0, amqp.ConnectionOpenOk())
    + m(1, amqp.ChannelOpenOk())
    + HEARTBEAT
    + DELIVER
    + m(0, amqp.ConnectionBlocked(reason="low on memory"))
    + DELIVER
    + m(1, CHANNEL_CLOSE),
}


def broker_hears(pieces: list[bytes]) -> tuple[list[Event], list[str], bool]:
    broker = PlaybookBroker().hear(*pieces)
    return broker.events, broker.said, broker.connection.is_closed


def client_hears(pieces: list[bytes]) -> list[Event]:
    client = Connection("client")
    client.send_header()
    answers = {
        "connection.start": ((0, START_OK),),
        "connection.secure": ((0, amqp.ConnectionSecureOk()),),
        "connection.tune": ((0, TUNE_OK), (0, OPEN)),
        "connection.open-ok": ((1, CHANNEL_OPEN),),
        "connection.close": ((0, CLOSE_OK),),
        "channel.close": ((1, CHANNEL_CLOSE_OK),),
    }
    events = []
    for piece in pieces:
        for event in client.receive(piece):
            events.append(event)
            for channel, method in answers.get(getattr(getattr(event, "method", None), "NAME", ""), ()):
                client.send(channel, method)
    return events


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


@pytest.mark.parametrize("name", UP)
def test_what_a_client_says_byte_by_byte(name: str) -> None:
    data = UP[name]
    assert broker_hears(cut(data, list(range(len(data))))) == broker_hears([data])


@pytest.mark.parametrize("name", UP)
def test_what_a_client_says_cut_at_each_place(name: str) -> None:
    data = UP[name]
    whole = broker_hears([data])
    for place in range(len(data)):
        assert broker_hears(cut(data, [place])) == whole


@given(st.sampled_from(list(UP)), st.lists(st.integers(0, 10_000)))
def test_what_a_client_says_cut_anywhere(name: str, places: list[int]) -> None:
    assert broker_hears(cut(UP[name], places)) == broker_hears([UP[name]])


@pytest.mark.parametrize("name", DOWN)
def test_what_a_broker_says_byte_by_byte_and_cut_at_each_place(name: str) -> None:
    data = DOWN[name]
    whole = client_hears([data])
    assert client_hears(cut(data, list(range(len(data))))) == whole
    for place in range(len(data)):
        assert client_hears(cut(data, [place])) == whole


@given(st.sampled_from(list(DOWN)), st.lists(st.integers(0, 10_000)))
def test_what_a_broker_says_cut_anywhere(name: str, places: list[int]) -> None:
    assert client_hears(cut(DOWN[name], places)) == client_hears([DOWN[name]])


def test_the_conversations_are_not_empty() -> None:
    """The comparisons above would hold between silences, too."""
    told = {name: len(broker_hears([data])[0]) for name, data in UP.items()}
    assert told == {
        "handshake": 4,
        "handshake with heartbeats": 7,
        "refused header": 1,
        "closed in the handshake": 3,
        "handshake out of order": 1,
        "opened and closed": 7,
        "message": 7,
        "empty message": 7,
        "interleaved messages": 9,
        "channel error and a new start": 9,
        "body too long": 6,
        "method within a message": 6,
        "bad end octet": 4,
        "unknown type": 5,
    }
    assert {name: len(client_hears([data])) for name, data in DOWN.items()} == {
        "handshake": 3,
        "challenges": 4,
        "refused": 2,
        "another header": 1,
        "messages": 9,
    }
