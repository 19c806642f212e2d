"""`guarding` as ASGI middleware."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from amqpgate.admin.guarding import Rules
from amqpgate.admin.subject import Refused


class Guard:
    """Middleware that answers what ``rules`` do not let pass."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            # The path that the router sees. `request.url` is made of Host, too: with starlette 0.41, a Host
            # of "x/livez?" puts another path in its place.
            self._rules.check(
                scope["method"], scope["path"], scope.get("query_string", b""), Request(scope).headers
            )
        except Refused as refused:
            headers = {"www-authenticate": "Bearer"} if refused.status == 401 else None
            response = PlainTextResponse(f"{refused}\n", refused.status, headers)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)
