"""A run against whoever is no broker, lets nobody in, or is gone amid it: it ends, and says why."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import pytest
import trio

from amqpgate.conformance.cases import SECTIONS
from amqpgate.conformance.dialling import PeerLogin
from amqpgate.conformance.endings import PeerGone
from amqpgate.conformance.run import Plan, play, product, selected
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

Serving = Callable[[trio.SocketStream], Awaitable[None]]

#: What a broker says of itself, and what it says to a login and to connection.open.
START = amqp.ConnectionStart(0, 9, Table.of({"product": "Scripted"}), b"PLAIN", b"en_US")
TAKEN: tuple[Method, ...] = (amqp.ConnectionTune(0, 131_072, 0), amqp.ConnectionOpenOk())
REFUSED: tuple[Method, ...] = (amqp.ConnectionClose(403, "no", 10, 11),)

LOGIN = partial(PeerLogin, host="127.0.0.1", user="guest", password="guest", vhost="/")


def serving(*answers: Method, logins: int = 1000) -> Serving:
    """A broker that answers so for so many connections, and hangs up on all others."""
    count = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal count
        count += 1
        if count > logins:
            return
        with suppress(trio.BrokenResourceError):
            for answer in (START, *answers):
                await stream.receive_some(65_536)
                await stream.send_all(method_frame(0, answer))
            await stream.receive_some(65_536)

    return serve


def saying(data: bytes) -> Serving:
    """Somebody who says that once he has heard anything, and waits."""

    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some(65_536)
            await stream.send_all(data)
            await stream.receive_some(65_536)

    return serve


async def _end(serve: Serving, patience: float, tls: ssl.SSLContext | None) -> str:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        target = LOGIN(port=listeners[0].socket.getsockname()[1], tls=tls)
        cases = selected(SECTIONS, ["0-9-1"], ["exchange"])
        plan = Plan(target=target, cases=cases, patience=patience, at_once=2)
        said = "it has come to its end"
        try:
            await product(target, patience)
            await play(plan, lambda _: None)
        except (PeerGone, OSError) as error:
            said = str(error)
        nursery.cancel_scope.cancel()
    return said


def why(serve: Serving, patience: float = 30, tls: ssl.SSLContext | None = None) -> str:
    """Why a run of the rules of exchanges against that ends early."""
    return trio.run(_end, serve, patience, tls)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR unknown command 'AMQP'\r\n"])
def test_no_broker(said: bytes) -> None:
    assert why(saying(said)) == "who answers there speaks no AMQP"


def test_a_peer_that_says_nothing() -> None:
    assert why(saying(b""), patience=1) == "it says nothing for 1 s"


def test_a_login_that_is_refused() -> None:
    said = why(serving(*REFUSED))
    assert said.startswith("guest cannot log in to the virtual host /: connection.close 403; amqp://USER:")


def test_a_peer_that_speaks_another_version() -> None:
    said = why(saying(b"AMQP\x01\x01\x08\x00"))
    assert said == "it speaks none of AMQP 0-9-1; --versions names others"


def test_a_peer_that_is_gone_amid_a_run() -> None:
    """Its product, its version, a login; then nobody is there, which no rule is to blame for."""
    said = why(serving(*TAKEN, logins=3))
    assert said.startswith("after 2 of ")
    assert said.endswith(" cases guest cannot log in to the virtual host /: hangs up")


def test_a_port_without_tls() -> None:
    said = why(saying(b"AMQP\x00\x00\x09\x01"), tls=ssl.create_default_context())
    assert said.startswith("no TLS: ")
