"""``/livez``, ``/readyz``, ``/metrics``, and ``POST /reload``; ``/routes`` is in ``routes``, ``/pools`` in
``pools``."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import hypercorn.config
import hypercorn.trio
import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.pools import Pooled, pool_handlers
from amqpgate.admin.routes import Steered, route_handlers
from amqpgate.config import Admin
from amqpgate.gateway.reloading import PolicyState, Status
from amqpgate.yamldoc import Secret

log = logging.getLogger(__name__)


class Subject(Steered, Pooled, Protocol):
    """What the admin interface speaks about: one gateway, or the workers of one."""

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""

    async def metrics_text(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""

    async def reload_policies(self) -> PolicyState:
        """Read the policies again."""

    async def policy_state(self) -> PolicyState:
        """Which policies are in force, and what was wrong with those read last."""


#: What the answer to a reload says by its status.
_STATUS: dict[Status, int] = {"done": 200, "nothing": 409, "refused": 422, "unknown": 503}


def application(subject: Subject, token: Secret | None) -> Starlette:
    """The ASGI application. With a token every request but the probes must bear it.

    Probes without it are told whether the gateway is ready, and no more.
    """

    def is_trusted(request: Request) -> bool:
        given = request.headers.get("authorization", "")
        return token is None or hmac.compare_digest(given.encode(), f"Bearer {token.reveal()}".encode())

    async def livez(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        ready = subject.ready
        text = "ready\n" if ready else "not ready: draining or starting\n"
        if is_trusted(request):
            text += _policies(await subject.policy_state())
        return PlainTextResponse(text, status_code=200 if ready else 503)

    async def reload(request: Request) -> Response:
        if "origin" in request.headers:
            # A page in an operator's browser may send this to a loopback address, where no token guards it.
            return PlainTextResponse("not for web pages\n", status_code=403)
        state = await subject.reload_policies()
        return Response(state.as_json() + "\n", _STATUS[state.status], media_type="application/json")

    async def metrics(_request: Request) -> Response:
        return Response(await subject.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def guard(request: Request, go_on: RequestResponseEndpoint) -> Response:
        if request.url.path not in ("/livez", "/readyz") and not is_trusted(request):
            return PlainTextResponse(
                "a bearer token is needed\n", status_code=401, headers={"www-authenticate": "Bearer"}
            )
        return await go_on(request)

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/reload", reload, methods=["POST"]),
            *route_handlers(subject, token),
            *pool_handlers(subject),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


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
        application(subject, token),  # type: ignore[arg-type]
        config,
        shutdown_trigger=shutdown,
        task_status=task_status,
        mode="asgi",
    )
