"""The stream of a tap: what is asked of whom, and what the end says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from amqpgate.admin.subject import Refused
from amqpgate.admin.tap import MOST_TAPS, tap_handlers
from amqpgate.telemetry.answers import JSON, NOTHING, Answers, Args
from amqpgate.telemetry.events import EventSubscriber, EventText, Item, members_of

OPERATION = {"event": "operation", "operation": "basic.publish"}


@attrs.define
class Workers:
    """Two, of which one has matched more than it could show."""

    subscriber: EventSubscriber = attrs.field(factory=EventSubscriber)
    asked: list[tuple[str, Args]] = attrs.field(factory=list)
    ready: bool = True
    started: bool = True

    @asynccontextmanager
    async def stream(self, name: str, args: Args = NOTHING) -> AsyncIterator[AsyncIterator[Item]]:
        self.asked.append((name, args))
        try:
            yield aiter(self.subscriber)
        finally:
            self.asked.append(("over", {}))

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        self.asked.append((name, args))
        answers: dict[int, JSON] = {0: {"matched": 10, "shown": 2}, 1: {"matched": 5, "shown": 1}, 2: None}
        return Answers(answers)

    async def metrics_text(self) -> bytes:
        return b""


@attrs.define(slots=False)
class Client:
    """One end of an ASGI application."""

    app: Starlette
    status: int = 0
    body: bytes = b""
    is_over: bool = False
    left: trio.Event = attrs.field(factory=trio.Event)
    takes: trio.Event = attrs.field(factory=trio.Event)

    async def ask(self, query: str = "", method: str = "GET", header: bytes = b"1") -> None:
        headers = [(b"x-amqpgate", header)] if header else []
        scope = {
            "type": "http",
            "method": method,
            "path": "/tap",
            "query_string": query.encode(),
            "headers": headers,
            "client": ("10.0.0.9", 4711),
        }
        await self.app(scope, self.receive, self.send)  # type: ignore[arg-type]

    async def receive(self) -> dict[str, object]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, object]) -> None:
        await self.takes.wait()
        if message["type"] == "http.response.start":
            assert isinstance(message["status"], int)
            self.status = message["status"]
        else:
            assert isinstance(message.get("body", b""), bytes)
            self.body += message.get("body", b"")  # type: ignore[operator]
            self.is_over = not message.get("more_body", False)

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.body.splitlines()]


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return PlainTextResponse(f"{error}", error.status)


@attrs.define
class Stage:
    workers: Workers
    over: trio.Event
    app: Starlette

    def client(self) -> Client:
        client = Client(self.app)
        client.takes.set()
        return client


@pytest.fixture
def stage() -> Stage:
    workers, over = Workers(), trio.Event()
    app = Starlette(routes=tap_handlers(workers, None, over), exception_handlers={Refused: _refused})
    return Stage(workers, over, app)


async def test_the_end_says_how_many_matched(stage: Stage, autojump_clock: object) -> None:
    client, subscriber = stage.client(), stage.workers.subscriber
    subscriber.put({"event": "begun"}, 1)
    for worker in (0, 1, 0):
        subscriber.put(OPERATION, worker)
    subscriber.put({"event": "dropped", "at": 0.0, "count": 7})
    await client.ask("match=exchange%3Dorders%20or%20user%3Dx&seconds=5&every=3&frames=1")
    assert (client.status, client.is_over) == (200, True)
    assert client.lines == [
        {"event": "begun", "worker": 1},
        *[{**OPERATION, "worker": worker} for worker in (0, 1, 0)],
        {"event": "end", "matched": 15, "shown": 3},
    ]
    (stream, asked), (untap, named), (over, _) = stage.workers.asked
    assert (stream, untap, over) == ("tap", "untap", "over")
    assert asked == {
        "tap": named["tap"],
        "match": "exchange = orders or user = x",
        "every": 3,
        "frames": True,
    }
    assert trio.current_time() >= 5


async def test_what_is_text_already_is_said_as_it_is(stage: Stage, autojump_clock: object) -> None:
    client, subscriber = stage.client(), stage.workers.subscriber
    for worker in (0, 1):
        subscriber.put({"event": "operation", "time": 1.5, "name": "\udcff"}, worker)
        subscriber.put(EventText("operation", members_of({"time": 1.5, "name": "\udcff"})), worker)
    await client.ask("count=4")
    assert client.body.splitlines(keepends=True)[:4] == [
        b'{"event":"operation","worker":%d,"time":1.5,"name":"\\udcff"}\n' % worker for worker in (0, 0, 1, 1)
    ]


async def test_what_is_there_already_is_said_at_once(stage: Stage, autojump_clock: object) -> None:
    """Up to some bytes: trio would run for each line otherwise."""
    client = stage.client()
    sizes: list[int] = []
    send = client.send

    async def look(message: dict[str, object]) -> None:
        body = message.get("body", b"")
        assert isinstance(body, bytes)
        sizes.append(body.count(b"\n"))
        await send(message)

    client.send = look  # type: ignore[method-assign]
    for _ in range(20):
        stage.workers.subscriber.put(OPERATION)
    for _ in range(3):
        stage.workers.subscriber.put({**OPERATION, "body": "x" * (60 << 10)})
    await client.ask("seconds=5")
    # The head, the lines, the last line, and the end.
    assert sizes == [0, 22, 1, 1, 0]


async def test_it_ends_after_so_many(stage: Stage, autojump_clock: object) -> None:
    client = stage.client()
    for _ in range(5):
        stage.workers.subscriber.put(OPERATION)
    await client.ask("count=2")
    assert [line["event"] for line in client.lines] == ["operation", "operation", "end"]
    assert client.lines[-1] == {"event": "end", "matched": 15, "shown": 2}


async def test_what_is_lost_on_the_way_was_not_shown(stage: Stage, autojump_clock: object) -> None:
    client = stage.client()
    stage.workers.subscriber.put(OPERATION)
    await client.ask("seconds=1")
    assert client.lines[-1] == {"event": "end", "matched": 15, "shown": 1}


@pytest.mark.parametrize("how", ["leaves", "gateway", "sleeps"])
async def test_whoever_leaves_is_forgotten(
    stage: Stage, how: str, autojump_clock: object, nursery: trio.Nursery
) -> None:
    clients = [stage.client() for _ in range(MOST_TAPS)]
    for client in clients:
        nursery.start_soon(client.ask)
    await trio.testing.wait_all_tasks_blocked()
    late = stage.client()
    await late.ask()
    assert (late.status, late.body) == (429, b"there are 4 taps already")
    if how == "leaves":
        for client in clients:
            client.left.set()
    elif how == "gateway":
        stage.over.set()
    else:
        for client in clients:
            client.takes = trio.Event()
        for _ in clients:
            # They share a subscriber: each takes what is there.
            stage.workers.subscriber.put(OPERATION)
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(40)
    await trio.testing.wait_all_tasks_blocked()
    assert [name for name, _ in stage.workers.asked].count("over") == MOST_TAPS
    assert all(not client.is_over for client in clients)


async def test_who_asks_at_once_gets_no_place_of_another(stage: Stage, nursery: trio.Nursery) -> None:
    """Nobody takes his answer yet: they all look before the first one has begun."""
    clients = [Client(stage.app) for _ in range(MOST_TAPS + 3)]
    for client in clients:
        nursery.start_soon(client.ask)
    await trio.testing.wait_all_tasks_blocked()
    for client in clients:
        client.takes.set()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(client.status for client in clients) == [200] * MOST_TAPS + [429] * 3
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("match=vhost%3D", "match: column 7: expected a value after =, not the end; texts stand in quotes"),
        ("every=0", "every: a whole number from 1 to 1000000"),
        ("count=x", "count: a whole number from 1 to 999999999"),
        ("seconds=0", "seconds: a number above 0, up to 86400"),
        ("seconds=nan", "seconds: a number above 0, up to 86400"),
        ("seconds=soon", "seconds: a number above 0, up to 86400"),
    ],
)
async def test_what_cannot_be_asked(stage: Stage, query: str, why: str) -> None:
    client = stage.client()
    await client.ask(query)
    assert (client.status, client.body.decode()) == (400, why)
    assert not stage.workers.asked


async def test_no_page_can_ask_in_passing(stage: Stage) -> None:
    client = stage.client()
    await client.ask(header=b"")
    assert client.status == 403
    head = stage.client()
    await head.ask(method="HEAD")
    assert (head.status, head.body, head.is_over) == (200, b"", True)
    assert not stage.workers.asked
