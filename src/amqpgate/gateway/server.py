"""The nursery tree of the gateway: listeners, sessions, the pump; and its graceful stop.

::

    run ── pump driver
        └─ listeners ── one task per connection, from accept to the last close

A session's task sleeps while its session is on the data path.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time

import attrs
import trio

from amqpgate.config import Listener, Settings
from amqpgate.datapath.driver import drive
from amqpgate.datapath.engine import Pump
from amqpgate.datapath.relay import End, make_relay
from amqpgate.datapath.scanner import FlowTable, Lane
from amqpgate.datapath.tables import Side
from amqpgate.errors import OverLimit, ProtocolViolation
from amqpgate.gateway.door import Door
from amqpgate.gateway.fitting import check_policies
from amqpgate.gateway.health import look_after
from amqpgate.gateway.leases import Leases
from amqpgate.gateway.listener import accept, open_listener
from amqpgate.gateway.mirrors import Mirrors
from amqpgate.gateway.notices import Notice
from amqpgate.gateway.rations import Happened
from amqpgate.gateway.reception import NotEstablishedError, Reception
from amqpgate.gateway.reloading import PolicyState, Reloading
from amqpgate.gateway.rewriting import Rewriter
from amqpgate.gateway.routing import Routing
from amqpgate.gateway.session import Session
from amqpgate.gateway.setup import Caller, Established
from amqpgate.gateway.teardown import part
from amqpgate.gateway.throttles import Throttle, Throttles
from amqpgate.gateway.tls import TlsContexts
from amqpgate.gateway.watch import INTERVAL, look
from amqpgate.policy import (
    Operation,
    PolicySet,
    Principal,
    SessionRefusedError,
    SharedLimit,
    Verdict,
    refusal,
)
from amqpgate.telemetry.metrics import Metrics, Totals, Traffic
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.telemetry.upstreams import UpstreamMetrics

log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Gateway:
    """One gateway process. ``run`` serves until it is told to drain, or is cancelled."""

    settings: Settings
    policies: PolicySet
    version: str
    contexts: TlsContexts = attrs.field(factory=TlsContexts)
    sessions: dict[str, Session] = attrs.field(factory=dict, init=False)
    #: Listener name -> (host, port) as bound; set when ``run`` has started.
    addresses: dict[str, tuple[str, int]] = attrs.field(factory=dict, init=False)
    ready: bool = attrs.field(default=False, init=False)
    pump: Pump = attrs.field(init=False)
    metrics: Metrics = attrs.field(init=False)
    #: Where new connections go.
    routing: Routing = attrs.field(init=False)
    #: Where copies of what is published go.
    mirrors: Mirrors = attrs.field(init=False)
    reloading: Reloading = attrs.field(init=False)
    door: Door = attrs.field(init=False)
    #: Where tear-downs run; None while nothing may be started: then sockets close without a word.
    _tasks: trio.Nursery | None = attrs.field(default=None, init=False)
    _connections: int = attrs.field(default=0, init=False)
    #: Of the connections that are not established yet.
    _handshakes: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    _ended: list[Traffic] = attrs.field(factory=lambda: [Traffic(), Traffic()], init=False)
    _throttles: Throttles = attrs.field(factory=Throttles, init=False)
    _drain: trio.Event = attrs.field(factory=trio.Event, init=False)
    _idle: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.pump = Pump(
            high=self.settings.limits.buffer_high,
            low=self.settings.limits.buffer_low,
            largest_frame=self.settings.largest_frame,
            on_failure=self._pump_failed,
        )
        self.metrics = Metrics(self.totals)
        self.routing = Routing(self.settings, self.contexts, UpstreamMetrics(self.metrics.registry))
        self.mirrors = Mirrors(self.routing, self.version, MirrorMetrics(self.metrics.registry))
        self.metrics.policies.in_force(self.policies.digest)
        state = PolicyState("done", self.policies.digest, time.time())
        self.reloading = Reloading(
            self.settings.policies,
            self.use,
            self.metrics.policies,
            state,
            check=lambda read: check_policies(self.settings, read, os.environ),
        )
        self.routing.use(self.policies)
        self.door = Door(
            lambda: self.policies,
            self._throttles,
            self._limited,
            float(self.settings.limits.handshake_timeout),
        )

    async def run(
        self, *, hosted: bool = False, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """``hosted``: somebody else drives the pump, and closes it.

        Raises ``OSError`` where a listener cannot be bound.
        """
        # Certificates that cannot be loaded are found now, not by the first client.
        for listener in self.settings.listeners:
            if listener.tls is not None:
                self.contexts.for_listener(listener.tls)
        try:
            async with trio.open_nursery() as engine:
                if not hosted:
                    engine.start_soon(drive, self.pump)
                for cluster in self.routing.clusters.values():
                    engine.start_soon(look_after, cluster, self.contexts, self.routing.metrics)
                engine.start_soon(self._watch)
                engine.start_soon(self.mirrors.run)
                if self.settings.shared_limits is not None:
                    leases = Leases(
                        self.settings.shared_limits, self._throttles, self._granted, self.metrics.away.set
                    )
                    engine.start_soon(leases.run)
                async with trio.open_nursery() as tasks:
                    self._tasks = tasks
                    async with trio.open_nursery() as doors:
                        for listener in self.settings.listeners:
                            sockets = await open_listener(listener.bind, shared=self.settings.workers > 1)
                            self.addresses[listener.name] = sockets[0].getsockname()[:2]
                            for sock in sockets:
                                doors.start_soon(self._accept, sock, listener, tasks)
                        self._set_ready(True)
                        task_status.started()
                        await self._drain.wait()
                        doors.cancel_scope.cancel()
                    until = trio.current_time() + self.settings.limits.drain_timeout
                    await self._wait_for_sessions()
                await self.mirrors.finish(until)
                engine.cancel_scope.cancel()
        finally:
            self._set_ready(False)
            self._tasks = None
            for session in list(self.sessions.values()):
                session.relay.finish()
            if not hosted:
                self.pump.close()

    async def _watch(self) -> None:
        while True:
            await trio.sleep(INTERVAL)
            look(list(self.sessions.values()), time.monotonic(), self._waited)

    def _granted(self) -> None:
        """Who waits for a limit that is shared may look again."""
        for session in list(self.sessions.values()):
            if any(limit.shared for limit in session.throttle.limits):
                self.pump.retry(session.relay)

    def drain(self) -> None:
        """Accept no more; let sessions finish until ``limits.drain_timeout``; then 320, and return."""
        self._set_ready(False)
        self._drain.set()

    def _set_ready(self, ready: bool) -> None:
        self.ready = ready
        self.metrics.ready.set(ready)

    async def _wait_for_sessions(self) -> None:
        limits = self.settings.limits
        log.info("draining: %d connections, at most %g s", self._connections, limits.drain_timeout)
        with trio.move_on_after(limits.drain_timeout):
            while self._connections:
                await self._idle.wait()
                self._idle = trio.Event()
            return
        for handshake in self._handshakes:
            handshake.cancel()
        for session in list(self.sessions.values()):
            session.relay.finish()

    # -- connections -------------------------------------------------------------------------

    async def _accept(self, sock: socket.socket, listener: Listener, tasks: trio.Nursery) -> None:
        with sock:
            limits = self.settings.limits
            while True:
                await trio.lowlevel.checkpoint()
                connection, address = await accept(sock)
                too_many = self._connections >= limits.max_connections
                if too_many or len(self._handshakes) >= limits.max_handshakes:
                    self.metrics.ended("over_limit")
                    connection.close()
                    continue
                self._connections += 1
                tasks.start_soon(self._serve, connection, address, listener)

    async def _serve(self, sock: socket.socket, address: str, listener: Listener) -> None:
        """Bring a session about. The task ends there: an established session needs none."""
        caller = Caller(secrets.token_hex(8), address)
        outcome: str | None = "failed"
        try:
            outcome = await self._receive(sock, caller, listener)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("session %s from %s failed", caller.session_id, address)
        finally:
            self.door.leave(caller.session_id)
            if outcome is not None:
                sock.close()
                self._gone(outcome)

    async def _receive(self, sock: socket.socket, caller: Caller, listener: Listener) -> str | None:
        """How it ended, or None where the session is on the data path now."""
        reception = Reception(
            self.settings,
            listener,
            self.routing,
            self.contexts,
            self.version,
            self._may_open,
            self.door,
        )
        handshake = trio.CancelScope()
        self._handshakes.add(handshake)
        self.metrics.handshakes.inc()
        try:
            with handshake:
                caller, established = await reception.receive(sock, caller)
            if handshake.cancelled_caught:
                return "drained"
        except NotEstablishedError as failed:
            log.info("%s from %s: %s", caller.session_id, caller.address, failed)
            return failed.outcome
        finally:
            self._handshakes.remove(handshake)
            self.metrics.handshakes.dec()
        try:
            session = self._make_session(caller, established)
        except SessionRefusedError as error:
            # Since connection.open was allowed, the policies have changed.
            log.warning("%s from %s: %s", caller.session_id, caller.address, error)
            established.client.sock.close()
            established.upstream.sock.close()
            return "refused"
        log.info(
            "session %s open: %s, user %r, vhost %r",
            session.id,
            caller.address,
            session.principal.user,
            session.principal.vhost,
        )
        if handshake.cancel_called:
            session.relay.finish()
        return None

    def _left(self, session: Session) -> None:
        """The session has left the data path; its sockets are still open."""
        if self._tasks is None:
            self._forget(session)
        else:
            self._tasks.start_soon(self._part, session)

    async def _part(self, session: Session) -> None:
        try:
            await part(session, session.relay, deadline_in=self.settings.limits.close_timeout)
        except Exception:
            log.exception("session %s did not end well", session.id)
        finally:
            self._forget(session)

    def _forget(self, session: Session) -> None:
        del self.sessions[session.id]
        self._throttles.give_back(session.throttle)
        for endpoint in session.relay.endpoints:
            endpoint.sock.close()
            self._ended[endpoint.side] += _traffic(endpoint.lane)
        why = _outcome_of(session)
        log.info("session %s over: %s%s", session.id, why, _detail(session))
        self._gone(why)

    def _gone(self, outcome: str) -> None:
        self.metrics.ended(outcome)
        self._connections -= 1
        self._idle.set()

    def _make_session(self, caller: Caller, established: Established) -> Session:
        principal = established.principal
        transform = self.policies.transform_for(principal)
        session = Session(
            caller.session_id,
            principal,
            self.policies.judges_of(principal, caller.session_id),
            established.channel_max,
            self._denied,
            self._would_differ,
            self._left,
            self._throttle_for(principal, caller.session_id),
            Rewriter(transform, principal) if transform is not None else None,
            self._limited,
            "consumer_cancel_notify" in established.capabilities,
            established.choice,
            Notice("connection.blocked" in established.capabilities),
        )
        session.copier.follow(self.mirrors.feed(session.choice, principal, session.id))
        relay = make_relay(
            session,
            established.client,
            established.upstream,
            flows=FlowTable() if session.is_restricted else None,
            largest_frame=self.settings.largest_frame,
        )
        self.sessions[session.id] = session
        session.enter(relay, self.pump)
        return session

    def _throttle_for(self, principal: Principal, session: str) -> Throttle:
        return self._throttles.take(self.policies.limits_for(principal, session), time.monotonic())

    def use(self, policies: PolicySet) -> None:
        """Put other policies in the place of those in force, for open sessions, too, and at once."""
        # All that may fail comes first.
        judges = [policies.judges_of(session.principal, session.id) for session in self.sessions.values()]
        self.policies = policies
        self.routing.use(policies)
        for session, its_own in zip(list(self.sessions.values()), judges, strict=True):
            self._retransform(session)
            session.copier.follow(self.mirrors.feed(session.choice, session.principal, session.id))
            before = session.throttle
            session.judge_by(its_own, self._throttle_for(session.principal, session.id))
            self._throttles.give_back(before)
        waiting = [session for session in self.sessions.values() if session.consumers.is_overdue]
        if waiting and self._tasks is not None:
            self._tasks.start_soon(self._insist, waiting)
        self.metrics.policies.in_force(policies.digest)

    async def _insist(self, sessions: list[Session]) -> None:
        """Who does not end the message that is under way cannot keep a consumer by that."""
        await trio.sleep(self.settings.limits.drain_timeout)
        for session in sessions:
            if session.relay.active and session.consumers.is_overdue:
                session.fail(
                    ProtocolViolation(320, "a consumer is not allowed any more, and a message not ended")
                )

    async def steer_routes(
        self, name: str | None = None, paused: bool = False
    ) -> list[dict[str, str | int | bool | list[str]]]:
        """New connections of a route wait, or go on. All routes, for operators. May raise ``KeyError``."""
        if name is not None:
            self.routing.gates.order(name, paused)
            log.warning("route %r is %s by an operator", name, "paused" if paused else "resumed")
        return self.routing.states()

    def _retransform(self, session: Session) -> None:
        try:
            transform = self.policies.transform_for(session.principal)
        except SessionRefusedError as error:
            log.warning("session %s keeps its transform: %s", session.id, error)
            return
        if session.rewriter is not None:
            session.rewriter.follow(transform)
        elif transform is not None:
            session.rewriter = Rewriter(attrs.evolve(transform, naming=None), session.principal)
            session.rewriter.enter(session.relay)

    # -- numbers -----------------------------------------------------------------------------

    async def metrics_text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return self.metrics.text()

    async def reload_policies(self) -> PolicyState:
        """Read the policies again, now."""
        return await self.reloading.reload()

    async def policy_state(self) -> PolicyState:
        """Which policies are in force, and what was wrong with those read last."""
        return self.reloading.state

    def totals(self) -> Totals:
        """What the metrics are read from."""
        live = list(self.sessions.values())
        up = sum((_traffic(session.relay.up) for session in live), self._ended[Side.CLIENT])
        down = sum((_traffic(session.relay.down) for session in live), self._ended[Side.UPSTREAM])
        counters = self.pump.counters
        return Totals(
            publish=up,
            deliver=down,
            sessions=len(live),
            channels=sum(len(session.relay.channels) for session in live),
            upcalls=counters.upcalls,
            pauses=counters.paused,
            throttled=counters.throttled,
            pump_failures=counters.failures,
        )

    def _may_open(self, principal: Principal, session: str) -> str | None:
        """Whether a policy refuses the vhost: why, in RabbitMQ's words for it."""
        operation = Operation(principal, "connection.open")
        verdict = self.policies.judges_of(principal, session).enforced.decide(operation)
        if verdict.allowed:
            try:
                self.policies.transform_for(principal)
            except SessionRefusedError as error:
                # The client is not told which policies there are.
                log.warning("refused: user %r, vhost %r: %s", principal.user, principal.vhost, error)
                return refusal(operation, verdict)
            return None
        self._denied(verdict, operation)
        return refusal(operation, verdict)

    def _would_differ(self, verdict: Verdict, operation: Operation) -> None:
        """A policy that is not enforced would have decided so."""
        self.metrics.would_differ(verdict.policy or "", verdict.rule, verdict.effect)
        log.debug("shadow: %s of %s by %s", verdict.effect, operation.name, verdict.name)

    def _limited(self, limit: SharedLimit, happened: Happened) -> None:
        self.metrics.limited(limit.policy, limit.limit, happened.value, enforced=limit.enforced)

    def _waited(self, limit: SharedLimit) -> None:
        self.metrics.waited(limit.policy, limit.limit)

    def _denied(self, verdict: Verdict, operation: Operation) -> None:
        self.metrics.denied(verdict.policy or "", verdict.rule)
        log.info(
            "denied: %s by %s/%s: user %r, vhost %r, exchange %r, routing key %r, queue %r",
            operation.name,
            verdict.policy or "-",
            verdict.rule,
            operation.principal.user,
            operation.principal.vhost,
            operation.exchange,
            operation.routing_key,
            operation.queue,
        )

    def _pump_failed(self, error: Exception) -> None:
        log.error("the data path failed for one session: %s", error, exc_info=error)


def _traffic(lane: Lane) -> Traffic:
    return Traffic(lane.messages, lane.octets, lane.frames)


def _outcome_of(session: Session) -> str:
    outcome = session.outcome
    if isinstance(outcome.error, OverLimit):
        return "over_limit"
    if session.violated:
        return "violation"
    if outcome.end in (End.GONE, End.SILENT) and outcome.side is not None:
        return f"{'client' if outcome.side is Side.CLIENT else 'upstream'}_{outcome.end.value}"
    if outcome.end is End.FAILED:
        return "failed"
    return "closed" if session.agreed else "drained"


def _detail(session: Session) -> str:
    return f" ({session.outcome.error})" if session.outcome.error is not None else ""
