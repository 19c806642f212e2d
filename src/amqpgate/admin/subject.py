"""What the admin interface speaks about, and how it answers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from collections.abc import AsyncIterator
from typing import Protocol

from starlette.responses import Response

from amqpgate.errors import AmqpgateError
from amqpgate.gateway.answers import JSON, NOTHING, Answers, Args, encoded


class Subject(Protocol):
    """One gateway, or the workers of one."""

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""

    @property
    def started(self) -> bool:
        """Whether they were ever accepted."""

    async def metrics_text(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """One of ``gateway.calls.CALLS``, asked of every process; ``patience`` in seconds."""

    def stream(
        self, name: str, args: Args = NOTHING
    ) -> AbstractAsyncContextManager[AsyncIterator[tuple[int, JSON]]]:
        """One of ``gateway.calls.STREAMS``: items with the number of the worker that said them."""


class Refused(AmqpgateError):
    """A request that is not granted: its HTTP status, and a sentence for people."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


async def answer(value: JSON, status: int = 200) -> Response:
    """It as JSON."""
    return Response(await encoded(value), status, media_type="application/json")
