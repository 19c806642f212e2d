"""Connections to addresses and to names, from fibers and tasks."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest
import trio

from amqpgate.gateway.transport import connecting
from amqpgate.gateway.transport.connecting import KNOWN, Addresses, connect
from amqpgate.gateway.transport.waiting import in_trio, move_on_after
from tests.support.fibers import BOTH, Run
from tests.support.ports import free_port


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    KNOWN.forget("localhost")
    yield
    KNOWN.forget("localhost")


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_it_connects(run: Run, host: str) -> None:
    found: list[tuple[object, bool]] = []

    async def works() -> None:
        for _ in range(2):
            with await connect(host, port) as sock:
                found.append((sock.getpeername()[1], sock.getblocking()))

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        await run(works())
    assert found == [(port, False)] * 2
    assert (KNOWN.of("localhost") is not None) is (host == "localhost")


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_nobody_is_there(run: Run, host: str) -> None:
    port, failed = free_port(), []

    async def works() -> None:
        try:
            await connect(host, port)
        except OSError as error:
            failed.append(error)

    await run(works())
    (error,) = failed
    assert host == "localhost" or error.errno == errno.ECONNREFUSED


@BOTH
async def test_a_name_is_asked_for_once_while_its_address_answers(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    by_name = trio.open_tcp_stream

    async def counted(host: str, port: int) -> trio.SocketStream:
        asked.append(host)
        return await by_name(host, port)

    async def works() -> None:
        for _ in range(3):
            (await connect("localhost", port)).close()
        # It has moved: nobody answers there any more.
        KNOWN.found("localhost", Addresses(socket.AF_INET, ("127.0.0.99",)))
        (await connect("localhost", port)).close()
        with monkeypatch.context() as patch:
            patch.setattr(connecting, "FRESH", 0.0)
            (await connect("localhost", port)).close()

    monkeypatch.setattr(trio, "open_tcp_stream", counted)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        await run(works())
    assert len(asked) == 3


@BOTH
async def test_an_address_that_says_nothing_is_not_waited_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SaysNothing:
        def __init__(self, *_: object) -> None:
            pass

        async def finish(self) -> None:
            await in_trio(trio.sleep_forever)

    async def works() -> None:
        (await connect("localhost", port)).close()
        KNOWN.found("localhost", Addresses(socket.AF_INET, ("127.0.0.1",)))
        with monkeypatch.context() as patch:
            patch.setattr(connecting, "_begin", SaysNothing)
            (await connect("localhost", port)).close()

    monkeypatch.setattr(connecting, "PATIENCE", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        await run(works())


@BOTH
async def test_who_gives_up_meanwhile_leaves_no_socket(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection stands, and the name's other addresses are asked for."""
    ask, gave_up = trio.socket.getaddrinfo, []

    async def says_nothing(*args: object, family: int = 0, **kwargs: object) -> object:
        # The first question is `open_tcp_stream`'s, of any family.
        if family:
            await trio.sleep_forever()
        return await ask(*args, family=family, **kwargs)  # type: ignore[arg-type]

    async def works() -> None:
        with move_on_after(1) as scope:
            await connect("localhost", port)
        gave_up.append(scope.cancelled_caught)

    monkeypatch.setattr(trio.socket, "getaddrinfo", says_nothing)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        port = server.getsockname()[1]
        await run(works())
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(10)
            assert (accepted.recv(1), gave_up) == (b"", [True])
