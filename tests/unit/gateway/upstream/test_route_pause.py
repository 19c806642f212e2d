"""Paused routes: whose word holds, who waits, and for how long."""

from __future__ import annotations

import pytest
import trio

from amqpgate.gateway.upstream.route_pause import PausedError, RoutePause, RoutePauses
from amqpgate.policy import Route
from tests.unit.policy.routes import document, load


def route(more: str = "") -> Route:
    (policy,) = load(document(f"id: r, upstream: {{cluster: a}}{more}")).routes
    return policy.spec.routes[0]


def test_an_operators_word_holds_until_the_document_says_the_same() -> None:
    pause = RoutePause()
    pause.document(False)
    pause.order(True)
    pause.document(False)
    assert pause.is_paused
    pause.document(True)
    assert pause.is_paused
    pause.document(False)
    assert not pause.is_paused


async def test_so_many_wait_and_so_long(autojump_clock: trio.testing.MockClock) -> None:
    pauses, one = RoutePauses(), route(", paused: true, pause: {most: 1}")
    pauses.use({one.id: one})
    assert pauses.is_paused(one)
    outcomes: list[str] = []

    async def wait(until: float) -> None:
        try:
            await pauses.wait(one, until)
        except PausedError as error:
            outcomes.append(error.outcome)
        else:
            outcomes.append("goes on")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, trio.current_time() + 5)
        await trio.testing.wait_all_tasks_blocked()
        await wait(trio.current_time() + 5)
        assert outcomes == ["full"]
    assert outcomes == ["full", "timeout"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, trio.current_time() + 5)
        await trio.testing.wait_all_tasks_blocked()
        pauses.order(one.id, False)
    assert outcomes == ["full", "timeout", "goes on"]
    assert not pauses.is_paused(one)


async def test_who_waits_at_a_route_that_goes_looks_for_another(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pauses, one = RoutePauses(), route(", paused: true")
    pauses.use({one.id: one})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pauses.wait, one, trio.current_time() + 1e6)
        await trio.testing.wait_all_tasks_blocked()
        pauses.use({})
    with pytest.raises(KeyError):
        pauses.order(one.id, True)
