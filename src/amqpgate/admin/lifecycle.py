"""``/lifecycle``: whether new connections are taken, and how far a drain is; drain, pause and resume by POST.

A process that takes the ports over says so when it asks for the drain: the answer comes when nothing is
listened on here any more, and the admin address is given up behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.subject import AdminSubject, Refused, answer, object_of
from amqpgate.gateway.handshake.listeners import LINGER
from amqpgate.gateway.server.lifecycle import Standing, combine
from amqpgate.telemetry.answers import JSON, Answers

#: How long the workers of a process that is taken over may take to stop listening.
_HAND_OVER_PATIENCE = LINGER + 5.0

_SECONDS: Mapping[str, JSON] = {"type": "number", "minimum": 0, "maximum": 86400}
_DRAIN: Mapping[str, JSON] = {
    "type": "object",
    "properties": {"window": _SECONDS, "successors": {"type": "integer", "minimum": 1, "maximum": 256}},
    "additionalProperties": False,
}
_STANDING: Mapping[str, JSON] = {
    "type": "object",
    "properties": {
        "state": {"enum": ["starting", "ready", "paused", "draining"]},
        "sessions": {"type": "integer"},
        "connections": {"type": "integer"},
        "seconds_left": {"type": ["number", "null"]},
        "workers": {"type": "integer"},
    },
    "required": ["state", "sessions", "connections", "seconds_left", "workers"],
}


def lifecycle_handlers(subject: AdminSubject) -> list[Route]:
    """The paths."""
    has_successor = False

    async def standing(_request: Request) -> Response:
        return await _shown((await subject.call("lifecycle")).complete())

    async def pause(_request: Request) -> Response:
        return await _shown((await subject.order("pause")).complete())

    async def resume(_request: Request) -> Response:
        return await _shown((await subject.order("resume")).complete())

    async def drain(request: Request) -> Response:
        args = await _drain_args(request)
        if "successors" not in args:
            # Who does not answer has ended already, maybe.
            return await _shown(await subject.order("drain", args), 202)
        nonlocal has_successor
        if has_successor:
            raise Refused(409, "another process is taking the place of this one")
        has_successor = True
        answers = (await subject.order("drain", args, patience=_HAND_OVER_PATIENCE)).complete()
        response = await _shown(answers, 202)
        response.background = BackgroundTask(give_up)
        return response

    async def give_up() -> None:
        # Not as it is: what is not async would run in a thread.
        subject.hand_over()

    shown = json_answer("How it stands with new connections, of all workers together.", _STANDING)
    done = json_answer("The same, afterwards.", _STANDING)
    return [
        Path("/lifecycle", standing, "Whether new connections are taken.", answers={200: shown}),
        Path("/pause", pause, "Refuse new connections; sessions go on.", method="POST", answers={200: done}),
        Path("/resume", resume, "Take new connections again.", method="POST", answers={200: done}),
        Path(
            "/drain",
            drain,
            "Take no new connections, part with the sessions, and end.",
            method="POST",
            answers={
                202: done,
                400: ResponseDoc("The body says something else than a window."),
                409: ResponseDoc("Another process takes the ports over already."),
            },
            body=_DRAIN,
        ),
    ]


async def _shown(answers: Answers, status: int = 200) -> Response:
    standings = [Standing(**cast("dict[str, JSON]", one)) for one in answers.values()]  # type: ignore[arg-type]
    return await answer(attrs.asdict(combine(standings)), status)


async def _drain_args(request: Request) -> Mapping[str, JSON]:
    """What the body says: nothing, or a window in seconds, and how many processes take over."""
    said = await object_of(request, "window", "successors")
    for name, least, most, kinds in (("window", 0, 86400, (int, float)), ("successors", 1, 256, (int,))):
        value = said.get(name, least)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise Refused(400, f"{name}: a number from {least} to {most}")
    return said
