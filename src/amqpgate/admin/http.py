"""The admin interface as one application: its paths, who may use them (`guarding`), and the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, cast

import hypercorn.trio
import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.decisions import decision_handlers
from amqpgate.admin.events import event_handlers
from amqpgate.admin.guarding import Guard, is_trusted
from amqpgate.admin.https import ServerConfig
from amqpgate.admin.lifecycle import lifecycle_handlers
from amqpgate.admin.openapi import openapi_handlers
from amqpgate.admin.page import page_handlers
from amqpgate.admin.paths import Path
from amqpgate.admin.policies import policy_handlers
from amqpgate.admin.pools import pool_handlers
from amqpgate.admin.probes import probe_handlers
from amqpgate.admin.routes import route_handlers
from amqpgate.admin.sessions import session_handlers
from amqpgate.admin.settings import setting_handlers
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.admin.tap import tap_handlers
from amqpgate.admin.upstreams import upstream_handlers
from amqpgate.config import Address, Admin, AdminTls, ListenerTls
from amqpgate.telemetry.answers import IncompleteError
from amqpgate.yamldoc import Secret

#: Seconds for answers and streams that are under way when the gateway ends.
LAST_WORDS: Final = 1.0


def application(
    subject: AdminSubject, token: Secret | None, *, over: trio.Event, is_loopback: bool = True
) -> Starlette:
    """The ASGI application. Streams end at ``over``."""
    routes: list[Route] = [
        *probe_handlers(subject, lambda request: is_trusted(request, token)),
        *setting_handlers(subject),
        *policy_handlers(subject),
        *session_handlers(subject),
        *upstream_handlers(subject),
        *route_handlers(subject, token),
        *pool_handlers(subject),
        *decision_handlers(subject),
        *event_handlers(subject, over),
        *lifecycle_handlers(subject),
        *tap_handlers(subject, token, over),
        *page_handlers(subject),
    ]
    routes += openapi_handlers(routes)
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


async def serve_admin(
    admin: Admin,
    subject: AdminSubject,
    *,
    shutdown: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``shutdown`` returns. The status is the addresses that were bound, the probes' last."""
    over = trio.Event()
    main = application(subject, admin.token(), over=over, is_loopback=admin.bind.is_loopback)
    async with trio.open_nursery() as nursery:
        bound: list[str] = await nursery.start(_serve, main, admin.bind, admin.tls, over)
        if admin.probes is not None:
            probes = Starlette(routes=probe_handlers(subject, lambda _: False))
            bound += await nursery.start(_serve, probes, admin.probes, None, over)
        task_status.started(bound)
        await shutdown()
        over.set()


async def _serve(
    served: Starlette,
    address: Address,
    tls: AdminTls | None,
    over: trio.Event,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    files = None if tls is None else ListenerTls(cert=tls.cert, key=tls.key)
    config = ServerConfig(str(address), files)
    config.graceful_timeout = LAST_WORDS
    await hypercorn.trio.serve(
        served,  # type: ignore[arg-type]
        config,
        shutdown_trigger=over.wait,
        task_status=task_status,
        mode="asgi",
    )
