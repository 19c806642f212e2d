"""The same waits in a fiber and in a task of trio's."""

from __future__ import annotations

import trio
import trio.lowlevel
import trio.testing

from amqpgate.gateway.transport.waiting import (
    CancelScope,
    checkpoint,
    fail_after,
    in_trio,
    move_on_after,
    sleep,
)
from tests.support.fibers import BOTH, Run, in_a_fiber


@BOTH
async def test_what_takes_too_long_ends(run: Run) -> None:
    went: list[object] = []

    async def works() -> None:
        with move_on_after(0.01) as scope:
            await sleep(100)
        went.append(scope.cancelled_caught)
        with move_on_after(100) as scope:
            await checkpoint()
        went.append(scope.cancelled_caught)
        try:
            with fail_after(0.01):
                await in_trio(trio.sleep_forever)
        except trio.TooSlowError:
            went.append("too slow")
        with fail_after(100):
            went.append("in time")

    await run(works())
    assert went == [True, False, "too slow", "in time"]


@BOTH
async def test_an_inner_deadline_leaves_the_outer_one(run: Run) -> None:
    went: list[str] = []

    async def works() -> None:
        with move_on_after(0.15):
            with move_on_after(0.01):
                await sleep(100)
            went.append("inner")
            await sleep(100)
            went.append("never")
        went.append("outer")

    await run(works())
    assert went == ["inner", "outer"]


@BOTH
async def test_a_scope_that_was_cancelled_before_ends_at_the_first_wait(run: Run) -> None:
    scope = CancelScope()
    went: list[str] = []

    async def works() -> None:
        scope.cancel()
        with scope:
            went.append("in")
            await checkpoint()
            went.append("never")

    await run(works())
    assert (went, scope.cancelled_caught, scope.cancel_called) == (["in"], True, True)


@BOTH
async def test_time_stands_still_for_what_has_a_deadline_of_its_own(run: Run) -> None:
    went: list[str] = []

    async def works() -> None:
        with move_on_after(0.2) as scope:
            with scope.standing_still():
                await sleep(0.4)
            went.append("still in time")
            await sleep(100)
        went.append("then ended")

    await run(works())
    assert went == ["still in time", "then ended"]


@BOTH
async def test_what_trio_does_is_returned_or_raised(run: Run) -> None:
    went: list[object] = []

    async def doubles(number: int) -> int:
        await trio.lowlevel.checkpoint()
        return 2 * number

    async def fails() -> None:
        raise LookupError("x")

    async def works() -> None:
        went.append(await in_trio(doubles, 21))
        try:
            await in_trio(fails)
        except LookupError as error:
            went.append(str(error))

    await run(works())
    assert went == [42, "x"]


async def test_what_trio_has_made_is_not_lost_when_a_scope_ends() -> None:
    scope = CancelScope()
    went: list[object] = []

    async def makes() -> str:
        scope.cancel()
        return "made"

    async def works() -> None:
        with scope:
            went.append(await in_trio(makes))
            await sleep(100)
            went.append("never")

    await in_a_fiber(works())
    assert (went, scope.cancelled_caught) == (["made"], True)
