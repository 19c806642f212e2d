"""The nursery tree of the gateway: listeners, sessions, the pump; and its graceful stop.

::

    run ── pump driver, and the services beside it
        ├─ fibers: one per connection, from accept to its session, which the pump drives
        └─ listeners

A session needs neither while it is on the data path.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping

import trio

from amqpgate.config import Settings
from amqpgate.datapath.driver import drive
from amqpgate.datapath.engine import Pump
from amqpgate.errors import Forced
from amqpgate.gateway.handshake.accept import Acceptor
from amqpgate.gateway.observers.services import GatewayObservers
from amqpgate.gateway.pool.registry import PoolRegistry
from amqpgate.gateway.server.full_collections import FullCollections
from amqpgate.gateway.server.lifecycle import Lifecycle
from amqpgate.gateway.server.policy_control import PolicyControl
from amqpgate.gateway.server.policy_state import PolicyState
from amqpgate.gateway.server.reloading import Reloading
from amqpgate.gateway.server.scraping import Scraper
from amqpgate.gateway.server.standing import Phase, Standing
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.transport.resolving import SharedLookups
from amqpgate.gateway.transport.tasks import kept
from amqpgate.gateway.upstream.router import Router
from amqpgate.logs import about, shown
from amqpgate.policy import PolicySet
from amqpgate.telemetry import lag
from amqpgate.telemetry.history import History
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.readings import Totals
from amqpgate.values import frozen

log = logging.getLogger(__name__)


@frozen(eq=False)
class Gateway:
    """One gateway process, which `assembly.build` makes. ``run`` serves until a drain or a cancel."""

    settings: Settings
    pump: Pump
    acceptor: Acceptor
    #: The established sessions.
    registry: SessionRegistry
    policy_control: PolicyControl
    reloading: Reloading
    lifecycle: Lifecycle
    observers: GatewayObservers
    scraper: Scraper
    #: Its last hour, and where it has other workers, theirs.
    history: History
    #: Python's own until somebody begins them.
    collections: FullCollections
    #: What runs beside the sessions, from the start to the end.
    services: tuple[Callable[[], Awaitable[None]], ...]

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The established sessions by id."""
        return self.registry.live

    @property
    def policies(self) -> PolicySet:
        """The policies in force."""
        return self.policy_control.in_force.now

    @property
    def router(self) -> Router:
        """Where new connections go."""
        return self.acceptor.context.router

    @property
    def pools(self) -> PoolRegistry:
        """Connections to brokers that clients share."""
        return self.acceptor.context.pools

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Listener name -> (host, port) as bound; known when ``run`` has started."""
        return self.lifecycle.listeners.addresses

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""
        return self.lifecycle.readiness.ready

    @property
    def phase(self) -> Phase:
        """How it stands with new connections."""
        return self.lifecycle.phase

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        return self.observers.metrics

    async def run(
        self, *, hosted: bool = False, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """``hosted``: somebody else drives the pump, and closes it.

        Raises ``OSError`` where a listener cannot be bound.
        """
        observers, context, limits = self.observers, self.acceptor.context, self.settings.limits
        # Certificates that cannot be loaded are found now, not by the first client.
        for listener in self.settings.listeners:
            if listener.tls is not None:
                context.contexts.for_listener(listener.tls)
        if observers.audit is not None:
            observers.audit.start(self.reloading.state)
        self.pump.watch(lag.INTERVAL, observers.metrics.lag.late)
        resolver = trio.socket.set_custom_hostname_resolver(SharedLookups())
        try:
            async with trio.open_nursery() as engine:
                if not hosted:
                    engine.start_soon(drive, self.pump)
                for service in self.services:
                    engine.start_soon(kept, "the gateway", service)
                fibers = self.registry.fibers
                await engine.start(fibers.run, self.pump)
                async with trio.open_nursery() as tasks:
                    self.registry.begin(tasks)
                    await self.lifecycle.serve(task_status)
                    until = tasks.cancel_scope.deadline = await self.lifecycle.part(
                        self.sessions, lambda: self.acceptor.connections.count
                    )
                    context.pending.cancel()
                    self.registry.finish()
                # Other policies may still come, until mirrors and traces have been sent.
                self.registry.end()
                await fibers.finish(until)
                await self.pools.finish()
                await observers.mirrors.finish(self.lifecycle.until)
                if observers.tracer is not None:
                    await observers.tracer.finish(self.lifecycle.until, limits.close_timeout)
                engine.cancel_scope.cancel()
        finally:
            trio.socket.set_custom_hostname_resolver(resolver)
            self.lifecycle.readiness.become(False)
            self.acceptor.failures.tick(math.inf)
            observers.reports.lines.tick(math.inf)
            self.registry.end()
            if observers.tracer is not None:
                observers.tracer.spans.export.close(0)
            if not hosted:
                self.pump.close()
            if observers.audit is not None:
                observers.audit.stop()

    # -- open, paused, draining --------------------------------------------------------------

    def pause(self) -> None:
        """Refuse new connections until ``resume``; those that there are go on. Idempotent, as that is."""
        self.lifecycle.pause()

    def resume(self) -> None:
        self.lifecycle.resume()

    def drain(self, window: float | None = None, *, successors: int = 0) -> None:
        """Take no new connections, part with the sessions within ``window`` seconds (`session.drain`), and
        return from ``run``. Unless given, that is ``limits.drainTimeout``. A second call changes nothing.

        ``successors``: so many other processes listen on the same ports.
        """
        self.lifecycle.drain(window, successors)

    def standing(self) -> Standing:
        """For operators."""
        return self.lifecycle.standing(len(self.sessions), self.acceptor.connections.count)

    def close_session(self, session_id: str, why: str, *, now: bool = False, **asker: str) -> bool:
        """End a session with 320 and this reason, ``now`` or when it is owed nothing.

        Whether there is such a session. ``asker`` says ``by`` whom, and from which ``address``.
        """
        session = self.sessions.get(session_id)
        if session is None:
            return False
        log.warning(
            "session %s is closed by an operator%s%s: %s",
            session_id,
            shown(asker),
            ", now" if now else "",
            why,
            extra=about(session=session_id, user=session.principal.user, vhost=session.principal.vhost),
        )
        self.observers.note("close", session=session_id, reason=why, how="now" if now else "drain", **asker)
        self.registry.dismiss(session, Forced(why), now=now)
        return True

    # -- policies, and numbers ---------------------------------------------------------------

    def use(self, policies: PolicySet) -> None:
        """Put other policies in the place of those in force, for open sessions, too, and at once."""
        self.policy_control.use(policies)

    async def reload_policies(self, by: str = "admin", **asker: str) -> PolicyState:
        """Read the policies again, now; ``by`` the ``admin`` interface, whom it names, or a ``signal``."""
        log.warning("policies are read again%s", shown({"by": by, **asker}))
        state = await self.reloading.reload()
        self.observers.note("reload", by=by, result=state.status, **asker)
        return state

    async def totals(self) -> Totals:
        """What the metrics are read from."""
        return await self.scraper.totals()

    async def metrics_text(self, *, is_open: bool = False) -> bytes:
        """The metrics in Prometheus' text format, or in OpenMetrics', with exemplars."""
        return await (self.scraper.open_text() if is_open else self.scraper.text())
