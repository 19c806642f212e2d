"""``/livez``, ``/readyz`` and ``/metrics``; ``/routes`` is in ``routes``."""

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

from amqpgate.admin.routes import Steered, route_handlers
from amqpgate.config import Admin
from amqpgate.yamldoc import Secret

log = logging.getLogger(__name__)


class Subject(Steered, Protocol):
    """What the admin interface speaks about: one gateway, or the workers of one."""

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""

    async def metrics_text(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""


def application(subject: Subject, token: Secret | None) -> Starlette:
    """The ASGI application. With a token every request but the probes must bear it."""

    async def livez(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if subject.ready:
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready: draining or starting\n", status_code=503)

    async def metrics(_request: Request) -> Response:
        return Response(await subject.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def guard(request: Request, go_on: RequestResponseEndpoint) -> Response:
        if token is not None and request.url.path not in ("/livez", "/readyz"):
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {token.reveal()}".encode()):
                return PlainTextResponse(
                    "a bearer token is needed\n", status_code=401, headers={"www-authenticate": "Bearer"}
                )
        return await go_on(request)

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            *route_handlers(subject, token),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


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
