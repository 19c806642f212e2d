"""``/pools``: which sessions share which connections to the broker, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.routes import IncompleteError
from amqpgate.gateway.pool_states import State


class Pooled(Protocol):
    """What has pools."""

    async def pool_states(self) -> Sequence[State]:
        """All of them, of every worker. Raises ``IncompleteError``."""


def pool_handlers(subject: Pooled) -> list[Route]:
    """The path."""

    async def listing(_request: Request) -> Response:
        try:
            return JSONResponse({"pools": list(await subject.pool_states())})
        except IncompleteError as error:
            return PlainTextResponse(f"{error}\n", status_code=503)

    return [Route("/pools", listing)]
