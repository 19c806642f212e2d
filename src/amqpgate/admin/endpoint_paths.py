"""The `endpoint`s as paths of the web framework, for requests that `plain` leaves to it, and for OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import body_of
from amqpgate.admin.endpoint import Asked, Endpoint, Endpoints
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.telemetry.answers import JSON

#: Of a request, whether who asks may know everything.
IsTrusted: TypeAlias = Callable[[Request], bool]

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


def probe_handlers(endpoints: Endpoints, is_trusted: IsTrusted) -> list[Route]:
    """The paths of the `probes`. All but one need no token."""

    def of(path: str) -> Callable[[Request], Awaitable[Response]]:
        return _handler(endpoints["GET", path], is_trusted)

    yes = ResponseDoc("Yes.")
    return [
        Path("/livez", of("/livez"), "Whether the process answers.", answers={200: yes}, is_open=True),
        Path(
            "/readyz",
            of("/readyz"),
            "Whether new connections are accepted; and, for who bears the token, the policies in force.",
            answers={200: yes, 503: ResponseDoc("No: it starts, is paused, drains, or has lost its audit.")},
            is_open=True,
        ),
        Path(
            "/startupz",
            of("/startupz"),
            "Whether they were ever accepted.",
            answers={200: yes, 503: ResponseDoc("Not yet.")},
            is_open=True,
        ),
        Path(
            "/metrics", of("/metrics"), "Prometheus' text format.", answers={200: ResponseDoc("All metrics.")}
        ),
    ]


def lifecycle_handlers(endpoints: Endpoints) -> list[Route]:
    """The paths of the `lifecycle`."""

    def of(method: str, path: str) -> Callable[[Request], Awaitable[Response]]:
        return _handler(endpoints[method, path], lambda _: True)

    shown = json_answer("How it stands with new connections, of all workers together.", _STANDING)
    done = json_answer("The same, afterwards.", _STANDING)
    return [
        Path(
            "/lifecycle", of("GET", "/lifecycle"), "Whether new connections are taken.", answers={200: shown}
        ),
        Path(
            "/pause",
            of("POST", "/pause"),
            "Refuse new connections; sessions go on.",
            method="POST",
            answers={200: done},
        ),
        Path(
            "/resume",
            of("POST", "/resume"),
            "Take new connections again.",
            method="POST",
            answers={200: done},
        ),
        Path(
            "/drain",
            of("POST", "/drain"),
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


def _handler(endpoint: Endpoint, is_trusted: IsTrusted) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        # What changes nothing has no use for a body, and so waits for none.
        body = await body_of(request) if request.method == "POST" else b""
        told = await endpoint(Asked(is_trusted(request), body, request.headers.get("accept", "")))
        response = Response(told.body, told.status, media_type=told.media)
        if told.after is not None:
            response.background = BackgroundTask(_do, told.after)
        return response

    return handle


async def _do(after: Callable[[], None]) -> None:
    # Not as it is: what is not async would run in a thread.
    after()
