"""What comes before AMQP: PROXY headers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from amqpgate.protocol.proxy_header import PeerAddress
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.proxy_header import encode_v1, encode_v2
from tests.support.talker import Gone, Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

SOURCE = PeerAddress("203.0.113.7", 51234)
SOURCE_6 = PeerAddress("2001:db8::7", 51234)
HERE = PeerAddress("198.51.100.1", 5672)
HERE_6 = PeerAddress("2001:db8::1", 5672)


def introduced(client: Talker, broker: Talker) -> str:
    """Log in; the address of the client that the broker is told."""
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
    heard = broker.expect(amqp.ConnectionStartOk).client_properties.to_python()
    return str(heard["amqpgate"]["client_address"])


# -- PROXY protocol ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "header", "address"),
    [
        ("v1", encode_v1(SOURCE, HERE), "203.0.113.7:51234"),
        ("any", encode_v1(SOURCE_6, HERE_6), "[2001:db8::7]:51234"),
        ("v2", encode_v2(SOURCE, HERE), "203.0.113.7:51234"),
        ("any", encode_v2(SOURCE_6, HERE_6, b"\x04\0\1\0"), "[2001:db8::7]:51234"),
        ("v1", encode_v1(None, None), None),
        ("v2", encode_v2(None, None), None),
    ],
)
def test_the_broker_hears_where_the_client_really_is(
    make_stage: MakeStage, accepted: str, header: bytes, address: str | None
) -> None:
    stage = make_stage(listener=f"proxyProtocol: {accepted}")
    client, broker = stage.greeted(first=header)
    host, port = client.sock.getsockname()
    assert introduced(client, broker) == (address or f"{host}:{port}")


def test_a_proxy_header_byte_by_byte(make_stage: MakeStage) -> None:
    stage = make_stage(listener="proxyProtocol: v2")
    client = stage.client()
    for octet in encode_v2(SOURCE, HERE, b"\x04\0\1\0") + amqp.PROTOCOL_HEADER:
        client.raw(bytes([octet]))
    broker = stage.broker()
    broker.greet()
    client.expect(amqp.ConnectionStart)
    assert introduced(client, broker) == "203.0.113.7:51234"


@pytest.mark.parametrize(
    ("accepted", "data"),
    [
        ("any", amqp.PROTOCOL_HEADER),
        ("v1", encode_v2(SOURCE, HERE)),
        ("v2", encode_v1(SOURCE, HERE)),
        ("any", b"PROXY TCP4 1.2.3.4\r\n"),
        ("any", b"PROXY " + b"x" * 200),
        ("any", b"\x16\x03\x01\x02\x00"),
        ("none", encode_v1(SOURCE, HERE)),
    ],
)
def test_without_the_right_proxy_header_nothing_is_served(
    make_stage: MakeStage, accepted: str, data: bytes
) -> None:
    stage = make_stage(listener=f"proxyProtocol: {accepted}")
    client = stage.client()
    client.raw(data)
    if accepted == "none":
        # Eight bytes that are not AMQP's.
        assert client.exactly(8) == amqp.PROTOCOL_HEADER
    with contextlib.suppress(Gone):  # with unread bytes, the end is a reset
        assert client.receive() == b""
    client.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}
