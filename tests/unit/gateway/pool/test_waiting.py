"""Who waits for a shared connection, and how that ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from amqpgate.datapath.engine import End
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit
from amqpgate.gateway.pool.waiting import Waiter as SessionOfAPool
from amqpgate.gateway.pool.waiting import end_waiting


class Waiter:
    """A session with a shared connection or without, and its client's socket."""

    def __init__(self, connection: object, sock: socket.socket) -> None:
        self.connection = connection
        self.ended: list[object] = []
        endpoints = (SimpleNamespace(sock=sock), None)
        self.session = SimpleNamespace(
            relay=SimpleNamespace(endpoints=endpoints, pump=self), fail=self.ended.append
        )

    def remove(self, _: object, end: End, side: Side, error: object) -> None:
        assert error is None
        self.ended.append((end, side))

    def why_fixed(self) -> str:
        return "it consumes"

    def look(self, now: float) -> list[object]:
        end_waiting(cast(SessionOfAPool, self), 10.0, now)
        return self.ended


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    yield client, server
    for sock in (listener, client, server):
        sock.close()


@pytest.mark.parametrize("connection", [None, object()])
def test_it_has_waited_long_enough(pair: tuple[socket.socket, socket.socket], connection: object) -> None:
    waiter = Waiter(connection, pair[1])
    assert waiter.look(9.9) == []
    (why,) = waiter.look(10.0)
    assert isinstance(why, OverLimit)
    assert (why.code, why.class_id, why.method_id) == (506, 20, 10)
    assert ("it consumes" in why.text) == (connection is not None)


@pytest.mark.parametrize("says", [b"", b"what nobody reads"])
def test_its_client_closes(pair: tuple[socket.socket, socket.socket], says: bytes) -> None:
    waiter = Waiter(None, pair[1])
    pair[0].sendall(says)
    assert waiter.look(0.0) == []
    pair[0].shutdown(socket.SHUT_WR)
    assert waiter.look(0.0) == [(End.GONE, Side.CLIENT)]


def test_its_client_is_gone(pair: tuple[socket.socket, socket.socket]) -> None:
    waiter = Waiter(None, pair[1])
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    pair[0].close()
    assert waiter.look(0.0) == [(End.GONE, Side.CLIENT)]
