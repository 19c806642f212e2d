"""The admin interface as one application of the web framework: its paths, and who may use them (`guarding`).

Imported when the first request comes that `http` does not answer itself.
"""

from __future__ import annotations

from typing import cast

import trio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.decisions import decision_handlers
from amqpgate.admin.endpoint import Endpoints
from amqpgate.admin.endpoint_paths import lifecycle_handlers, probe_handlers
from amqpgate.admin.events import event_handlers
from amqpgate.admin.guard import Guard
from amqpgate.admin.guarding import Rules, is_trusted
from amqpgate.admin.history import history_handlers
from amqpgate.admin.limits import limit_handlers
from amqpgate.admin.openapi import openapi_handlers
from amqpgate.admin.page import page_handlers
from amqpgate.admin.paths import Path
from amqpgate.admin.policies import policy_handlers
from amqpgate.admin.pools import pool_handlers
from amqpgate.admin.routes import route_handlers
from amqpgate.admin.sessions import session_handlers
from amqpgate.admin.settings import setting_handlers
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.admin.tap import tap_handlers
from amqpgate.admin.upstreams import upstream_handlers
from amqpgate.telemetry.answers import IncompleteError
from amqpgate.yamldoc import Secret


def application(
    subject: AdminSubject,
    endpoints: Endpoints,
    token: Secret | None,
    *,
    over: trio.Event,
    is_loopback: bool = True,
) -> Starlette:
    """The ASGI application. Streams end at ``over``."""
    routes: list[Route] = [
        *probe_handlers(endpoints, lambda request: is_trusted(request.headers, token)),
        *setting_handlers(subject),
        *policy_handlers(subject),
        *session_handlers(subject),
        *upstream_handlers(subject),
        *route_handlers(subject, token),
        *pool_handlers(subject),
        *limit_handlers(subject),
        *decision_handlers(subject),
        *history_handlers(subject),
        *event_handlers(subject, over),
        *lifecycle_handlers(endpoints),
        *tap_handlers(subject, token, over),
        *page_handlers(subject),
    ]
    routes += openapi_handlers(routes)
    is_open = frozenset(route.path for route in routes if isinstance(route, Path) and route.is_open)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, Rules(token, is_open, is_loopback))],
        exception_handlers={Refused: _refused, IncompleteError: _incomplete},
    )


def probes_application(endpoints: Endpoints) -> Starlette:
    """That of the address that has the probes alone."""
    return Starlette(routes=probe_handlers(endpoints, lambda _: False))


async def _refused(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", cast("Refused", error).status)


async def _incomplete(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 503)
