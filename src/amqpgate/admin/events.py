"""``/events``: what happens, while it happens, as server-sent events (HTML standard, section 9.2)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias, cast

import trio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from amqpgate.admin.paths import Parameter, Path, ResponseDoc
from amqpgate.admin.streaming import while_heard
from amqpgate.admin.subject import AdminSubject
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.events import Item

#: Seconds after which a comment says that the stream is still there: proxies close silent connections.
_STILL_HERE: Final = 15.0

#: Streams that are open at once; each may have `telemetry.events.MOST` items waiting.
_MOST: Final = 64

_Items: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Item]]


def event_handlers(subject: AdminSubject, over: trio.Event) -> list[Route]:
    """The path; streams end at ``over``."""

    places = trio.Semaphore(_MOST)

    async def listing(request: Request) -> Response:
        only = request.query_params.get("only", "")
        wanted = frozenset(name.strip() for name in only.split(",")) if only else None
        return EventStream(subject.stream("events"), over, wanted, places)

    return [
        Path(
            "/events",
            listing,
            "Server-sent events: decisions, sessions, policies, upstreams, routes, the gateway.",
            parameters=[Parameter("only", "Names of events, with commas between them.")],
            answers={
                200: ResponseDoc("Events for as long as the client listens.", "text/event-stream"),
                503: ResponseDoc("Too many listen already."),
            },
        )
    ]


class EventStream(Response):
    """Items of a stream as events, until the client leaves or ``over`` is set; ``wanted`` by their names.

    An item's ``event`` is the event's name. How many did not fit is always told. ``places`` are those for
    streams: where there is none left, the answer is 503.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        items: _Items,
        over: trio.Event,
        wanted: frozenset[str] | None = None,
        places: trio.Semaphore | None = None,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._items, self._over, self._wanted = items, over, wanted
        self._places = places or trio.Semaphore(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._places.acquire_nowait()
        except trio.WouldBlock:
            await PlainTextResponse("too many listen already\n", 503)(scope, receive, send)
            return
        try:
            await self._stream(scope, receive, send)
        finally:
            self._places.release()

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(head)
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
            return
        async with while_heard(receive, self._over):
            await self._tell(send)
        if self._over.is_set():
            await _send(send, event_text("end", {}), more=False)

    async def _tell(self, send: Send) -> None:
        async with self._items as items:
            await _send(send, b": here\n\n")
            while True:
                item = None
                with trio.move_on_after(_STILL_HERE):
                    try:
                        item = await anext(items)
                    except StopAsyncIteration:
                        return
                if item is None:
                    await _send(send, b": still here\n\n")
                    continue
                number, what = item[0], cast("Mapping[str, JSON]", item[1])
                name = str(what["event"])
                if self._wanted is None or name in self._wanted or name == "dropped":
                    told = {key: value for key, value in what.items() if key != "event"}
                    await _send(send, event_text(name, {"worker": number, **told}))


def event_text(name: str, data: Mapping[str, JSON]) -> bytes:
    """One event. JSON has no line ends in it."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def _send(send: Send, text: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": more})
