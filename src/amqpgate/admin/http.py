"""The admin interface as one application: its paths, who may use them (`guarding`), and the server."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import cast

import hypercorn.config
import hypercorn.trio
import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.guarding import Guard, is_trusted
from amqpgate.admin.paths import Path
from amqpgate.admin.pools import pool_handlers
from amqpgate.admin.routes import route_handlers
from amqpgate.admin.subject import Refused, Subject
from amqpgate.admin.tap import tap_handlers
from amqpgate.config import Admin
from amqpgate.gateway.answers import Answers, IncompleteError
from amqpgate.gateway.reloading import PolicyState, Status, combine
from amqpgate.yamldoc import Secret

#: What the answer to a reload says by its status.
_STATUS: dict[Status, int] = {"done": 200, "nothing": 409, "refused": 422, "unknown": 503}
#: How long the workers may take to read the policies again, and to say which ones hold.
_RELOAD_PATIENCE, _STATE_PATIENCE = 30.0, 0.5


def application(subject: Subject, token: Secret | None, *, is_loopback: bool = True) -> Starlette:
    """The ASGI application. Probes without the token are told whether the gateway is ready, and no more."""

    async def livez(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        ready = subject.ready
        text = "ready\n" if ready else "not ready: draining or starting\n"
        if is_trusted(request, token):
            text += _policies(policy_state(await subject.call("policy_state", patience=_STATE_PATIENCE)))
        return PlainTextResponse(text, status_code=200 if ready else 503)

    async def reload(_request: Request) -> Response:
        state = policy_state(await subject.call("reload", patience=_RELOAD_PATIENCE))
        return Response(state.as_json() + "\n", _STATUS[state.status], media_type="application/json")

    async def metrics(_request: Request) -> Response:
        return Response(await subject.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [
        Path("/livez", livez, "The process runs.", is_open=True),
        Path("/readyz", readyz, "New connections are accepted.", is_open=True),
        Route("/metrics", metrics),
        Route("/reload", reload, methods=["POST"]),
        *route_handlers(subject, token),
        *pool_handlers(subject),
        *tap_handlers(subject, token, trio.Event()),
    ]
    is_open = frozenset(route.path for route in routes if isinstance(route, Path) and route.is_open)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token, is_open.__contains__, is_loopback=is_loopback)],
        exception_handlers={Refused: _refused, IncompleteError: _incomplete},
    )


async def _refused(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", cast("Refused", error).status)


async def _incomplete(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 503)


def policy_state(answers: Answers) -> PolicyState:
    """What the workers say of their policies, as one."""
    said = [PolicyState.from_json(json.dumps(state)) for state in answers.values()]
    return combine([*said, *[None] * len(answers.silent)])


def _policies(state: PolicyState) -> str:
    """The lines of ``/readyz`` that follow the first one."""
    text = f"policies: {state.shown}\n" if state.digest else ""
    if state.error is None or state.status == "nothing":
        return text
    where = "".join(f"{part}:" for part in (state.file, state.line, state.column) if part is not None)
    return f"{text}policies: {where}{' ' if where else ''}{state.error}\n"


async def serve_admin(
    admin: Admin,
    subject: Subject,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``shutdown`` returns. The status is the list of addresses that were bound."""
    config = hypercorn.config.Config()
    config.bind = [f"{admin.bind.host}:{admin.bind.port}"]
    config.graceful_timeout = 1.0
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    token = admin.token()
    await hypercorn.trio.serve(
        application(subject, token, is_loopback=admin.bind.is_loopback),  # type: ignore[arg-type]
        config,
        shutdown_trigger=shutdown,
        task_status=task_status,
        mode="asgi",
    )
