"""Dialling one endpoint: what becomes of names, addresses and TLS that do not work, and of sockets then."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError, dial
from tests.support.clusters import cluster
from tests.support.inprocess import Doorway


@pytest.fixture
def door() -> Iterator[Doorway]:
    with contextlib.closing(Doorway()) as door:
        yield door


async def connect(where: str, keys: str = "") -> MethodStream:
    it = cluster(keys, endpoints=where)
    return await dial(it.settings, TlsContexts(), address=it.endpoints[0].address, frame_max=4096)


class _Names(trio.abc.HostnameResolver):
    """`brokers.test` has an address where nobody listens, and then one where the test does."""

    async def getaddrinfo(self, *_: object) -> list[tuple[object, ...]]:  # type: ignore[override]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, self.port))
            for host in ("127.0.0.2", "127.0.0.1")
        ]

    async def getnameinfo(self, *_: object) -> tuple[str, str]:  # type: ignore[override]
        raise NotImplementedError

    def __init__(self, port: int) -> None:
        self.port = port


async def test_a_name_with_several_addresses(door: Doorway) -> None:
    trio.socket.set_custom_hostname_resolver(_Names(door.port))
    try:
        hop = await connect(f"brokers.test:{door.port}")
    finally:
        trio.socket.set_custom_hostname_resolver(None)
    assert hop.sock.getpeername() == ("127.0.0.1", door.port)
    hop.close()


async def test_where_nobody_listens_the_error_says_where_and_why(door: Doorway) -> None:
    door.close()
    with pytest.raises(UpstreamUnavailableError) as failed:
        await connect(f"127.0.0.1:{door.port}")
    where = f"cannot connect to upstream 127.0.0.1:{door.port}: "
    assert str(failed.value).startswith(where)
    # The cause itself, and not that there were several.
    assert "efused" in str(failed.value).removeprefix(where)
    assert "exception" not in str(failed.value)


def ended(door: Doorway) -> bool:
    """Whether the gateway's end of the next connection is closed, whatever it has said before."""
    with door.accept() as broker, contextlib.suppress(ConnectionResetError):
        while broker.sock.recv(4096):
            pass
    return True


async def test_the_time_for_a_connection_includes_tls(door: Doorway) -> None:
    with pytest.raises(UpstreamUnavailableError, match=r"did not answer within 0\.1 s"):
        await connect(f"127.0.0.1:{door.port}", "connectTimeout: 100ms, tls: {}")
    assert ended(door)


async def test_a_dial_that_is_cancelled_leaves_no_socket(door: Doorway) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connect, f"127.0.0.1:{door.port}", "tls: {}")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert ended(door)


async def test_what_is_no_tls_is_told_as_such(door: Doorway) -> None:
    def answer() -> None:
        with door.accept() as broker:
            broker.receive()
            broker.raw(b"AMQP\0\0\x09\1" * 10)
            # The gateway may be gone already.
            with contextlib.suppress(OSError):
                broker.sock.shutdown(socket.SHUT_WR)
                broker.sock.recv(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, answer)
        with pytest.raises(UpstreamUnavailableError, match=r"TLS with upstream 127\.0\.0\.1:\d+ failed: "):
            await connect(f"127.0.0.1:{door.port}", "tls: {}")
