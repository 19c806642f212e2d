"""What time alone brings about in a gateway, once a second: who waits for limits, what is forgotten, and
memory that goes back to the system."""

from __future__ import annotations

import logging
import time

import attrs
import trio

from amqpgate.config import Settings
from amqpgate.datapath import reserve
from amqpgate.gateway.handshake.accept import Acceptor
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.observers.services import GatewayObservers
from amqpgate.gateway.observers.stats.history import HistorySampler
from amqpgate.gateway.observers.stats.sampler import INTERVAL, look
from amqpgate.gateway.server.lifecycle import Lifecycle
from amqpgate.gateway.server.memory_keeping import MemoryKeeping
from amqpgate.gateway.server.standing import Impairment
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.session.token_sessions import TokenSessions
from amqpgate.telemetry.faults import FAULTS
from amqpgate.values import define

log = logging.getLogger(__name__)


@define(eq=False)
class Housekeeping:
    """The housekeeping of one gateway."""

    settings: Settings
    sessions: SessionRegistry
    acceptor: Acceptor
    buckets: TokenBuckets
    lifecycle: Lifecycle
    observers: GatewayObservers
    #: None: no tokens are verified.
    tokens: TokenSessions | None
    #: None: nobody can ask for it.
    history: HistorySampler | None
    memory: MemoryKeeping
    _was_short: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """For ever."""
        if self.history is not None:
            self.history.begin(time.time(), time.monotonic())
        while True:
            await trio.sleep(INTERVAL)
            for part in (self._look, self._remember, self._forget, self.memory.keep):
                try:
                    await part()
                except Exception:
                    FAULTS.caught("metrics", f"housekeeping: {part.__name__}")

    async def _look(self) -> None:
        live = list(self.sessions.live.values())
        confirmed = self.observers.metrics.confirmed if self.history is None else self.history.confirmed
        await look(live, time.monotonic(), confirmed)

    async def _remember(self) -> None:
        if self.history is not None:
            await self.history.look(self.sessions.live.values(), time.time(), time.monotonic())

    async def _forget(self) -> None:
        observers = self.observers
        if self.tokens is not None:
            self.tokens.look(time.time())
        observers.rates.forget(time.monotonic())
        self.buckets.forget(time.monotonic())
        impairments = Impairment.MEMORY if self._is_short() else Impairment(0)
        if observers.audit is not None and observers.audit.log.is_down:
            impairments |= Impairment.AUDIT
        self.lifecycle.check(impairments)
        self.acceptor.failures.tick(trio.current_time())
        observers.reports.lines.tick(time.monotonic())

    def _is_short(self) -> bool:
        """Whether memory is short; it is told when that begins, and when it is over."""
        is_short = reserve.is_short()
        if is_short != self._was_short:
            self._was_short = is_short
            used, most, _, lacked = reserve.numbers()
            log.warning(
                "memory is %s: %d KiB of the reserve in use, %d at most; %d requests found it full",
                "short" if is_short else "there again",
                used // 1024,
                most // 1024,
                lacked,
            )
        return is_short
