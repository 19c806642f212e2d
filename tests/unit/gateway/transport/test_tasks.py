"""A task beside all else ends alone."""

from __future__ import annotations

import pytest
import trio

from amqpgate.gateway.transport.tasks import contained


async def test_its_fault_is_logged_as_whose_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(contained, "the sessions", fails)
    assert [record.getMessage() for record in caplog.records] == ["a task of the sessions failed"]


async def test_it_can_be_cancelled() -> None:
    with trio.move_on_after(0.01) as scope:
        await contained("the sessions", trio.sleep_forever)
    assert scope.cancelled_caught
