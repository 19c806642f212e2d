"""One gateway process, as its admin interface asks it; `app.supervisor.Supervisor` is the same of several."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from amqpgate.config import Settings
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.standing import Impairment, Phase
from amqpgate.operator.queries import STREAMS, begin
from amqpgate.telemetry.answers import NOTHING, Answers, Args
from amqpgate.telemetry.events import EventSubscriber, Item
from amqpgate.telemetry.history import History
from amqpgate.values import frozen


@frozen
class SingleGateway:
    """An `admin.subject.AdminSubject`."""

    gateway: Gateway

    @property
    def settings(self) -> Settings:
        return self.gateway.settings

    @property
    def ready(self) -> bool:
        return self.gateway.ready

    @property
    def impairments(self) -> Impairment:
        return self.gateway.lifecycle.readiness.impairments

    @property
    def phase(self) -> Phase:
        return self.gateway.phase

    @property
    def started(self) -> bool:
        return self.gateway.lifecycle.readiness.started

    @property
    def history(self) -> History:
        return self.gateway.history

    async def metrics_text(self, *, is_open: bool = False) -> bytes:
        return await self.gateway.metrics_text(is_open=is_open)

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """The answer to one of ``queries.CALLS``. Raises ``KeyError`` where there is no such call."""
        answer = begin(self.gateway, name, args)
        return Answers({0: await answer if isinstance(answer, Awaitable) else answer})

    async def order(self, verb: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """As ``call``: pause, resume or drain."""
        return await self.call(verb, args, patience=patience)

    def hand_over(self) -> None:
        """Another process has the ports, and is to have the admin address."""
        self.gateway.lifecycle.handed_over.set()

    @asynccontextmanager
    async def stream(self, name: str, args: Args = NOTHING) -> AsyncIterator[AsyncIterator[Item]]:
        """What one of ``queries.STREAMS`` gives, each with the worker's number, which is 0."""
        subscriber = EventSubscriber()
        with STREAMS[name](self.gateway, args, subscriber):
            yield aiter(subscriber)
