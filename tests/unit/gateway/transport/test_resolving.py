"""Names whose servers do not answer: one thread waits for them, and nobody else."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import trio

from amqpgate.gateway.transport import connecting
from amqpgate.gateway.transport.connecting import KNOWN
from amqpgate.gateway.transport.resolving import SharedLookups
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import Doorway, eventually, serving
from tests.support.talker import Talker

real = socket.getaddrinfo


@attrs.define
class Names:
    """The system's resolver, whose servers for ``gone.test`` do not answer any more until they are to."""

    asked: list[object] = attrs.field(factory=list)
    #: Whether they still are what they were.
    well: bool = False
    answer: threading.Event = attrs.field(factory=threading.Event)

    def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> Any:
        # Whether a text is an address is asked at once, and nobody outside.
        if not flags & socket.AI_NUMERICHOST:
            self.asked.append(host)
            if host == b"gone.test" and self.well:
                host = b"localhost"
            elif host == b"gone.test":
                assert self.answer.wait(60)
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(host, port, family, type, proto, flags)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    KNOWN.forget("localhost")
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found.getaddrinfo)
    yield found
    found.answer.set()
    KNOWN.forget("localhost")


@pytest.fixture
async def shared() -> None:
    trio.socket.set_custom_hostname_resolver(SharedLookups())


async def test_all_who_ask_get_the_one_answer(names: Names, shared: None) -> None:
    found: list[object] = []

    async def ask() -> None:
        found.append(await trio.socket.getaddrinfo("localhost", 5672, type=socket.SOCK_STREAM))

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(ask)
    assert names.asked == [b"localhost"]
    assert found == [real("localhost", 5672, type=socket.SOCK_STREAM)] * 100
    # What is over is asked for again, and another question is another lookup.
    await ask()
    await trio.socket.getaddrinfo("localhost", 5673)
    assert len(names.asked) == 3


async def test_all_who_ask_are_told_of_the_failure_each_for_itself(names: Names, shared: None) -> None:
    failures: list[socket.gaierror] = []

    async def ask() -> None:
        with pytest.raises(socket.gaierror) as caught:
            await trio.socket.getaddrinfo("gone.test", 5672)
        failures.append(caught.value)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        names.answer.set()
    assert names.asked == [b"gone.test"]
    assert {error.errno for error in failures} == {socket.EAI_AGAIN}
    assert len({id(error) for error in failures}) == 100


async def test_who_gives_up_leaves_the_lookup_to_the_others(names: Names, shared: None) -> None:
    with trio.CancelScope() as first:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.socket.getaddrinfo, "gone.test", 5672)
            await trio.testing.wait_all_tasks_blocked()
            first.cancel()

    async def answer() -> None:
        await trio.testing.wait_all_tasks_blocked()
        names.answer.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        with pytest.raises(socket.gaierror):
            await trio.socket.getaddrinfo("gone.test", 5672)
    assert names.asked == [b"gone.test"]


TWO = """
listeners:
- {{name: gone, bind: 127.0.0.1:0, upstream: gone}}
- {{name: main, bind: 127.0.0.1:0, upstream: here}}
upstreams:
- {{name: gone, host: gone.test, port: {gone}}}
- {{name: here, host: localhost, port: {here}}}
limits: {{handshakesPerAddress: 100}}
"""
#: More clients than trio has threads.
MANY = 60


def test_clients_of_a_name_that_is_gone_do_not_stand_before_those_of_another(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "FRESH", 0.0)
    gone, here = Doorway(), Doorway()
    with contextlib.ExitStack() as stack:
        stack.callback(gone.close)
        stack.callback(here.close)
        stack.callback(names.answer.set)
        running = stack.enter_context(serving(TWO.format(gone=gone.port, here=here.port)))

        def greeted(listener: str, doorway: Doorway | None = None) -> Talker:
            client = Talker.dial(running.port(listener), first=amqp.PROTOCOL_HEADER)
            stack.callback(client.close)
            if doorway is not None:
                broker = doorway.accept()
                stack.callback(broker.close)
                broker.greet()
            client.expect(amqp.ConnectionStart)
            return client

        # What the broker says first is known, so that each client has a connection of its own asked for.
        names.well = True
        greeted("gone", gone)
        names.well = False
        names.asked.clear()
        for _ in range(MANY):
            greeted("gone").say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0a\0b"))
        eventually(lambda: b"gone.test" in names.asked)
        greeted("main", here)
        assert names.asked.count(b"gone.test") == 1
