"""Makes a gateway of its parts, each from what it needs, in the order in which they need each other."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from amqpgate.config import Settings
from amqpgate.datapath.build import COMPILED, Pump
from amqpgate.gateway.handshake.accept import Acceptor, Connections
from amqpgate.gateway.handshake.admission import AdmissionControl, ConnectionPolicies
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.identities import UnverifiedTokens
from amqpgate.gateway.handshake.listeners import Listeners
from amqpgate.gateway.handshake.pending import PendingHandshakes
from amqpgate.gateway.handshake.principals import Principals
from amqpgate.gateway.limits.shared_memory import SharedMemory
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.objects.stores import ObjectStores
from amqpgate.gateway.observers.factories import factories_of
from amqpgate.gateway.observers.mirror.registry import MirrorRegistry
from amqpgate.gateway.observers.services import GatewayObservers
from amqpgate.gateway.observers.stats.bindings import Bindings
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.history import HistorySampler
from amqpgate.gateway.observers.stats.labelled import LabelledTotals
from amqpgate.gateway.observers.stats.rates import Rates
from amqpgate.gateway.observers.stats.reports import Reports
from amqpgate.gateway.observers.stats.selected import Selected
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.observers.tap.factory import tappers
from amqpgate.gateway.observers.tap.taps import CEILING, PART, TapRegistry
from amqpgate.gateway.pool.registry import PoolRegistry, load
from amqpgate.gateway.server.full_collections import FullCollections
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.housekeeping import Housekeeping
from amqpgate.gateway.server.identities import identities_of
from amqpgate.gateway.server.lifecycle import Lifecycle
from amqpgate.gateway.server.memory_keeping import MemoryKeeping
from amqpgate.gateway.server.policy_control import PolicyControl
from amqpgate.gateway.server.policy_fit import check_policies, notes_on
from amqpgate.gateway.server.policy_state import PolicyState
from amqpgate.gateway.server.readiness import Readiness
from amqpgate.gateway.server.reloading import Reloading
from amqpgate.gateway.server.scraping import Scraper
from amqpgate.gateway.session.claim_reference import ClaimKeys
from amqpgate.gateway.session.claims import ClaimChecks
from amqpgate.gateway.session.operation_limits import Report
from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.session.registry import ObserverFactories, SessionEnds, SessionRegistry
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.token_sessions import TokenSessions
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.gateway.upstream.health_check import look_after
from amqpgate.gateway.upstream.router import Router
from amqpgate.policy import PolicySet
from amqpgate.policy.loader import Stamp
from amqpgate.telemetry.claims import ClaimMetrics
from amqpgate.telemetry.events import Events
from amqpgate.telemetry.exemplars import Exemplars
from amqpgate.telemetry.history import RING, History
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.telemetry.tracing.counters import TraceCounters
from amqpgate.telemetry.upstreams import UpstreamMetrics

if TYPE_CHECKING:
    from amqpgate.gateway.observers.audit.audit import AuditTrail
    from amqpgate.gateway.observers.trace.tracer import Tracer

log = logging.getLogger(__name__)


def build(
    settings: Settings,
    policies: PolicySet,
    version: str,
    *,
    seen: Stamp | None = None,
    shared_memory: SharedMemory | None = None,
) -> Gateway:
    """The gateway that the settings describe, with these policies in force.

    ``seen`` is how the folder of policies looked before they were read, ``shared_memory`` what limits are
    counted in, and the last hour is kept in, together with other workers. Raises ``ConfigError``.
    """
    limits = settings.limits
    live: dict[str, Session] = {}
    in_force, events, contexts = PoliciesInForce(policies), Events(), TlsContexts()
    pump = Pump(
        high=limits.buffer_high,
        low=limits.buffer_low,
        largest_frame=settings.largest_frame,
        on_failure=_pump_failed,
    )
    audit = _audit(settings, partial(_retry, pump, live))
    metrics = Metrics(
        lambda: scraper.latest,
        audit=None if audit is None else audit.log.counts,
        version=version,
        compiled=COMPILED,
    )
    metrics.most_connections.set(limits.max_connections)
    router = Router(settings, contexts, UpstreamMetrics(metrics.registry))
    decisions, bindings, compiler = Decisions(events), Bindings(), PolicyCompiler()
    labelled = None if settings.metrics is None else LabelledTotals(settings.metrics)
    reports = Reports(metrics, decisions, bindings, labelled)
    observers = GatewayObservers(
        metrics=metrics,
        events=events,
        decisions=decisions,
        bindings=bindings,
        reports=reports,
        ended=SessionTotals(),
        rates=Rates(),
        selected=Selected(policies, metrics.policies),
        mirrors=MirrorRegistry(router, version, MirrorMetrics(metrics.registry)),
        taps=TapRegistry(
            max(1, CEILING // settings.workers),
            lambda: tappers(live.values()),
            lambda: registry.observe(PART, in_force.now),
            lambda action, detail: observers.note(action, **detail),
        ),
        audit=audit,
        tracer=_tracer(settings, version, TraceCounters(metrics.registry), metrics.exemplars),
    )
    # -- sessions, and those that are about to be ---------------------------------------------
    connections = Connections(limits.max_connections, metrics)
    buckets = TokenBuckets(shared_memory=shared_memory)
    fibers, stores = Fibers(), ObjectStores(ClaimMetrics(metrics.registry))
    registry = SessionRegistry(
        settings,
        pump,
        buckets,
        SessionEnds(connections.ended, partial(_upstream_lost, router)),
        ClaimChecks(stores, limits.max_message_bytes, lambda: ClaimKeys.of(os.environ)),
        live,
        ObserverFactories(factories_of(observers)),
        fibers,
    )
    token_sessions = TokenSessions(registry, in_force, compiler)
    unverified = UnverifiedTokens(metrics.tokens.unverified)
    identities, issuers = identities_of(settings, token_sessions, metrics.tokens, unverified)
    limited: Report = reports.limited if audit is None else audit.reporting(reports.limited)
    if any(upstream.connections == "pooled" for upstream in settings.upstreams):
        load()
    context = HandshakeContext(
        settings=settings,
        version=version,
        contexts=contexts,
        router=router,
        pools=PoolRegistry(pump, settings.largest_frame, version, limits.close_timeout),
        principals=Principals(router, version, limits.close_timeout),
        policies=ConnectionPolicies(in_force, compiler, reports, observers.selected, audit),
        admission=AdmissionControl(buckets, limited, float(limits.handshake_timeout)),
        pending=PendingHandshakes(limits.max_handshakes, limits.handshakes_per_address),
        unverified=unverified,
        identities=identities,
    )
    acceptor = Acceptor(context, connections, registry, observers.tracer)
    # -- the whole ----------------------------------------------------------------------------
    listeners = Listeners(settings, acceptor.enter, lambda: lifecycle.changed(), fibers, {})
    lifecycle = Lifecycle(limits, listeners, Readiness(metrics.ready), events)
    control = PolicyControl(in_force, settings, compiler, router, registry, observers)
    scraper = Scraper(metrics, pump, registry, acceptor, observers.ended, labelled)
    memory = memoryview(bytearray(RING)) if shared_memory is None else shared_memory.history
    history = History.of(memory)
    is_asked = settings.admin is not None or shared_memory is not None
    ring = history.rings[0 if shared_memory is None else shared_memory.worker]
    collections = FullCollections()
    housekeeping = Housekeeping(
        settings,
        registry,
        acceptor,
        buckets,
        lifecycle,
        observers,
        None if identities is None else token_sessions,
        HistorySampler(ring, pump, metrics, decisions, observers.ended) if is_asked else None,
        MemoryKeeping(settings, registry, context.pending, collections),
    )
    return Gateway(
        settings=settings,
        pump=pump,
        acceptor=acceptor,
        registry=registry,
        policy_control=control,
        reloading=_reloading(settings, control, compiler, observers, seen),
        lifecycle=lifecycle,
        observers=observers,
        scraper=scraper,
        history=history,
        collections=collections,
        services=(
            *_services(settings, context, observers, registry, buckets, housekeeping),
            *issuers,
            *_pushes(settings, version, scraper),
        ),
    )


def _services(
    settings: Settings,
    context: HandshakeContext,
    observers: GatewayObservers,
    registry: SessionRegistry,
    buckets: TokenBuckets,
    housekeeping: Housekeeping,
) -> Iterator[Callable[[], Awaitable[None]]]:
    if observers.audit is not None:
        yield observers.audit.run
    for cluster in context.router.clusters.values():
        yield partial(look_after, cluster, context.contexts, context.router.metrics, observers.events)
    yield housekeeping.run
    yield registry.claim_checks.stores.threads.run
    yield registry.claim_checks.stores.slots.look_after
    yield observers.mirrors.run
    yield context.pools.run
    yield observers.taps.run
    if settings.shared_limits is not None:
        # The client of Redis takes more memory than all of the gateway.
        from amqpgate.gateway.limits.distributed import DistributedLimits

        away = observers.metrics.away.set
        yield DistributedLimits(settings.shared_limits, buckets, registry.granted, away).run


def _pushes(settings: Settings, version: str, scraper: Scraper) -> Iterator[Callable[[], Awaitable[None]]]:
    if settings.otlp is not None and settings.otlp.metrics is not None:
        # What is imported takes memory that others need not have.
        from amqpgate.gateway.server.pushing import MetricsPush

        yield MetricsPush.of(settings.otlp, settings.otlp.metrics, version, scraper).run


def _reloading(
    settings: Settings,
    control: PolicyControl,
    compiler: PolicyCompiler,
    observers: GatewayObservers,
    seen: Stamp | None,
) -> Reloading:
    def read(state: PolicyState) -> None:
        if observers.audit is not None:
            observers.audit.policies(state)
        observers.events.tell("policies", status=state.status, digest=state.digest, error=state.error)

    return Reloading(
        settings.policies,
        control.put_in_force,
        observers.metrics.policies,
        PolicyState("done", control.in_force.now.digest, time.time()),
        seen,
        default_access=settings.default_access,
        check=lambda policies: check_policies(settings, policies, os.environ),
        notes=lambda policies: notes_on(settings, policies),
        on_read=read,
        compiling=compiler,
    )


def _audit(settings: Settings, retry: Callable[[], None]) -> AuditTrail | None:
    if settings.audit is None:
        return None
    from amqpgate.gateway.observers.audit.audit import AuditTrail

    return AuditTrail.of(settings.audit, retry)


def _tracer(settings: Settings, version: str, counters: TraceCounters, exemplars: Exemplars) -> Tracer | None:
    if settings.tracing is None:
        return None
    # What is imported takes some 10 MiB, which others need not have.
    from amqpgate.gateway.observers.trace.tracer import Tracer

    return Tracer.of(settings.tracing, version, counters, exemplars)


def _retry(pump: Pump, live: dict[str, Session]) -> None:
    """Who had to wait may look again."""
    for session in list(live.values()):
        pump.retry(session.relay)


def _upstream_lost(router: Router, session: Session) -> None:
    router.cluster_of(session.facts.choice, session.principal.listener).lost()


def _pump_failed(error: Exception) -> None:
    log.error("the data path failed for one session: %s", error, exc_info=error)
