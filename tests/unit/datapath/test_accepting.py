"""Connections are taken as they came, by either engine; the compiled one loses none for want of memory."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable

import pytest

from amqpgate.datapath import accepting

from .rig import compiled_pump

Accept = Callable[[socket.socket], tuple[socket.socket, tuple[str, int]] | None]

ACCEPTS: dict[str, Accept] = {"plain": accepting.accept}
if compiled_pump is not None:
    ACCEPTS["compiled"] = compiled_pump.accept


@pytest.fixture(params=ACCEPTS)
def accept(request: pytest.FixtureRequest) -> Accept:
    return ACCEPTS[request.param]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_who_came_is_told(accept: Accept, host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        came = accept(server)
        assert came is not None
        connection, peer = came
        with connection:
            assert peer == client.getsockname()[:2]
            assert (connection.family, connection.type, connection.proto) == (family, socket.SOCK_STREAM, 0)
            assert connection.gettimeout() == 0
            assert not os.get_blocking(connection.fileno())
            assert not connection.get_inheritable()
            client.send(b"x")
            select.select([connection], [], [], 5)
            assert connection.recv(10) == b"x"


def test_nobody_came(accept: Accept) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        assert accept(server) is None


def test_it_is_not_open_any_more(accept: Accept) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            accept(server)


@pytest.mark.skipif(compiled_pump is None, reason="Python's own accept loses it")
def test_no_connection_is_lost_for_want_of_memory() -> None:
    """Each allocation fails in its turn: the client is then told by the end of its connection."""
    _testcapi = pytest.importorskip("_testcapi", reason="this Python comes without _testcapi")
    failed = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        # So many that numbers of descriptors are objects that have to be made.
        fillers = [os.dup(server.fileno()) for _ in range(260)]
        for number in range(30):
            with socket.create_connection(server.getsockname()) as client:
                before = len(os.listdir("/proc/self/fd"))
                taken = None
                _testcapi.set_nomemory(number, number + 1)
                try:
                    taken = compiled_pump.accept(server)
                except MemoryError:
                    pass
                finally:
                    _testcapi.remove_mem_hooks()
                if taken is None:
                    failed += 1
                    client.settimeout(5)
                    with contextlib.suppress(ConnectionError):
                        assert client.recv(1) == b""
                else:
                    taken[0].close()
                assert len(os.listdir("/proc/self/fd")) == before
        for fd in fillers:
            os.close(fd)
    assert failed > 3
