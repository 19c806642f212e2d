"""The nursery tree of the gateway: listeners, sessions, the pump; and its graceful stop.

::

    run ── pump driver
        └─ listeners ── one task per connection, from accept to the last close

A session's task sleeps while its session is on the data path.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.config import Settings
from amqpgate.datapath.build import COMPILED, Pump
from amqpgate.datapath.driver import drive
from amqpgate.errors import Forced
from amqpgate.gateway.handshake.accept import Acceptor
from amqpgate.gateway.handshake.admission import AdmissionControl
from amqpgate.gateway.handshake.principals import Principals
from amqpgate.gateway.limits.distributed import DistributedLimits
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.stats import scrape
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.rates import Rates
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.sampler import INTERVAL, look
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.observers.tap.taps import CEILING, TapRegistry
from amqpgate.gateway.pool.registry import PoolRegistry
from amqpgate.gateway.server.lifecycle import Lifecycle, Phase, Standing
from amqpgate.gateway.server.policy_fit import check_policies, notes_on
from amqpgate.gateway.server.reloading import PolicyState, Reloading
from amqpgate.gateway.session.operation_limits import Report
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.transport.memory_trim import Tide, give_back
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.health_check import look_after
from amqpgate.gateway.upstream.router import Router
from amqpgate.operator.pools import State, states
from amqpgate.operator.queries import STREAMS, answers
from amqpgate.operator.sessions import cluster_of
from amqpgate.policy import Judges, PolicySet
from amqpgate.telemetry import lag
from amqpgate.telemetry.answers import JSON, NOTHING, Answers, Args
from amqpgate.telemetry.events import Events, EventSubscriber, Item
from amqpgate.telemetry.faults import FAULTS
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.telemetry.readings import Totals
from amqpgate.telemetry.tracing.counters import TraceCounters
from amqpgate.telemetry.upstreams import UpstreamMetrics

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer

log = logging.getLogger(__name__)

#: No session's policies are compiled ahead.
_NOBODY: Final[Mapping[str, Judges]] = MappingProxyType({})


@attrs.define(eq=False)
class Gateway:
    """One gateway process. ``run`` serves until it is told to drain, or is cancelled."""

    settings: Settings
    policies: PolicySet
    version: str
    contexts: TlsContexts = attrs.field(factory=TlsContexts)
    #: The established ones by id.
    sessions: dict[str, Session] = attrs.field(factory=dict, init=False)
    #: Listener name -> (host, port) as bound; set when ``run`` has started.
    addresses: dict[str, tuple[str, int]] = attrs.field(factory=dict, init=False)
    ready: bool = attrs.field(default=False, init=False)
    #: Set, and made anew, when that changes.
    ready_changes: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Whether it ever was ready.
    started: bool = attrs.field(default=False, init=False)
    pump: Pump = attrs.field(init=False)
    metrics: Metrics = attrs.field(init=False)
    #: Where new connections go.
    routing: Router = attrs.field(init=False)
    #: Connections to brokers that clients share.
    pools: PoolRegistry = attrs.field(init=False)
    #: Who clients are.
    principals: Principals = attrs.field(init=False)
    #: Where copies of what is published go.
    mirrors: MirrorRegistry = attrs.field(init=False)
    #: Where spans are made; None: nowhere.
    tracing: Tracer | None = attrs.field(default=None, init=False)
    reloading: Reloading = attrs.field(init=False)
    #: Whom the policies select.
    selected: Selected = attrs.field(init=False)
    #: None: there are no audit records.
    auditing: AuditTrail | None = attrs.field(default=None, init=False)
    #: Operators who watch.
    tapping: TapRegistry = attrs.field(init=False)
    door: AdmissionControl = attrs.field(init=False)
    arrivals: Acceptor = attrs.field(init=False)
    life: Lifecycle = attrs.field(init=False)
    news: Events = attrs.field(factory=Events, init=False)
    decisions: Decisions = attrs.field(init=False)
    bindings: Bindings = attrs.field(factory=Bindings, init=False)
    looks: Rates = attrs.field(factory=Rates, init=False)
    compiling: PolicyCompiler = attrs.field(factory=PolicyCompiler, init=False)
    established: SessionRegistry = attrs.field(init=False)
    reports: Reports = attrs.field(init=False)
    _trace_counters: TraceCounters = attrs.field(init=False)
    _ended: SessionTotals = attrs.field(factory=SessionTotals, init=False)
    #: Read for the latest scrape.
    _now: Totals | None = attrs.field(default=None, init=False)
    #: Sessions at once.
    _tide: Tide = attrs.field(factory=Tide, init=False)
    #: When memory is given back once more, on trio's clock.
    _again: float = attrs.field(default=math.inf, init=False)
    _throttles: TokenBuckets = attrs.field(factory=TokenBuckets, init=False)

    def __attrs_post_init__(self) -> None:
        self.pump = Pump(
            high=self.settings.limits.buffer_high,
            low=self.settings.limits.buffer_low,
            largest_frame=self.settings.largest_frame,
            on_failure=self._pump_failed,
        )
        self.metrics = Metrics(lambda: self._now, version=self.version, compiled=COMPILED)
        self.metrics.most_connections.set(self.settings.limits.max_connections)
        self._trace_counters = TraceCounters(self.metrics.registry)
        self.decisions = Decisions(self.news)
        self.reports = Reports(self.metrics, self.decisions, self.bindings)
        self.routing = Router(self.settings, self.contexts, UpstreamMetrics(self.metrics.registry))
        self.pools = PoolRegistry(
            self.pump, self.settings.largest_frame, self.version, self.settings.limits.close_timeout
        )
        self.principals = Principals(self.routing, self.version, self.settings.limits.close_timeout)
        self.mirrors = MirrorRegistry(self.routing, self.version, MirrorMetrics(self.metrics.registry))
        self.tapping = TapRegistry(
            max(1, CEILING // self.settings.workers),
            lambda: [one.judging.tapper for one in self.sessions.values() if one.judging.tapper is not None],
            lambda: self.established.retap(self.policies),
            self._note,
        )
        self.arrivals = Acceptor(self)
        self.established = SessionRegistry(
            self.settings,
            self.pump,
            self._throttles,
            self.reports,
            self.arrivals.gone,
            self._upstream_lost,
            self.sessions,
            self._ended,
            self.mirrors,
            self.tapping,
        )
        if self.settings.audit is not None:
            self.auditing = self.established.auditing = AuditTrail.of(self.settings.audit, self._retry)
            self.metrics.audit.read = self.auditing.log.counts
        self._note_traces()
        self.metrics.policies.in_force(self.policies.digest)
        self.selected = Selected(self.policies, self.metrics.policies)
        state = PolicyState("done", self.policies.digest, time.time())
        self.reloading = Reloading(
            self.settings.policies,
            self.put_in_force,
            self.metrics.policies,
            state,
            default_access=self.settings.default_access,
            check=lambda read: check_policies(self.settings, read, os.environ),
            notes=lambda read: notes_on(self.settings, read),
            compiling=self.compiling,
        )
        self.reloading.on_read = self._policies_read
        limited: Report = self.reports.limited
        if self.auditing is not None:
            limited = self.auditing.reporting(limited)
        self.routing.use(self.policies)
        self.life = Lifecycle(self.settings, self.arrivals.enter, self._is_now, self.addresses)
        self.decisions.use(self.policies.digest)
        self.door = AdmissionControl(
            lambda: self.policies,
            self._throttles,
            limited,
            float(self.settings.limits.handshake_timeout),
        )

    async def run(
        self, *, hosted: bool = False, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """``hosted``: somebody else drives the pump, and closes it.

        Raises ``OSError`` where a listener cannot be bound.
        """
        if self.settings.tracing is not None:
            # What is imported takes some 10 MiB, which others need not have.
            from amqpgate.gateway.observers.trace.tracer import Tracer

            self.tracing = Tracer.of(self.settings.tracing, self.version, self._trace_counters)
            self.established.tracing = self.tracing
        # Certificates that cannot be loaded are found now, not by the first client.
        for listener in self.settings.listeners:
            if listener.tls is not None:
                self.contexts.for_listener(listener.tls)
        if self.auditing is not None:
            self.auditing.start(self.reloading.state)
        self.pump.watch(lag.INTERVAL, self.metrics.lag.late)
        try:
            async with trio.open_nursery() as engine:
                if self.auditing is not None:
                    engine.start_soon(self.auditing.run)
                if not hosted:
                    engine.start_soon(drive, self.pump)
                for cluster in self.routing.clusters.values():
                    engine.start_soon(look_after, cluster, self.contexts, self.routing.metrics, self.news)
                engine.start_soon(self._watch)
                engine.start_soon(self.mirrors.run)
                engine.start_soon(self.pools.run)
                engine.start_soon(self.tapping.run)
                if self.settings.shared_limits is not None:
                    leases = DistributedLimits(
                        self.settings.shared_limits,
                        self._throttles,
                        self.established.granted,
                        self.metrics.away.set,
                    )
                    engine.start_soon(leases.run)
                async with trio.open_nursery() as tasks:
                    self.established.tasks = tasks
                    await self.life.serve(task_status)
                    tasks.cancel_scope.deadline = await self.life.part(
                        self.sessions, lambda: self.arrivals.count
                    )
                    self.arrivals.end()
                    self.established.finish()
                await self.pools.finish()
                await self.mirrors.finish(self.life.until)
                if self.tracing is not None:
                    await self.tracing.finish(self.life.until, self.settings.limits.close_timeout)
                engine.cancel_scope.cancel()
        finally:
            self._set_ready(False)
            self.arrivals.lost.tick(math.inf)
            self.established.tasks = None
            self.established.finish()
            if self.tracing is not None:
                self.tracing.spans.export.close(0)
            if not hosted:
                self.pump.close()
            if self.auditing is not None:
                self.auditing.stop()

    async def _watch(self) -> None:
        while True:
            await trio.sleep(INTERVAL)
            live = list(self.sessions.values())
            try:
                await look(live, time.monotonic(), self.reports.waited, self.metrics.confirmed)
            except Exception:
                FAULTS.caught("metrics", "the look at all sessions")
            self.looks.forget(time.monotonic())
            self._throttles.forget(time.monotonic())
            is_down = self.auditing is not None and self.auditing.log.is_down
            self._set_ready(self.phase == "ready" and not is_down)
            self.arrivals.lost.tick(trio.current_time())
            if self._has_ebbed():
                await trio.to_thread.run_sync(give_back, abandon_on_cancel=True)

    def _has_ebbed(self) -> bool:
        """Whether much memory has become free since it was given back."""
        fell = [self.arrivals.handshakes.has_fallen(), self._tide.fell(len(self.sessions))]
        now = trio.current_time()
        if any(fell) and self.settings.audit is not None:
            # What they have done is written, and free, only then.
            self._again = now + 2 * self.settings.audit.window + self.settings.audit.roll_interval
        if now >= self._again:
            self._again = math.inf
            return True
        return any(fell)

    # -- open, paused, draining --------------------------------------------------------------

    def pause(self) -> None:
        """Refuse new connections until ``resume``; those that there are go on. Idempotent, as that is."""
        self.life.pause()

    def resume(self) -> None:
        self.life.resume()

    def drain(self, window: float | None = None, *, successors: int = 0) -> None:
        """Take no new connections, part with the sessions within ``window`` seconds (`draining`), and return
        from ``run``. Unless given, that is ``limits.drainTimeout``. A second call changes nothing.

        ``successors``: so many other processes listen on the same ports.
        """
        self.life.drain(window, successors)

    @property
    def phase(self) -> Phase:
        """How it stands with new connections."""
        return self.life.phase

    def standing(self) -> Standing:
        """For operators."""
        return self.life.standing(len(self.sessions), self.arrivals.count)

    async def order(self, verb: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """As ``call``: pause, resume or drain."""
        return await self.call(verb, args, patience=patience)

    def hand_over(self) -> None:
        """Another process has the ports, and is to have the admin address."""
        self.life.handed_over.set()

    def _is_now(self, phase: Phase) -> None:
        self._set_ready(phase == "ready")
        self.news.tell("gateway", state=phase)

    def close_session(self, session_id: str, why: str, *, now: bool = False) -> bool:
        """End a session with 320, and this reason: when it is owed nothing (`leaving`), or ``now``.

        Whether there is such a session.
        """
        session = self.sessions.get(session_id)
        if session is None:
            return False
        log.warning("session %s is closed by an operator%s: %s", session_id, ", now" if now else "", why)
        if self.auditing is not None:
            self.auditing.admin("close", session=session_id, reason=why, how="now" if now else "drain")
        self.established.dismiss(session, Forced(why), now=now)
        return True

    def _set_ready(self, ready: bool) -> None:
        if ready != self.ready:
            self.ready_changes.set()
            self.ready_changes = trio.Event()
        self.ready = ready
        self.started = self.started or ready
        self.metrics.ready.set(ready)

    def share_limits(self, board: SharedMemory) -> None:
        """Limits are counted together with other workers. Before ``run``."""
        self._throttles.board = board

    # -- policies ----------------------------------------------------------------------------

    async def put_in_force(self, policies: PolicySet) -> None:
        """As ``use``, with all that takes long done before in a thread."""
        self.use(policies, await self.established.prepare(policies, self.compiling))

    def use(self, policies: PolicySet, prepared: Mapping[str, Judges] = _NOBODY) -> None:
        """Put other policies in the place of those in force, for open sessions, too, and at once."""
        judges = self.established.judges_under(policies, prepared)
        self.policies = policies
        self._note_traces()
        if self.tracing is not None:
            self.tracing.use()
        self.routing.use(policies)
        self.established.use(policies, judges)
        self.metrics.policies.in_force(policies.digest)
        self.decisions.use(policies.digest)
        changed = self.selected.use(policies)
        if self.established.tasks is not None:
            live = [
                (session.principal, None if session.choice is None else session.choice.policy)
                for session in self.sessions.values()
            ]
            self.established.tasks.start_soon(self.selected.take_stock, changed, live)

    def _policies_read(self, state: PolicyState) -> None:
        if self.auditing is not None:
            self.auditing.policies(state)
        self.news.tell("policies", status=state.status, digest=state.digest, error=state.error)

    def _note_traces(self) -> None:
        if self.policies.traces and self.settings.tracing is None:
            log.warning("there are trace policies, and no spans: the configuration does not have `tracing`")

    def steer_routes(self, name: str | None = None, paused: bool = False) -> list[dict[str, JSON]]:
        """New connections of a route wait, or go on. All routes, for operators. May raise ``KeyError``."""
        if name is not None:
            self.routing.gates.order(name, paused)
            if self.auditing is not None:
                self.auditing.admin("pause" if paused else "resume", route=name)
            log.warning("route %r is %s by an operator", name, "paused" if paused else "resumed")
            self.news.tell("route", route=name, paused=paused)
        return self.routing.states()

    def pool_states(self) -> list[State]:
        """Which sessions share which connections to brokers, for operators."""
        return states(self.pools.pools.values())

    # -- what operators ask ------------------------------------------------------------------

    async def call(self, name: str, args: Args = NOTHING, *, patience: float | None = None) -> Answers:
        """The answer to one of ``calls.CALLS``. Raises ``KeyError`` where there is no such call."""
        return await answers(self, name, args)

    @asynccontextmanager
    async def stream(self, name: str, args: Args = NOTHING) -> AsyncIterator[AsyncIterator[Item]]:
        """What one of ``calls.STREAMS`` gives, each with the worker's number, which is 0."""
        subscriber = EventSubscriber()
        with STREAMS[name](self, args, subscriber):
            yield aiter(subscriber)

    # -- numbers -----------------------------------------------------------------------------

    async def metrics_text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        try:
            self._now = await self.totals()
        except Exception:
            # What was read last is better than nothing of all that can be read.
            FAULTS.caught("metrics", "the totals")
        return self.metrics.text()

    async def reload_policies(self, by: str = "admin") -> PolicyState:
        """Read the policies again, now; ``by`` the ``admin`` interface, or a ``signal``."""
        if self.auditing is not None:
            self.auditing.admin("reload", by=by)
        return await self.reloading.reload()

    def ended(self) -> SessionTotals:
        """What the sessions that are over have passed."""
        return self._ended.copy()

    async def totals(self) -> Totals:
        """What the metrics are read from."""
        return await scrape.totals(
            self.sessions.values(),
            self._ended,
            self.pump.counters,
            connections=self.arrivals.count,
            handshakes=len(self.arrivals.handshakes),
            routes=(route.id for _, route in self.routing.table.routes),
            pools=self.pools.pools.values(),
            certificates=scrape.certificates(self.settings.listeners, self.contexts),
        )

    def _note(self, action: str, detail: Mapping[str, str]) -> None:
        """An operator has done something."""
        if self.auditing is not None:
            self.auditing.admin(action, **detail)

    def _retry(self) -> None:
        """Who had to wait may look again."""
        for session in list(self.sessions.values()):
            self.pump.retry(session.relay)

    def _upstream_lost(self, session: Session) -> None:
        self.routing.clusters[cluster_of(session, self.settings)].lost()

    def _pump_failed(self, error: Exception) -> None:
        log.error("the data path failed for one session: %s", error, exc_info=error)
