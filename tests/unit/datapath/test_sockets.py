"""Whose the sockets are: the pump's while it has them, and then whoever's asks."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import attrs
import pytest
import trustme

from amqpgate.datapath.build import make_relay
from amqpgate.datapath.engine import End, HandedOverSocket, Socket
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.gateway.transport.translated_socket import TranslatedSocket
from amqpgate.protocol.frames import HEARTBEAT, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.translators import Reframing

from .rig import ENGINES, Rig, Witness, received, set_up


class Quiet(Witness):
    """A handler that is called for nothing."""

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        raise AssertionError


@pytest.fixture(params=ENGINES)
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from set_up(Rig, request.param, monkeypatch, high=1 << 18, low=1 << 16, largest_frame=1 << 17)


def connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection of TCP."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname())
        near, _ = server.accept()
    for sock in (far, near):
        sock.setblocking(False)
    return far, near


def session(rig: Rig) -> tuple[list[socket.socket], Quiet]:
    """The far ends of a session's sockets, and the handler of it."""
    far, handler, hops = [], Quiet(), []
    for _ in range(2):
        there, here = connected()
        far.append(there)
        hops.append(HandedOverSocket(here, 4096, 0))
    handler.relay = make_relay(handler, *hops, flows=None)
    rig.sockets += far
    rig.pump.add(handler.relay)
    return far, handler


def test_a_session_that_is_over_has_its_sockets(rig: Rig) -> None:
    far, handler = session(rig)
    handler.relay.finish()
    for side in Side:
        with closing(handler.relay.endpoints[side].sock) as sock:
            assert sock is handler.relay.endpoints[side].sock, "there is one, however often it is asked for"
            assert sock.getpeername() == far[side].getsockname()
            assert (sock.type, sock.gettimeout()) == (socket.SOCK_STREAM, 0.0)
            sock.send(b"farewell")
            assert received(far[side]) == b"farewell"
        assert far[side].recv(1) == b"", "it is closed by who closes the object"


def test_a_session_whose_socket_was_asked_for_goes_on(rig: Rig) -> None:
    far, handler = session(rig)
    for side in Side:
        assert handler.relay.endpoints[side].sock.fileno() >= 0
    far[Side.CLIENT].close()
    rig.steps()
    assert handler.ends == [(End.GONE, Side.CLIENT)]
    for endpoint in handler.relay.endpoints:
        endpoint.sock.close()


def test_who_is_at_the_other_end_is_told_without_it(rig: Rig) -> None:
    far, handler = session(rig)
    for side in Side:
        endpoint = handler.relay.endpoints[side]
        assert endpoint.peer_name() == endpoint.peer_name() == far[side].getsockname()
    far[Side.CLIENT].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    far[Side.CLIENT].close()
    assert handler.relay.endpoints[Side.CLIENT].peer_name() is None
    rig.steps()
    assert handler.ends
    handler.relay.send(Side.UPSTREAM, HEARTBEAT)
    for endpoint in handler.relay.endpoints:
        endpoint.sock.close()
        assert endpoint.peer_name() is None


def encrypted(near: socket.socket) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    return context.wrap_socket(near, server_side=True, do_handshake_on_connect=False)


def translated(near: socket.socket) -> TranslatedSocket:
    return TranslatedSocket(near, Reframing())


@pytest.mark.parametrize(
    "wrap",
    [encrypted, translated, lambda near: translated(encrypted(near))],
    ids=["TLS", "translated", "translated TLS"],
)
def test_one_that_is_more_than_a_descriptor_is_kept(
    rig: Rig, wrap: Callable[[socket.socket], Socket]
) -> None:
    (there, here), (other, near) = connected(), connected()
    rig.sockets += there, other
    wrapped, handler = wrap(here), Quiet()
    hops = HandedOverSocket(wrapped, 4096, 0), HandedOverSocket(near, 4096, 0)
    handler.relay = make_relay(handler, *hops, flows=None)
    rig.pump.add(handler.relay)
    endpoint = handler.relay.endpoints[Side.CLIENT]
    assert endpoint.peer_name() == there.getsockname()
    assert endpoint.sock is wrapped
    handler.relay.finish()
    assert endpoint.sock is wrapped
    assert endpoint.peer_name() == there.getsockname()
    for end in handler.relay.endpoints:
        end.sock.close()
    assert endpoint.peer_name() is None
    assert there.recv(1) == b""


@pytest.mark.skipif("compiled" not in ENGINES, reason="the plain pump keeps the object")
@pytest.mark.parametrize("rig", ["compiled"], indirect=True)
def test_a_socket_that_nobody_asks_for_closes_with_its_session(rig: Rig) -> None:
    far, handler = session(rig)
    handler.relay.finish()
    del handler.relay
    gc.collect()
    assert [sock.recv(1) for sock in far] == [b"", b""]


@pytest.mark.skipif("compiled" not in ENGINES, reason="the plain pump keeps the object")
@pytest.mark.parametrize("rig", ["compiled"], indirect=True)
def test_there_is_no_object_for_a_socket_while_nobody_asks(rig: Rig) -> None:
    there, here = connected()
    other, near = connected()
    rig.sockets += there, other
    handler = Quiet()
    hops = HandedOverSocket(here, 4096, 0), HandedOverSocket(near, 4096, 0)
    handler.relay = make_relay(handler, *hops, flows=None)
    number = here.fileno()
    rig.pump.add(handler.relay)
    assert (here.fileno(), near.fileno()) == (-1, -1)
    os.fstat(number)
    handler.relay.finish()
    for endpoint in handler.relay.endpoints:
        endpoint.sock.close()


