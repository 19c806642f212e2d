"""Which connection of the admin interface gives way to a new one."""

from __future__ import annotations

import trio

from amqpgate.admin.crowd import Crowd


async def test_the_one_on_which_nothing_has_moved_for_longest_gives_way() -> None:
    crowd = Crowd(3)
    scopes = [trio.CancelScope() for _ in range(3)]
    for scope in scopes:
        crowd.enter(scope)
    crowd.moved(scopes[0])
    assert not any(scope.cancel_called for scope in scopes)
    crowd.enter(trio.CancelScope())
    assert [scope.cancel_called for scope in scopes] == [False, True, False]
    crowd.enter(trio.CancelScope())
    assert [scope.cancel_called for scope in scopes] == [False, True, True]
    assert len(crowd) == 3


async def test_what_is_over_counts_no_more() -> None:
    crowd = Crowd(1)
    first, second = trio.CancelScope(), trio.CancelScope()
    crowd.enter(first)
    crowd.leave(first)
    crowd.leave(first)
    # It still says a last word, maybe.
    crowd.moved(first)
    crowd.enter(second)
    assert not first.cancel_called
    assert len(crowd) == 1
