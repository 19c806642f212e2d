"""How a fiber is interrupted: where it waits, and by the outermost scope that ends."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from amqpgate.gateway.transport.fiber import RUNNING, Interrupted
from amqpgate.gateway.transport.waiting import CancelScope, sleep
from tests.support.fibers import running_fibers


async def test_what_runs_is_known() -> None:
    seen: list[object] = []

    async def looks() -> None:
        seen.append(RUNNING.fiber)

    async with running_fibers() as fibers:
        fiber = fibers.start_soon(looks())
        await fiber.over()
        await fiber.over()
    assert (seen, RUNNING.fiber) == ([fiber], None)


async def test_of_several_scopes_the_outermost_counts() -> None:
    outer, inner = CancelScope(), CancelScope()
    went: list[str] = []

    async def waits() -> None:
        with outer:
            with inner:
                await sleep(100)
            went.append("inner left")
        went.append("outer left")

    async with running_fibers() as fibers:
        fiber = fibers.start_soon(waits())
        await trio.testing.wait_all_tasks_blocked(0.01)
        inner.cancel()
        outer.cancel()
        inner.cancel()
        await fiber.over()
    assert went == ["outer left"]
    assert (outer.cancelled_caught, inner.cancelled_caught) == (True, False)


async def test_a_scope_that_was_left_ends_nothing() -> None:
    scope = CancelScope()
    went: list[str] = []

    async def waits() -> None:
        with scope:
            scope.cancel()
        await sleep(0.01)
        went.append("on")

    async with running_fibers() as fibers:
        await fibers.start_soon(waits()).over()
    assert (went, scope.cancelled_caught) == (["on"], False)


async def test_who_is_cancelled_before_it_begins_lets_go_of_what_it_has() -> None:
    went: list[str] = []

    async def holds() -> None:
        try:
            await sleep(100)
        finally:
            went.append("let go")

    async with running_fibers() as fibers:
        fiber = fibers.start_soon(holds())
        fiber.cancel()
        await fiber.over()
    assert went == ["let go"]


async def test_who_is_over_is_not_interrupted() -> None:
    async def nothing() -> None:
        return

    async with running_fibers() as fibers:
        fiber = fibers.start_soon(nothing())
        await fiber.over()
        fiber.interrupt(Interrupted(None))
        assert not fiber.is_queued


@pytest.mark.parametrize("times", [1, 3])
async def test_it_is_resumed_once_however_often_it_is_queued(times: int) -> None:
    went: list[str] = []

    async def goes() -> None:
        went.append("begun")
        await sleep(0.05)
        went.append("on")

    async with running_fibers() as fibers:
        fiber = fibers.start_soon(goes())
        for _ in range(times):
            fibers.resume_soon(fiber)
        await fiber.over()
    assert went == ["begun", "on"]
