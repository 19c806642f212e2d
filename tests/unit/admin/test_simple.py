"""Connections whose requests are answered without the web framework, and those that go on to it."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trustme

from amqpgate.admin import http, simple
from amqpgate.admin.simple import SimpleServer
from amqpgate.operator.single import SingleGateway
from tests.unit.admin.interfaces import answer, aside, get


async def test_probes_load_nothing(open_interface: Callable[..., object]) -> None:
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            # Two at once, in pieces.
            both = get("/livez") + get("/metrics")
            for at in range(0, len(both), 7):
                sock.sendall(both[at : at + 7])
            assert answer(sock)[::2] == (200, b"ok\n")
            status, headers, body = answer(sock)
            assert (status, headers["content-type"][:25]) == (200, "text/plain; version=0.0.4")
            assert b"amqpgate_ready 0.0\n" in body
            sock.sendall(get("/lifecycle", "Connection: close"))
            status, headers, body = answer(sock)
            assert (status, headers["connection"]) == (200, "close")
            assert b'"state": "starting"' in body
            assert sock.recv(1) == b""

    await aside(ask)
    assert served.loaded == []


async def test_what_is_not_granted_is_not_told(open_interface: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken")
    served = await open_interface(more=", tokenFile: token")

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/metrics") + get("/metrics", "Authorization: Bearer t0ken"))
            status, headers, body = answer(sock)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert b"amqpgate" not in body
            assert answer(sock)[0] == 200
            sock.sendall(get("/drain", method="POST"))
            assert answer(sock)[0] == 401
            sock.sendall(get("/livez").replace(b"localhost", b"evil.example"))
            assert answer(sock)[0] == 421

    await aside(ask)
    assert served.loaded == []


async def test_a_change_is_asked_for_by_no_page(open_interface: Callable[..., object]) -> None:
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/pause", method="POST"))
            assert answer(sock)[0] == 403
            body = '{"successors": 0}'
            headers = ("Content-Type: application/json", f"Content-Length: {len(body)}")
            sock.sendall(get("/drain", *headers, method="POST") + body.encode())
            status, _, text = answer(sock)
            assert (status, text) == (400, b"successors: a number from 1 to 256\n")

    await aside(ask)
    assert served.loaded == []


async def test_a_connection_goes_on_with_the_framework(open_interface: Callable[..., object]) -> None:
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/livez") + get("/openapi.json") + get("/livez"))
            assert answer(sock)[0] == 200
            status, headers, _ = answer(sock)
            assert (status, headers["content-type"]) == (200, "application/json")
            assert answer(sock)[::2] == (200, b"ok\n")
        with served.dial() as sock:
            sock.sendall(get("/livez", method="HEAD"))
            assert sock.recv(8) == b"HTTP/1.1"
            assert sock.recv(4) == b" 200"

    await aside(ask)
    assert served.loaded == ["framework"]


async def test_so_it_does_with_tls(open_interface: Callable[..., object]) -> None:
    served = await open_interface(trustme.CA())

    def ask() -> None:
        with served.dial("http/1.1") as sock:
            sock.sendall(get("/livez"))
            assert answer(sock)[0] == 200
            assert served.loaded == []
            sock.sendall(get("/openapi.json"))
            assert answer(sock)[0] == 200

    await aside(ask)
    assert served.loaded == ["framework"]


async def test_where_the_framework_is_gone_probes_go_on(
    open_interface: Callable[..., object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An upgrade has put other files in the place of this process's."""
    served = await open_interface()
    monkeypatch.setitem(sys.modules, "amqpgate.admin.application", None)

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/sessions"))
            assert sock.recv(1) == b""
        with served.dial() as sock:
            sock.sendall(get("/livez") + get("/lifecycle"))
            assert [answer(sock)[0], answer(sock)[0]] == [200, 200]

    await aside(ask)
    assert "cannot be imported" in caplog.text


async def test_a_probe_that_fails_ends_nothing(
    open_interface: Callable[..., object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(SingleGateway, "metrics_text", broken)
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/metrics") + get("/livez"))
            assert [answer(sock)[0], answer(sock)[0]] == [500, 200]

    await aside(ask)
    assert "GET /metrics failed" in caplog.text


async def test_silent_connections_end_with_it(
    open_interface: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LAST_WORDS", 1000.0)
    monkeypatch.setattr(simple, "IDLE", 1000.0)
    served = await open_interface()

    def silent(first: bytes) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", served.port), timeout=20)
        sock.sendall(get("/livez"))
        assert answer(sock)[0] == 200
        sock.sendall(first)
        return sock

    with (
        closing(await aside(lambda: silent(b""))) as one,
        closing(await aside(lambda: silent(b"GET"))) as other,
    ):
        served.over.set()
        with trio.fail_after(20):
            await served.ended.wait()
        assert await aside(lambda: (one.recv(1), other.recv(1))) == (b"", b"")


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (trio.SocketListener, "accept", MemoryError()),
        (trio.SocketListener, "accept", SystemError("error return without exception set")),
        (trio.SocketListener, "accept", OSError(errno.EMFILE, "too many")),
        (SimpleServer, "serve", MemoryError()),
        (trio, "aclose_forcefully", MemoryError()),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
async def test_want_of_memory_ends_a_connection_at_most(
    open_interface: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    error: Exception,
) -> None:
    """The process goes on, and so does the interface."""
    failed: list[str] = []
    do = getattr(owner, name)

    async def poor(*args: object) -> object:
        if failed:
            return await do(*args)
        failed.append(name)
        raise error

    served = await open_interface()

    def ask() -> int:
        with served.dial() as sock:
            sock.sendall(get("/livez", "Connection: close"))
            return int(sock.recv(1000)[9:12] or 0)

    monkeypatch.setattr(owner, name, poor)
    # The first may be answered: what is accepted is what was begun before. Or it is reset.
    with contextlib.suppress(ConnectionResetError):
        await aside(ask)
    assert await aside(ask) == 200
    assert failed == [name]


async def test_the_idlest_gives_way_where_there_are_many(
    open_interface: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 4)
    served = await open_interface()

    def ask() -> None:
        with contextlib.ExitStack() as open_ones:
            waiting = [open_ones.enter_context(served.dial()) for _ in range(4)]
            for sock in waiting:
                # The framework waits for the rest of it, and for as long as that takes.
                sock.sendall(get("/drain", "Content-Length: 10000", "X-Amqpgate: 1", method="POST"))
            for _ in range(3):
                with served.dial() as another:
                    another.sendall(get("/livez"))
                    assert answer(another)[::2] == (200, b"ok\n")
            # One made room for another, which has left again: so the others stay.
            waiting[0].settimeout(20)
            assert waiting[0].recv(1) == b""
            waiting[3].setblocking(False)
            with pytest.raises(BlockingIOError):
                waiting[3].recv(1)

    await aside(ask)


async def test_what_changes_nothing_waits_for_no_body(open_interface: Callable[..., object]) -> None:
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/livez", "Content-Length: 100000"))
            assert answer(sock)[::2] == (200, b"ok\n")

    await aside(ask)
