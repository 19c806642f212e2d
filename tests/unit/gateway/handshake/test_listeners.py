"""Pauses, and what becomes of connections that the kernel has let in when the listeners close."""

from __future__ import annotations

import errno
import socket
import threading

import attrs
import pytest
import trio

from amqpgate.config import Address, from_flags
from amqpgate.gateway.handshake import listeners as listeners_module
from amqpgate.gateway.transport.reuseport import choose_among
from amqpgate.protocol.header import REFUSAL
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.fibers import running_fibers
from tests.support.inprocess import eventually
from tests.support.ports import refuses
from tests.unit.gateway.conftest import Stage

#: A header that the gateway answers by itself.
STRANGE = b"HTTP/1.1"


def test_a_pause_refuses_the_new_and_keeps_the_old(stage: Stage) -> None:
    client, broker = stage.opened()
    running = stage.running
    gateway, port = running.gateway, running.port()
    for _ in range(2):
        running.call(gateway.pause)
        assert not gateway.ready
        assert running.call(gateway.standing).state == "paused"
        eventually(lambda: refuses(port))
        client.publish(b"goes on", "k")
        broker.expect_content(amqp.BasicPublish)
        running.call(gateway.pause)
        running.call(gateway.resume)
        running.call(gateway.resume)
        eventually(lambda: gateway.ready)
        assert running.port() == port
        assert running.call(gateway.standing).state == "ready"
        stage.opened()


def test_while_it_is_paused_the_port_is_kept(stage: Stage) -> None:
    running = stage.running
    running.call(running.gateway.pause)
    eventually(lambda: refuses(running.port()))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", running.port()))


def test_a_paused_gateway_drains(stage: Stage) -> None:
    stage.running.call(stage.running.gateway.pause)
    stage.running.call(stage.running.gateway.drain)
    stage.running.join()
    assert refuses(stage.running.port())


@pytest.mark.parametrize("close", ["pause", "drain"])
def test_who_was_let_in_by_the_kernel_is_served(stage: Stage, close: str) -> None:
    """Connections that nobody has accepted when the socket closes would be reset."""
    running = stage.running
    clients: list[socket.socket] = []

    def come_and_close() -> None:
        # On the gateway's own thread, so it accepts nothing meanwhile.
        clients.extend(socket.create_connection(("127.0.0.1", running.port()), 20) for _ in range(20))
        getattr(running.gateway, close)()

    running.call(come_and_close)
    eventually(lambda: refuses(running.port()))
    for client in clients:
        with client:
            client.sendall(STRANGE)
            assert client.recv(8) == REFUSAL


def listening(port: int = 0) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(100)
    sock.setblocking(False)
    return sock


def taken(sock: socket.socket) -> int:
    count = 0
    while True:
        try:
            sock.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


async def test_nobody_gets_in_before_all_addresses_are_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """He would be reset where the next one cannot be listened on."""
    settings = from_flags("127.0.0.1:0", "amqp://127.0.0.1:1")
    (first,) = settings.listeners
    settings = attrs.evolve(settings, listeners=(first, attrs.evolve(first, name="second")))
    addresses: dict[str, tuple[str, int]] = {}
    answers = []
    bind_all = listeners_module.bind_all

    async def knock_and_bind(bind: Address, what: str) -> list[socket.socket]:
        if len(addresses) == 2:
            with socket.socket() as client:
                answers.append(client.connect_ex(addresses[first.name]))
        return await bind_all(bind, what)

    monkeypatch.setattr(listeners_module, "bind_all", knock_and_bind)
    async with running_fibers() as fibers, trio.open_nursery() as nursery:
        listeners = listeners_module.Listeners(settings, lambda *_: None, lambda: None, fibers, addresses)
        await nursery.start(listeners.run)
        listeners.close()
    assert answers == [errno.ECONNREFUSED] * 2


def test_who_hands_over_gets_no_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """And serves whom it has until then."""
    monkeypatch.setattr(listeners_module, "LINGER", 0.5)
    chosen = threading.Event()

    def choose_and_tell(sock: socket.socket, first: int, count: int) -> None:
        choose_among(sock, first, count)
        chosen.set()

    monkeypatch.setattr(listeners_module, "choose_among", choose_and_tell)
    running = stage.running
    gateway = running.gateway
    client, broker = stage.opened()
    with listening(running.port()) as successor:
        running.call(lambda: gateway.drain(60, successors=1))
        assert chosen.wait(20)
        for _ in range(50):
            socket.create_connection(("127.0.0.1", running.port())).close()
        eventually(lambda: running.call(gateway.lifecycle.closed.is_set))
        assert taken(successor) == 50
        client.publish(b"goes on", "k")
        broker.expect_content(amqp.BasicPublish)
