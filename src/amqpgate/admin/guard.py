"""`guarding` as ASGI middleware."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from amqpgate.admin.asking import asked_by, tell_refusal
from amqpgate.admin.guarding import SAFE, Rules, is_trusted
from amqpgate.admin.subject import Refused


class Guard:
    """Middleware that answers what ``rules`` do not let pass."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        client = request.client
        address = "-" if client is None else client.host
        try:
            # The path that the router sees. `request.url` is made of Host, too: with starlette 0.41, a Host
            # of "x/livez?" puts another path in its place.
            self._rules.check(scope["method"], scope["path"], scope.get("query_string", b""), request.headers)
        except Refused as refused:
            if scope["method"] not in SAFE:
                tell_refusal(scope["method"], scope["path"], refused.status, address)
            headers = {"www-authenticate": "Bearer"} if refused.status == 401 else None
            response = PlainTextResponse(f"{refused}\n", refused.status, headers)
            await response(scope, receive, send)
            return
        bears_token = self._rules.token is not None and is_trusted(request.headers, self._rules.token)
        with asked_by(bears_token=bears_token, address=address):
            await self._app(scope, receive, send)
