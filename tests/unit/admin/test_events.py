"""Event streams: what is told, to whom, and when they end. The gateway's own are in tests/interop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio
import trio.testing

from amqpgate.admin.events import EventStream
from amqpgate.telemetry.events import Events, EventSubscriber, Item


@attrs.define
class Client:
    """One end of an ASGI application."""

    sent: list[str] = attrs.field(factory=list)
    left: trio.Event = attrs.field(factory=trio.Event)
    #: Cleared: it takes nothing.
    takes: trio.Event = attrs.field(factory=trio.Event)
    is_over: bool = False

    async def receive(self) -> dict[str, object]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, object]) -> None:
        await self.takes.wait()
        if message["type"] == "http.response.body":
            body = message["body"]
            assert isinstance(body, bytes)
            self.sent.append(body.decode())
            self.is_over = not message["more_body"]

    def events(self) -> list[tuple[str, dict[str, object]]]:
        found = []
        for text in self.sent:
            if not text.startswith(":"):
                first, second, *rest = text.split("\n")
                assert rest == ["", ""]
                found.append((first.removeprefix("event: "), json.loads(second.removeprefix("data: "))))
        return found


@attrs.define
class Stage:
    client: Client
    events: Events
    over: trio.Event
    ended: trio.Event

    @property
    def is_heard(self) -> bool:
        return bool(self.events.listeners)


async def play(nursery: trio.Nursery, *, wanted: frozenset[str] | None = None, takes: bool = True) -> Stage:
    stage = Stage(Client(), Events(), trio.Event(), trio.Event())
    if takes:
        stage.client.takes.set()

    @asynccontextmanager
    async def stream() -> AsyncIterator[AsyncIterator[Item]]:
        subscriber = EventSubscriber(4)
        with stage.events.heard_by(subscriber):
            yield aiter(subscriber)

    async def serve() -> None:
        response = EventStream(stream(), stage.over, wanted)
        await response({"type": "http", "method": "GET"}, stage.client.receive, stage.client.send)
        stage.ended.set()

    nursery.start_soon(serve)
    await trio.testing.wait_all_tasks_blocked()
    return stage


async def test_what_happens_is_told_in_order(nursery: trio.Nursery, autojump_clock: object) -> None:
    stage = await play(nursery, wanted=frozenset({"a", "b"}))
    for number in range(4):
        stage.events.tell("a", number=number)
    stage.events.tell("c")
    stage.events.tell("b", text="two\nlines\r\n: and more")
    await trio.testing.wait_all_tasks_blocked()
    events = stage.client.events()
    # One was waited for, and there is room for four.
    assert [name for name, _ in events] == ["a"] * 4
    stage.events.tell("b", text="two\nlines\r\n: and more")
    await trio.testing.wait_all_tasks_blocked()
    events = stage.client.events()[4:]
    assert [name for name, _ in events] == ["dropped", "b"]
    assert events[0][1]["count"] == 1
    assert (events[1][1]["text"], events[1][1]["worker"]) == ("two\nlines\r\n: and more", 0)
    stage.client.left.set()


async def test_a_silent_stream_says_that_it_is_there(nursery: trio.Nursery, autojump_clock: object) -> None:
    stage = await play(nursery)
    await trio.sleep(50)
    assert stage.client.sent == [": here\n\n", *[": still here\n\n"] * 3]
    # Waiting in vain has not ended it.
    stage.events.tell("a")
    await trio.testing.wait_all_tasks_blocked()
    assert [name for name, _ in stage.client.events()] == ["a"]
    stage.client.left.set()


async def test_nothing_is_left_when_the_client_leaves(nursery: trio.Nursery, autojump_clock: object) -> None:
    for takes in (True, False):
        stage = await play(nursery, takes=takes)
        assert stage.is_heard is takes
        stage.client.left.set()
        stage.client.takes.set()
        await stage.ended.wait()
        assert not stage.is_heard
        stage.events.tell("a")
        assert stage.client.events() == []


async def test_it_ends_with_the_gateway(nursery: trio.Nursery, autojump_clock: object) -> None:
    stage = await play(nursery)
    stage.over.set()
    await stage.ended.wait()
    assert (stage.is_heard, stage.client.is_over) == (False, True)
    assert stage.client.events() == [("end", {})]


async def test_there_is_room_for_so_many() -> None:
    @asynccontextmanager
    async def stream() -> AsyncIterator[AsyncIterator[Item]]:
        yield aiter(EventSubscriber())

    client, places = Client(), trio.Semaphore(1)
    client.takes.set()
    statuses = []

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def listen() -> None:
        response = EventStream(stream(), trio.Event(), None, places)
        await response({"type": "http", "method": "GET"}, client.receive, send)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        await listen()
        assert statuses == [200, 503]
        client.left.set()
    await listen()
    assert statuses == [200, 503, 200]


async def test_a_subscriber_that_is_slow_is_told_how_much_it_missed() -> None:
    slow, quick = EventSubscriber(2), EventSubscriber(2)
    for number in range(5):
        assert slow.put(number) is (number < 2)
        assert quick.put(number)
        assert await anext(aiter(quick)) == (0, number)
    assert [await anext(aiter(slow)), await anext(aiter(slow))] == [(0, 0), (0, 1)]
    assert slow.put("more", worker=3)
    worker, missed = await anext(aiter(slow))
    assert isinstance(missed, dict)
    assert (worker, missed["event"], missed["count"]) == (3, "dropped", 3)
    assert await anext(aiter(slow)) == (3, "more")
