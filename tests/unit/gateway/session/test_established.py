"""What a handshake hands over: a session with its relay, or nothing that stays open."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from amqpgate.bridge import NATIVE
from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.datapath.scanner import FlowTable
from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.established import Established, OwnSource
from tests.support.sessions import BOB, off_the_data_path


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, ...]]:
    """The client's, the gateway's two, and the broker's."""
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(sock) for _ in range(2) for sock in socket.socketpair()]
        yield tuple(pairs)


def test_a_session_gets_a_relay_between_both_sockets(ends: tuple[socket.socket, ...]) -> None:
    _, near, far, _ = ends
    session, flows = off_the_data_path(), FlowTable()
    client, broker = HandedOverSocket(near, 4096, 10.0, b"\1\0"), HandedOverSocket(far, 8192, 20.0)
    source = OwnSource(broker)
    assert source.sock is far
    upstream = source.connect(session, client, flows, 131072)
    relay = upstream.relay
    assert [relay.endpoints[side].sock for side in Side] == [near, far]
    assert (relay.up.frame_max, relay.up.out_frame_max) == (4096, 8192)
    assert relay.up.flows is flows
    assert relay.handler.session is session
    # What the client has said already is not lost.
    assert bytes(relay.endpoints[Side.CLIENT].rest()) == b"\1\0"


def test_where_no_session_comes_about_neither_socket_stays(ends: tuple[socket.socket, ...]) -> None:
    client, near, far, broker = ends
    established = Established(
        BOB,
        HandedOverSocket(near, 4096, 0.0),
        OwnSource(HandedOverSocket(far, 4096, 0.0)),
        10,
        (NATIVE, NATIVE),
    )
    established.close()
    for sock in (client, broker):
        sock.settimeout(5)
    assert (client.recv(1), broker.recv(1)) == (b"", b"")
    # Whatever has closed them before.
    established.close()
