"""Waiting for what others bring about."""

from __future__ import annotations

import trio

from amqpgate.gateway.pool.changes import Changes


async def test_what_holds_is_not_waited_for() -> None:
    await Changes().until(lambda: True)


async def test_each_change_is_looked_at_by_all_and_nothing_else_is(autojump_clock: object) -> None:
    changes, value, seen = Changes(), [0], list[tuple[int, int]]()

    async def wait(least: int) -> None:
        def holds() -> bool:
            seen.append((least, value[0]))
            return value[0] >= least

        await changes.until(holds)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, 1)
        nursery.start_soon(wait, 2)
        await trio.sleep(60)
        assert sorted(seen) == [(1, 0), (2, 0)]
        for one in (1, 2):
            value[0] = one
            changes.tell()
            changes.tell()
            await trio.sleep(60)
    assert sorted(seen) == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
