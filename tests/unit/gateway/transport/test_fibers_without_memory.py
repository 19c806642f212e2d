"""Where memory runs out no fiber is forgotten, nothing is kept of one that is over, and none ends another."""

from __future__ import annotations

from collections import deque

import outcome
import pytest
import trio
import trio.testing

from amqpgate.datapath import build
from amqpgate.datapath.engine import Pump
from amqpgate.datapath.pump import PlainPump
from amqpgate.datapath.wheel import Wheel
from amqpgate.gateway.transport.fiber import Fiber, Interrupted
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.gateway.transport.waiting import in_trio, move_on_after, sleep
from tests.support.fibers import running_fibers

PUMPS = pytest.mark.parametrize("pump", [build.Pump, PlainPump])


async def test_a_deadline_is_kept_where_memory_runs_out() -> None:
    """A wheel hands out what is due once."""

    class Poor(Wheel[Fiber]):
        times = 2

        def due(self, now: float) -> list[Fiber]:
            items = super().due(now)
            if items and Poor.times:
                Poor.times -= 1
                raise MemoryError
            return items

    fibers = Fibers()
    fibers._wheel = Poor()
    fiber = fibers.start_soon(sleep(0.01))
    failed = 0
    with trio.fail_after(5):
        while not fiber.is_over:
            await trio.lowlevel.wait_readable(fibers.fileno())
            try:
                fibers.attend()
            except MemoryError:
                failed += 1
    assert failed == 1
    assert len(fibers) == 0


async def test_who_could_not_be_started_is_not_there() -> None:
    class Poor(deque[Fiber]):
        def append(self, fiber: Fiber) -> None:
            raise MemoryError

    async def never() -> None:
        raise AssertionError

    fibers = Fibers()
    fibers._soon = Poor()
    work = never()
    with pytest.raises(MemoryError):
        fibers.start_soon(work)
    work.close()
    assert len(fibers) == 0
    fibers._soon = deque()
    fibers.attend()


async def test_who_is_over_is_forgotten_whatever_is_left_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Fiber) -> None:
        raise MemoryError

    async def nothing() -> None:
        pass

    monkeypatch.setattr(Fiber, "finish", fail)
    fibers = Fibers()
    fibers.start_soon(nothing())
    with pytest.raises(MemoryError):
        fibers.attend()
    assert len(fibers) == 0


@PUMPS
async def test_what_trio_cannot_do_ends_its_fiber_alone(
    pump: type[Pump], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no memory to keep what it has raised, or to resume the fiber."""

    class Poor:
        def __init__(self, error: Exception) -> None:
            raise MemoryError

    async def fails() -> None:
        raise ZeroDivisionError

    went: list[object] = []

    async def asks() -> None:
        try:
            await in_trio(fails)
        except BaseException as error:
            went.append(type(error))
            raise

    async def goes_on() -> None:
        await in_trio(trio.sleep, 0)
        went.append("on")

    async with running_fibers(pump) as fibers:
        with monkeypatch.context() as patch:
            patch.setattr(outcome, "Error", Poor)
            await fibers.start_soon(asks()).over()
        await fibers.start_soon(goes_on()).over()
    assert went == [Interrupted, "on"]


@PUMPS
async def test_what_trio_did_not_begin_is_not_waited_for(pump: type[Pump]) -> None:
    class Poor:
        def start_soon(self, *_: object) -> None:
            raise MemoryError

    went: list[str] = []

    async def asks() -> None:
        tasks, fibers._tasks = fibers._tasks, Poor()
        try:
            with pytest.raises(MemoryError):
                await in_trio(trio.sleep, 0)
        finally:
            fibers._tasks = tasks
        with move_on_after(0.01):
            await sleep(100)
        went.append("on")

    async with running_fibers(pump) as fibers:
        with trio.fail_after(5):
            await fibers.start_soon(asks()).over()
    assert went == ["on"]
