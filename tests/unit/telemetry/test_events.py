"""Who listens gets what fits, in order, and is told how much did not."""

from __future__ import annotations

import trio
import trio.testing

from amqpgate.telemetry.events import EventSubscriber, EventText, Item, at_hand, members_of


def _told(items: list[Item]) -> list[object]:
    return [what["count"] if isinstance(what, dict) else what for _, what in items]


async def test_what_does_not_fit_is_counted_and_told_first() -> None:
    subscriber = EventSubscriber(most=2)
    assert [subscriber.put(number) for number in range(4)] == [True, True, False, False]
    assert await anext(subscriber) == (0, 0)
    # There is room for one: that it missed two, and not for what comes now.
    assert not subscriber.put(4)
    assert at_hand(subscriber) == (0, 1)
    assert subscriber.put(5, 7) is False
    subscriber.end()
    assert _told([item async for item in subscriber]) == [2, 1]
    assert at_hand(subscriber) is None


async def test_who_waits_is_woken_and_who_gives_up_misses_nothing() -> None:
    subscriber, got = EventSubscriber(), list[Item]()

    async def listen() -> None:
        async for item in subscriber:
            got.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        subscriber.put("first")
        await trio.testing.wait_all_tasks_blocked()
        assert got == [(0, "first")]
        with trio.move_on_after(0):
            await anext(EventSubscriber())
        nursery.cancel_scope.cancel()
        subscriber.put("second")
    subscriber.put("third")
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(subscriber)
    assert got + [await anext(subscriber)] + [at_hand(subscriber)] == [
        (0, "first"), (0, "second"), (0, "third")
    ]  # fmt: skip


async def test_the_end_is_heard_by_who_waits() -> None:
    subscriber = EventSubscriber()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(anext, subscriber, None)
        await trio.testing.wait_all_tasks_blocked()
        subscriber.end()


def test_text_is_the_same_in_another_process() -> None:
    said = EventText("operation", members_of({"a": "\n\udcff", "b": [1, None]}))
    assert said.members == '"a":"\\n\\udcff","b":[1,null]'
    assert EventText.unpacked(said.packed) == said
