"""How the admin interface reads requests and answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from amqpgate.admin.endpoint import object_in
from amqpgate.admin.subject import Refused
from amqpgate.telemetry.answers import JSON, encoded

#: Bytes of a request's body.
_LONGEST: Final = 16 * 1024
#: And of a piece of an answer.
_PIECE: Final = 32 * 1024


class _Pieces(Response):
    """Sent piece by piece: a megabyte at once would be one system call that all sessions wait for."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        while len(body) > _PIECE:
            await send({"type": "http.response.body", "body": bytes(body[:_PIECE]), "more_body": True})
            body = body[_PIECE:]
        await send({"type": "http.response.body", "body": bytes(body)})
        if self.background is not None:
            await self.background()


async def answer(value: JSON, status: int = 200) -> Response:
    """It as JSON."""
    return _Pieces(await encoded(value), status, media_type="application/json")


def number_of(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query. Raises ``Refused``."""
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not least <= int(text) <= most:
        raise Refused(400, f"{name}: a whole number from {least} to {most}")
    return int(text)


async def body_of(request: Request) -> bytes:
    """The body. Raises ``Refused``."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST:
            raise Refused(413, "the body is too long")
    return body


async def object_of(request: Request, *known: str) -> Mapping[str, JSON]:
    """The JSON object in the body, with these keys at most; an empty one where there is no body.

    Raises ``Refused``.
    """
    return object_in(await body_of(request), *known)