def test_a_socket_of_which_nothing_is_left_is_closed_at_once(rig: Rig) -> None:
    far, handler = session(rig)
    handler.relay.finish()
    fds = [endpoint.sock.fileno() for endpoint in handler.relay.endpoints]
    assert all(endpoint.close_at_once() for endpoint in handler.relay.endpoints)
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    assert [sock.recv(1) for sock in far] == [b"", b""]
    assert not any(endpoint.close_at_once() for endpoint in handler.relay.endpoints), "it is closed"
    assert [endpoint.peer_name() for endpoint in handler.relay.endpoints] == [None, None]


def test_a_socket_with_something_unread_is_not(rig: Rig) -> None:
    far, handler = session(rig)
    handler.relay.finish()
    far[Side.CLIENT].send(b"x")
    client, broker = handler.relay.endpoints
    assert (client.close_at_once(), broker.close_at_once()) == (False, True)
    with closing(client.sock) as sock:
        assert received(sock) == b"x"


def test_a_socket_with_something_unsent_is_not(rig: Rig) -> None:
    _, handler = session(rig)
    endpoint = handler.relay.endpoints[Side.CLIENT]
    while not endpoint.waiting:
        endpoint.put(HEARTBEAT * 10_000)
    handler.relay.finish()
    assert not endpoint.close_at_once()
    for either in handler.relay.endpoints:
        either.sock.close()


def secured() -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """As ``connected``, both after their handshake."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    for_server, for_client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(for_server)
    authority.configure_trust(for_client)
    there, here = connected()
    far = for_client.wrap_socket(
        there, server_hostname="localhost", do_handshake_on_connect=False, suppress_ragged_eofs=False
    )
    near = for_server.wrap_socket(here, server_side=True, do_handshake_on_connect=False)
    shaken: set[ssl.SSLSocket] = set()
    while len(shaken) < 2:
        for sock in (far, near):
            with contextlib.suppress(ssl.SSLWantReadError):
                sock.do_handshake()
                shaken.add(sock)
    return far, near


def test_a_peer_that_speaks_tls_is_told(rig: Rig) -> None:
    (far, near), (broker, rest) = secured(), connected()
    hops = HandedOverSocket(near, 4096, 0), HandedOverSocket(rest, 4096, 0)
    handler = Quiet()
    handler.relay = make_relay(handler, *hops, flows=None)
    rig.sockets += [far, broker]
    rig.pump.add(handler.relay)
    handler.relay.finish()
    far.sendall(b"x")
    client, broker_end = handler.relay.endpoints
    assert (client.close_at_once(), broker_end.close_at_once()) == (False, True)
    with contextlib.suppress(ssl.SSLWantReadError):
        far.unwrap()
    assert client.close_at_once(), "it has said that it ends, and nothing else"
    far.unwrap()
    assert near.fileno() == -1


#: Linux's ioctl that tells how many bytes of a connection have not been sent yet (linux/sockios.h).
SIOCOUTQNSD = 0x894B

PUBLISH = content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x", 4096)
ASKED = method_frame(1, amqp.QueueDeclare(queue="q"))


def kept_back(sock: Socket) -> int:
    """Bytes that the kernel has taken, and waits for more to send with."""
    assert isinstance(sock, socket.socket)
    return int.from_bytes(fcntl.ioctl(sock, SIOCOUTQNSD, bytes(4)), sys.byteorder)


@attrs.define(eq=False)
class Passing(Witness):
    """A handler that passes on what it is asked about, or says nothing."""

    passes: bool = True
    #: What the kernel kept back for the broker, before and after.
    kept: list[tuple[int, int]] = attrs.field(factory=list)

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        broker = self.relay.endpoints[1].sock
        before = kept_back(broker)
        if self.passes:
            self.relay.send(Side.UPSTREAM, frame)
        self.kept.append((before, kept_back(broker)))
        return False


@pytest.mark.parametrize("passes", [True, False])
def test_what_goes_before_an_upcall_is_sent_with_what_that_sends(rig: Rig, passes: bool) -> None:
    """A publish and the close behind it are one packet. Where nothing follows, it is not kept back."""
    handler = Passing(passes=passes)
    (client, near), (broker, far) = connected(), connected()
    hops = [HandedOverSocket(one, 4096, 0) for one in (near, far)]
    for hop in hops:
        assert isinstance(hop.sock, socket.socket)
        hop.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handler.relay = make_relay(handler, *hops, flows=None)
    handler.relay.channels.open(1)
    rig.sockets += (client, broker)
    rig.pump.add(handler.relay)
    client.sendall(PUBLISH + ASKED)
    select.select([rig.pump.fileno()], [], [], 5)
    while not handler.kept:
        rig.pump.step()
    assert handler.kept == [(len(PUBLISH), 0 if passes else len(PUBLISH))]
    assert kept_back(handler.relay.endpoints[1].sock) == 0
    broker.settimeout(5)
    expected = PUBLISH + (ASKED if passes else b"")
    assert broker.recv(len(expected), socket.MSG_WAITALL) == expected
    for endpoint in handler.relay.endpoints:
        assert isinstance(endpoint.sock, socket.socket)
        rig.sockets.append(endpoint.sock)
