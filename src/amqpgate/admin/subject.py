"""What the admin interface speaks about, and how it reads requests and answers them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from amqpgate.config import Settings
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.server.lifecycle import Phase
from amqpgate.telemetry.answers import JSON, NOTHING, Answers, Args, encoded
from amqpgate.telemetry.events import Item

#: Bytes of a request's body.
_LONGEST: Final = 16 * 1024
#: And of a piece of an answer.
_PIECE: Final = 32 * 1024


class AdminSubject(Protocol):
    """One gateway, or the workers of one."""

    @property
    def settings(self) -> Settings:
        """What it was started with."""

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""

    @property
    def phase(self) -> Phase:
        """Why not, where they are not."""

    @property
    def started(self) -> bool:
        """Whether they were ever accepted."""

    async def metrics_text(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """One of ``operator.queries.CALLS``, asked of every process; ``patience`` in seconds."""

    async def order(self, verb: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """As ``call``: pause, resume or drain. Workers that are started later do as they were told."""

    def hand_over(self) -> None:
        """Another process has the ports: the admin address is given up, too."""

    def stream(self, name: str, args: Args = NOTHING) -> AbstractAsyncContextManager[AsyncIterator[Item]]:
        """One of ``operator.queries.STREAMS``: items with the number of the worker that said them."""


class Refused(AmqpgateError):
    """A request that is not granted: its HTTP status, and a sentence for people."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


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


async def object_of(request: Request, *known: str) -> Mapping[str, JSON]:
    """The JSON object in the body, with these keys at most; an empty one where there is no body.

    Raises ``Refused``.
    """
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST:
            raise Refused(413, "the body is too long")
    if not body:
        return {}
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(said, dict):
        raise Refused(400, "the body is not a JSON object")
    if unknown := sorted(said.keys() - set(known)):
        raise Refused(400, f"no such key: {unknown[0]!a}")
    return cast("Mapping[str, JSON]", said)
