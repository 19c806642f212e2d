"""What the admin interface speaks about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from amqpgate.config import Settings
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.server.standing import Impairment, Phase
from amqpgate.telemetry.answers import NOTHING, Answers, Args
from amqpgate.telemetry.events import Item
from amqpgate.telemetry.history import History


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
    def impairments(self) -> Impairment:
        """Why not, where the phase is ready."""

    @property
    def started(self) -> bool:
        """Whether they were ever accepted."""

    @property
    def history(self) -> History:
        """The last hour."""

    async def metrics_text(self, *, is_open: bool = False) -> bytes:
        """The Prometheus text format, version 0.0.4, or OpenMetrics', with exemplars."""

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
