"""What the pump resumes, in which order, and what becomes of fibers when their gateway ends."""

from __future__ import annotations

import contextlib
import select
import socket
from collections import deque

import pytest
import trio
import trio.testing

from amqpgate.datapath import build
from amqpgate.datapath.engine import Pump
from amqpgate.datapath.pump import PlainPump
from amqpgate.gateway.transport.fiber import Fiber
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.gateway.transport.waiting import checkpoint, in_trio, sleep, wait_readable, wait_writable
from tests.support.fibers import running_fibers

PUMPS = pytest.mark.parametrize("pump", [build.Pump, PlainPump])


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


@PUMPS
async def test_it_waits_for_sockets(pump: type[Pump]) -> None:
    ours, theirs = pair()
    heard: list[bytes] = []

    async def listens() -> None:
        while True:
            try:
                data = ours.recv(1)
            except BlockingIOError:
                await wait_readable(ours)
                continue
            if not data:
                return
            heard.append(data)

    async def floods() -> None:
        rest = 1 << 22
        while rest:
            try:
                rest -= ours.send(bytes(min(rest, 1 << 16)))
            except BlockingIOError:
                await wait_writable(ours)

    async with running_fibers(pump) as fibers:
        fiber = fibers.start_soon(listens())
        for letter in (b"a", b"b", b"cd"):
            await trio.testing.wait_all_tasks_blocked(0.01)
            theirs.send(letter)
        theirs.shutdown(socket.SHUT_WR)
        await fiber.over()
        assert heard == [b"a", b"b", b"c", b"d"]
        flooding, got = fibers.start_soon(floods()), 0
        while got < 1 << 22:
            try:
                got += len(theirs.recv(1 << 16))
            except BlockingIOError:
                await trio.lowlevel.wait_readable(theirs)
        await flooding.over()
    ours.close()
    theirs.close()


@PUMPS
async def test_they_take_turns(pump: type[Pump]) -> None:
    said: list[str] = []

    async def says(letter: str) -> None:
        for _ in range(3):
            said.append(letter)
            await checkpoint()

    async with running_fibers(pump) as fibers:
        for fiber in [fibers.start_soon(says("a")), fibers.start_soon(says("b"))]:
            await fiber.over()
    assert "".join(said) == "ababab"


async def test_one_that_fails_ends_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    async def goes_on() -> None:
        await sleep(0.01)
        ended.append(True)

    ended: list[bool] = []
    async with running_fibers() as fibers:
        for fiber in [fibers.start_soon(goes_on()), fibers.start_soon(fails())]:
            await fiber.over()
        assert len(fibers) == 0
    assert ended == [True]
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_one_that_waits_for_trio_itself_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def waits() -> None:
        await trio.lowlevel.cancel_shielded_checkpoint()

    async with running_fibers() as fibers:
        await fibers.start_soon(waits()).over()
    assert "without `in_trio`" in caplog.text


async def test_a_socket_that_goes_on_elsewhere_is_not_watched_any_more() -> None:
    ours, theirs = pair()

    async def waits() -> None:
        await wait_readable(ours)

    async with running_fibers() as fibers:
        fiber = fibers.start_soon(waits())
        await trio.testing.wait_all_tasks_blocked(0.01)
        theirs.send(b"x")
        await fiber.over()
        theirs.send(b"y")
        ours.recv(16)
        theirs.send(b"z")
        poll = select.poll()
        poll.register(fibers.fileno(), select.POLLIN)
        assert poll.poll(0) == []
    ours.close()
    theirs.close()


async def test_another_socket_may_have_the_number_of_one_that_was_closed() -> None:
    heard: list[bytes] = []

    async def waits() -> None:
        for _ in range(2):
            ours, theirs = pair()
            numbers.add(ours.fileno())
            with ours, theirs:
                await in_trio(later, theirs)
                await wait_readable(ours)
                heard.append(ours.recv(1))

    async def later(sock: socket.socket) -> None:
        tasks.start_soon(say, sock)

    async def say(sock: socket.socket) -> None:
        await trio.sleep(0.01)
        sock.send(b"x")

    numbers: set[int] = set()
    async with running_fibers() as fibers, trio.open_nursery() as tasks:
        await fibers.start_soon(waits()).over()
    assert (heard, len(numbers)) == ([b"x", b"x"], 1)


async def test_whatever_epoll_takes_can_be_waited_for() -> None:
    async def waits() -> None:
        with contextlib.closing(select.epoll()) as either:
            either.register(ours, select.EPOLLIN | select.EPOLLOUT)
            await wait_readable(either)

    ours, theirs = pair()
    with ours, theirs:
        async with running_fibers() as fibers:
            await fibers.start_soon(waits()).over()
            assert len(fibers) == 0


async def test_nobody_is_forgotten_where_memory_runs_out() -> None:
    """What epoll tells is told once."""
    heard: list[bytes] = []

    async def listens() -> None:
        await wait_readable(ours)
        heard.append(ours.recv(1))

    class Poor(deque[Fiber]):
        times = 2

        def append(self, fiber: Fiber) -> None:
            if Poor.times:
                Poor.times -= 1
                raise MemoryError
            super().append(fiber)

    ours, theirs = pair()
    with ours, theirs:
        fibers = Fibers()
        fiber = fibers.start_soon(listens())
        fibers.attend()
        fibers._soon = Poor()
        theirs.send(b"x")
        for _ in range(2):
            with pytest.raises(MemoryError):
                fibers.attend()
        assert select.select([fibers], [], [], 0)[0]
        fibers.attend()
    assert (heard, fiber.is_over) == ([b"x"], True)


async def test_the_end_ends_all_of_them_wherever_they_are() -> None:
    ended: list[str] = []

    async def waits(name: str) -> None:
        try:
            await (in_trio(trio.sleep_forever) if name == "trio" else sleep(100))
        finally:
            ended.append(name)

    async with running_fibers() as fibers:
        fibers.start_soon(waits("socket"))
        fibers.start_soon(waits("trio"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        fibers.start_soon(waits("not begun"))
    assert sorted(ended) == ["not begun", "socket", "trio"]
    assert (len(fibers), fibers.is_closed) == (0, True)


async def test_a_deadline_ends_those_that_are_left() -> None:
    ended: list[str] = []

    async def waits(seconds: float) -> None:
        try:
            await sleep(seconds)
            ended.append("done")
        except BaseException:
            ended.append("ended")
            raise

    async with running_fibers() as fibers:
        await fibers.finish(trio.current_time() + 1)
        for seconds in (0.01, 100):
            fibers.start_soon(waits(seconds))
        await fibers.finish(trio.current_time() + 0.3)
        assert (ended, len(fibers)) == (["done", "ended"], 0)


async def test_nothing_is_asked_of_trio_before_it_is_there() -> None:
    fibers = Fibers()
    reached: list[bool] = []

    async def asks() -> None:
        await in_trio(trio.sleep, 0)
        reached.append(True)

    fiber = fibers.start_soon(asks())
    fibers.attend()
    assert (fiber.is_over, reached) == (True, [])
