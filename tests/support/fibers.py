"""Fibers with a pump that drives them, as a gateway has them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from amqpgate.datapath import build
from amqpgate.datapath.driver import drive
from amqpgate.datapath.engine import Pump
from amqpgate.gateway.transport.fiber import Work
from amqpgate.gateway.transport.fibers import Fibers


@asynccontextmanager
async def running_fibers(make_pump: type[Pump] = build.Pump) -> AsyncIterator[Fibers]:
    """They end with the block."""
    failures: list[Exception] = []
    pump = make_pump(high=1 << 20, low=1 << 19, largest_frame=1 << 17, on_failure=failures.append)
    fibers = Fibers()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, pump)
            await nursery.start(fibers.run, pump)
            yield fibers
            nursery.cancel_scope.cancel()
    finally:
        pump.close()
    assert not failures


#: Runs it to its end.
Run = Callable[[Work], Awaitable[None]]


async def _in_a_task(work: Work) -> None:
    await work


async def in_a_fiber(work: Work) -> None:
    """Run it to its end as the only one."""
    async with running_fibers() as fibers:
        await fibers.start_soon(work).over()


#: For a test that takes ``run``: the same in a task of trio's and in a fiber.
BOTH = pytest.mark.parametrize("run", [_in_a_task, in_a_fiber])
