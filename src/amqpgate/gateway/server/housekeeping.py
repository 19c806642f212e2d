"""What time alone brings about in a gateway, once a second: who waits for limits, what is forgotten, and
memory that goes back to the system."""

from __future__ import annotations

import math
import time

import attrs
import trio

from amqpgate.config import Settings
from amqpgate.gateway.handshake.accept import Acceptor
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.observers.services import GatewayObservers
from amqpgate.gateway.observers.stats.sampler import INTERVAL, look
from amqpgate.gateway.server.lifecycle import Lifecycle
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.transport.memory_trim import Tide, collect, give_back
from amqpgate.telemetry.faults import FAULTS


@attrs.define(eq=False)
class Housekeeping:
    """The housekeeping of one gateway."""

    settings: Settings
    sessions: SessionRegistry
    acceptor: Acceptor
    buckets: TokenBuckets
    lifecycle: Lifecycle
    observers: GatewayObservers
    #: Sessions at once.
    _tide: Tide = attrs.field(factory=Tide, init=False)
    #: When memory is given back once more, on trio's clock.
    _again: float = attrs.field(default=math.inf, init=False)

    async def run(self) -> None:
        """For ever."""
        while True:
            await trio.sleep(INTERVAL)
            for part in (self._look, self._forget, self._give_back):
                try:
                    await part()
                except Exception:
                    FAULTS.caught("metrics", f"housekeeping: {part.__name__}")

    async def _look(self) -> None:
        live = list(self.sessions.live.values())
        await look(live, time.monotonic(), self.observers.metrics.confirmed)

    async def _forget(self) -> None:
        observers = self.observers
        observers.rates.forget(time.monotonic())
        self.buckets.forget(time.monotonic())
        self.lifecycle.check(is_impaired=observers.audit is not None and observers.audit.log.is_down)
        self.acceptor.failures.tick(trio.current_time())

    async def _give_back(self) -> None:
        if self._has_ebbed():
            if self._again == math.inf:
                # Once, when what they have done is written as well.
                collect(len(self.sessions.live))
            await trio.to_thread.run_sync(give_back, abandon_on_cancel=True)

    def _has_ebbed(self) -> bool:
        """Whether much memory has become free since it was given back."""
        fell = [self.acceptor.context.pending.has_fallen(), self._tide.fell(len(self.sessions.live))]
        now = trio.current_time()
        if any(fell) and self.settings.audit is not None:
            # What they have done is written, and free, only then.
            self._again = now + 2 * self.settings.audit.window + self.settings.audit.roll_interval
        if now >= self._again:
            self._again = math.inf
            return True
        return any(fell)
