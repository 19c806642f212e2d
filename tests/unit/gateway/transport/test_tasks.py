"""A task beside all else ends alone."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from amqpgate.gateway.transport import tasks
from amqpgate.gateway.transport.tasks import AGAIN, contained, kept


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


async def test_that_it_failed_need_not_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be no memory for that."""

    async def fails() -> None:
        raise MemoryError

    def say(*_: object, **__: object) -> None:
        said.append(1)
        raise MemoryError

    said: list[int] = []
    monkeypatch.setattr(tasks.log, "exception", say)
    await contained("the sessions", fails)
    assert said


async def test_what_is_kept_begins_anew(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[float] = []
    sleep = trio.sleep

    async def fails_twice() -> None:
        began.append(trio.current_time())
        if len(began) < 3:
            raise MemoryError

    async def poor(seconds: float) -> None:
        monkeypatch.setattr(trio, "sleep", sleep)
        raise MemoryError

    await kept("the gateway", fails_twice)
    first, *later = began
    assert [at - first for at in later] == [AGAIN, 2 * AGAIN]
    assert {(record.levelno, record.getMessage()) for record in caplog.records} == {
        (logging.ERROR, "a task of the gateway failed, and begins anew")
    }
    began.clear()
    monkeypatch.setattr(trio, "sleep", poor)
    await kept("the gateway", fails_twice)
    assert len(began) == 3


async def test_what_is_kept_can_be_cancelled() -> None:
    with trio.move_on_after(0.01) as scope:
        await kept("the gateway", trio.sleep_forever)
    assert scope.cancelled_caught
