"""What the web framework's server is asked that it must not do, and what that costs."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Awaitable, Callable, Iterator

import h2.config
import h2.connection
import pytest
import trio
import trio.testing
import trustme

from amqpgate.admin import framework, http
from tests.unit.admin.interfaces import Interface, answer, aside, get

Opening = Callable[..., Awaitable[Interface]]


def preface() -> bytes:
    """What a client of HTTP/2 says first, and a request."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    client.send_headers(
        1,
        [(":method", "GET"), (":path", "/livez"), (":scheme", "http"), (":authority", "localhost")],
        end_stream=True,
    )
    return client.data_to_send()


def to_the_end(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


@pytest.mark.parametrize("offered", [("h2",), ("h2", "http/1.1"), ()])
async def test_http_2_is_not_spoken_over_tls(open_interface: Opening, offered: tuple[str, ...]) -> None:
    served = await open_interface(trustme.CA())

    def ask() -> bytes:
        with served.dial(*offered) as sock:
            assert sock.selected_alpn_protocol() == ("http/1.1" if "http/1.1" in offered else None)  # type: ignore[attr-defined]
            sock.sendall(preface())
            return to_the_end(sock)

    assert (await aside(ask)).startswith(b"HTTP/1.1 505 ")


@pytest.mark.parametrize("before", [b"", get("/livez"), get("/openapi.json")])
async def test_nor_in_the_clear(open_interface: Opening, before: bytes) -> None:
    served = await open_interface()

    def ask() -> bytes:
        with served.dial() as sock:
            if before:
                sock.sendall(before)
                assert answer(sock)[0] == 200
            sock.sendall(preface())
            return to_the_end(sock)

    assert (await aside(ask)).startswith(b"HTTP/1.1 505 ")


@pytest.mark.parametrize(
    "more",
    [
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
        (
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
        ("Connection: upgrade", "UPGRADE: something/1"),
    ],
    ids=["h2c", "websocket", "unknown"],
)
async def test_an_upgrade_is_not_heard(open_interface: Opening, more: tuple[str, ...]) -> None:
    """The connection goes on as it was."""
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            for path in ("/livez", "/openapi.json"):
                sock.sendall(get(path, *more))
                assert answer(sock)[0] == 200
            sock.sendall(get("/livez"))
            assert answer(sock)[::2] == (200, b"ok\n")

    await aside(ask)


async def test_headers_have_a_bound(open_interface: Opening) -> None:
    served = await open_interface()

    def ask() -> bytes:
        with served.dial() as sock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(get("/openapi.json")[:-2])
            for _ in range(100):
                sock.sendall(b"a: b\r\n" * 1000)
                time.sleep(0.01)
        with served.dial() as sock:
            sock.sendall(get("/openapi.json")[:-2] + b"a: b\r\n" * 4000)
            return sock.recv(13)

    assert await aside(ask) == b"HTTP/1.1 431 "


async def test_the_head_of_a_request_has_to_come(
    open_interface: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it drips."""
    monkeypatch.setattr(http, "IDLE", 0.5)
    served = await open_interface()

    def ask() -> None:
        with served.dial() as sock:
            sock.sendall(get("/openapi.json"))
            assert answer(sock)[0] == 200
            over = False
            for _ in range(1000):
                try:
                    sock.sendall(b"G")
                except (BrokenPipeError, ConnectionResetError):
                    over = True
                    break
                time.sleep(0.02)
            assert over

    await aside(ask)


@contextlib.contextmanager
def stuck(served: Interface) -> Iterator[socket.socket]:
    """A client that asks for more than sockets hold, and reads none of it."""
    with contextlib.closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", served.port))
        # Pipelined: each is answered when the one before it has been.
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            sock.settimeout(1)
            while True:
                sock.sendall(get("/openapi.json") * 20)
        sock.settimeout(20)
        yield sock


def is_reset(sock: socket.socket) -> bool:
    """Whether the other side closes it, although nothing is read."""
    poller = select.poll()
    poller.register(sock, 0)
    return bool(poller.poll(10_000))


async def test_who_does_not_read_makes_room(open_interface: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web framework shields what it sends from being cancelled."""
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(framework, "_PATIENCE", 1000.0)
    served = await open_interface()

    def ask() -> None:
        with stuck(served) as sock:
            with served.dial() as another:
                another.sendall(get("/livez"))
                assert answer(another)[0] == 200
            assert is_reset(sock)

    await aside(ask)


async def test_who_does_not_read_keeps_nothing_from_its_end(
    open_interface: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framework, "_PATIENCE", 1000.0)
    served = await open_interface()
    reached = contextlib.ExitStack()
    with reached:
        await aside(lambda: reached.enter_context(stuck(served)))
        served.over.set()
        with trio.fail_after(20):
            await served.ended.wait()


async def test_who_does_not_read_is_left_out(
    open_interface: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framework, "_PATIENCE", 0.5)
    served = await open_interface()

    def ask() -> bool:
        with stuck(served) as sock:
            return is_reset(sock)

    assert await aside(ask)


async def test_one_goes_on_in_each_turn_of_the_loop() -> None:
    """Whatever many ask for at once: between turns messages are relayed."""

    class Turns(trio.abc.Instrument):
        count = 0

        def before_io_wait(self, timeout: float) -> None:
            self.count += 1

    turns, turn, went_on = Turns(), trio.Lock(), []

    async def read(number: int, stream: framework._ReadAgain) -> None:
        assert await stream.receive_some() == b"a"
        went_on.append((number, turns.count))
        assert await stream.receive_some() == b"b"
        went_on.append((number, turns.count))

    pairs = [trio.testing.memory_stream_pair() for _ in range(20)]
    for _, theirs in pairs:
        await theirs.send_all(b"b")
    trio.lowlevel.add_instrument(turns)
    async with trio.open_nursery() as nursery:
        for number, (ours, _) in enumerate(pairs):
            nursery.start_soon(read, number, framework._ReadAgain(ours, b"a", lambda: None, turn))
    trio.lowlevel.remove_instrument(turns)
    assert len({turn for _, turn in went_on}) == len(went_on) == 40
    assert sorted(number for number, _ in went_on[:20]) == list(range(20))
