"""``/tap``: operations that match, while they pass, as lines of JSON; and how many there were.

::

    {"event": "begun", "worker": 0}                                       it taps from here on
    {"event": "operation", "worker": 0, "time": ..., "operation": ...}    (`gateway.tapping_lines`)
    {"event": "counts", "worker": 0, "matched": 1200, "shown": 1000}      each second, of one worker
    {"event": "end", "matched": 5000, "shown": 1000}                      of all; so many were shown above

What was not shown is the difference. Who leaves earlier gets no end.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Final, cast

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from amqpgate.admin.answering import number_of
from amqpgate.admin.asking import signed
from amqpgate.admin.guarding import may_change
from amqpgate.admin.paths import Parameter, Path, ResponseDoc
from amqpgate.admin.streaming import while_heard
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.policy.engine.taps import MatchError, parse
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.telemetry.events import EventText, Item, at_hand, members_of
from amqpgate.yamldoc import Secret

#: Taps at once.
MOST_TAPS: Final = 4
#: A day.
LONGEST: Final = 86400.0
#: Seconds for what is on its way when a tap ends.
_REST: Final = 1.0
#: Seconds for which a client may read nothing.
_PATIENCE: Final = 30.0
#: Bytes from which on lines are sent, though there are more.
_AT_ONCE: Final = 64 << 10


def tap_handlers(subject: AdminSubject, token: Secret | None, over: trio.Event) -> list[Route]:
    """The path; streams end at ``over``."""
    taps: set[str] = set()

    async def tap(request: Request) -> Response:
        # It makes the gateway work for whoever asks, so no page may ask for it in passing.
        may_change(request.headers, token)
        query = request.query_params
        try:
            match = str(parse(query.get("match", "")))
        except MatchError as error:
            raise Refused(400, f"match: {error}") from None
        every = number_of(query, "every", 1, 1, 1_000_000)
        count = number_of(query, "count", 0, 1, 999_999_999) or math.inf
        seconds = _seconds(query)
        # From the look until the place is taken there is nothing to wait for: no two take the same one.
        if len(taps) >= MOST_TAPS:
            raise Refused(429, f"there are {MOST_TAPS} taps already")
        name = secrets.token_hex(8)
        if request.method != "HEAD":
            taps.add(name)
        args = signed(
            {
                "tap": name,
                "match": match,
                "every": every,
                "frames": query.get("frames", "") in ("1", "true"),
            }
        )
        return _Tap(subject, args, seconds, count, taps, over)

    return [
        Path(
            "/tap",
            tap,
            "Operations that match, while they pass, as lines of JSON.",
            parameters=[
                Parameter("match", "What is shown, such as `vhost=prod and exchange=orders`; empty: all."),
                Parameter("every", "One message in so many.", {"type": "integer", "minimum": 1}),
                Parameter("seconds", "When it ends.", {"type": "number", "exclusiveMinimum": 0}),
                Parameter("count", "After so many operations it ends.", {"type": "integer", "minimum": 1}),
                Parameter("frames", "1: as AMQP frames, too.", {"type": "string"}),
            ],
            answers={
                200: ResponseDoc("A line for each, until the client leaves.", "application/x-ndjson"),
                400: ResponseDoc("A parameter is wrong."),
                403: ResponseDoc("It is asked for as a change is: not by pages of others."),
                429: ResponseDoc("There are too many."),
            },
        )
    ]


def _seconds(query: Mapping[str, str]) -> float:
    text = query.get("seconds")
    if text is None:
        return math.inf
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        raise Refused(400, f"seconds: a number above 0, up to {LONGEST:g}")
    return seconds


class _Tap(Response):
    media_type = "application/x-ndjson"

    def __init__(
        self,
        subject: AdminSubject,
        args: Args,
        seconds: float,
        count: float,
        taps: set[str],
        over: trio.Event,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._subject, self._args, self._taps, self._over = subject, args, taps, over
        self._seconds, self._count = seconds, count
        self._shown = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if scope["method"] == "HEAD":
            await send(head)
            await send({"type": "http.response.body"})
            return
        name = str(self._args["tap"])
        try:
            await send(head)
            async with while_heard(receive, self._over):
                with contextlib.suppress(trio.TooSlowError):
                    await self._tell(name, send)
        finally:
            self._taps.discard(name)

    async def _tell(self, name: str, send: Send) -> None:
        async with self._subject.stream("tap", self._args) as items:
            until = trio.current_time() + self._seconds
            while await self._pass_on(items, send, until, self._count):
                pass
            answers = await self._subject.call("untap", {"tap": name})
            counts = [cast("Mapping[str, int]", answer) for answer in answers.values() if answer is not None]
            shown = min(self._count, sum(count["shown"] for count in counts))
            until = trio.current_time() + _REST
            while await self._pass_on(items, send, until, shown):
                pass
            matched = sum(count["matched"] for count in counts)
            end = members_of({"event": "end", "matched": matched, "shown": self._shown})
            await _say(send, f"{{{end}}}\n".encode())
        await send({"type": "http.response.body"})

    async def _pass_on(self, items: AsyncIterator[Item], send: Send, until: float, most: float) -> bool:
        """Show what there is, of so many operations in all at most. Whether more may come until then."""
        if self._shown >= most:
            return False
        item = None
        with trio.move_on_at(until):
            item = await anext(items, None)
        if item is None:
            return False
        lines, size = [], 0
        while item is not None:
            worker, told = item
            if not isinstance(told, EventText):
                told = _text_of(cast("Mapping[str, JSON]", told))
            # Those that did not fit are among those that matched.
            if told.event != "dropped":
                self._shown += told.event == "operation"
                lines.append(
                    f'{{"event":"{told.event}","worker":{worker}{told.members and ","}{told.members}}}\n'
                )
                size += len(lines[-1])
            item = at_hand(items) if self._shown < most and size < _AT_ONCE else None
        if lines:
            await _say(send, "".join(lines).encode())
        return True


def _text_of(told: Mapping[str, JSON]) -> EventText:
    return EventText(str(told["event"]), members_of({name: told[name] for name in told if name != "event"}))


async def _say(send: Send, text: bytes) -> None:
    """Raises ``trio.TooSlowError`` where nobody reads."""
    with trio.fail_after(_PATIENCE):
        await send({"type": "http.response.body", "body": text, "more_body": True})
