"""Work in threads, and who hears of it."""

from __future__ import annotations

import threading

import pytest
import trio

from amqpgate.gateway.objects.store import StoreError
from amqpgate.gateway.objects.threads import StoreThreads, Work


async def test_the_gateways_thread_hears_what_came_of_it(nursery: trio.Nursery) -> None:
    threads, here = StoreThreads(), threading.get_ident()
    nursery.start_soon(threads.run)
    await trio.testing.wait_all_tasks_blocked()
    told: list[tuple[object, bool]] = []
    done = trio.Event()

    def hear(result: object) -> None:
        told.append((result, threading.get_ident() == here))
        if len(told) == 3:
            done.set()

    def refuse() -> int:
        raise StoreError("no")

    def fail() -> int:
        raise ValueError("a secret")

    for work in (threading.get_ident, refuse, fail):
        threads.start(Work.PUT, work, hear)
    await done.wait()
    assert all(is_here for _, is_here in told)
    results = [result for result, _ in told]
    assert here not in results
    assert sorted(str(result) for result in results if isinstance(result, StoreError)) == [
        "cannot use the object store: ValueError",
        "no",
    ]
    nursery.cancel_scope.cancel()


async def test_what_a_callback_raises_ends_nothing(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    threads = StoreThreads()
    nursery.start_soon(threads.run)
    await trio.testing.wait_all_tasks_blocked()
    done = trio.Event()
    threads.soon(lambda: 1 / 0)
    threads.soon(done.set)
    await done.wait()
    assert "a claim check failed" in caplog.text
    nursery.cancel_scope.cancel()


def test_nothing_is_done_while_no_gateway_runs() -> None:
    threads = StoreThreads()
    threads.start(Work.GET, lambda: pytest.fail("nobody is there"), lambda _: None)
    threads.soon(lambda: pytest.fail("nobody is there"))


async def test_what_nobody_hears_of_is_undone(nursery: trio.Nursery) -> None:
    threads, begun, may_end = StoreThreads(), threading.Event(), threading.Event()
    undone: list[str] = []
    is_undone = threading.Event()

    def work() -> str:
        begun.set()
        assert may_end.wait(20)
        return "a file"

    def undo(result: str) -> None:
        undone.append(result)
        is_undone.set()

    async with trio.open_nursery() as gateway:
        gateway.start_soon(threads.run)
        await trio.testing.wait_all_tasks_blocked()
        assert threads.start(Work.GET, work, lambda _: pytest.fail("it has ended"), undo)
        assert begun.wait(20)
        gateway.cancel_scope.cancel()
    may_end.set()
    assert is_undone.wait(20)
    assert undone == ["a file"]
    assert not threads.start(Work.GET, work, lambda _: None)
    assert not threads.soon(lambda: None)
