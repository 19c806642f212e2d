"""Connections from their accept until they are sessions, one task each; and how many there are."""

from __future__ import annotations

import logging
import secrets
import socket
from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.config import Listener
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.failures import HandshakeFailures
from amqpgate.gateway.handshake.handshake import ClientArrival, NotEstablishedError
from amqpgate.gateway.handshake.pending import PendingHandshake
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.observers.stats.session import StatsObserver
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.upstream.router import cluster_of
from amqpgate.policy import SessionDeniedError
from amqpgate.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer

log = logging.getLogger(__name__)

TOO_MANY = "there are too many connections, or handshakes"


@attrs.define(eq=False)
class Connections:
    """How many connections of clients there are, sessions included, and how they ended."""

    #: As many are accepted.
    most: int
    metrics: Metrics
    count: int = attrs.field(default=0, init=False)

    @property
    def has_room(self) -> bool:
        """Whether one more may come in."""
        return self.count < self.most

    def begun(self) -> None:
        """There is one more."""
        self.count += 1

    def ended(self, outcome: str) -> None:
        """A connection, or a session, has ended so."""
        self.metrics.ended(outcome)
        self.count -= 1


@attrs.define(eq=False)
class Acceptor:
    """Brings about the sessions of one gateway."""

    context: HandshakeContext
    connections: Connections
    sessions: SessionRegistry
    #: None: nothing is traced.
    tracer: Tracer | None
    failures: HandshakeFailures = attrs.field(factory=HandshakeFailures, init=False)

    def enter(self, connection: socket.socket, address: str, listener: Listener) -> None:
        """Take a connection in, unless there are too many."""
        tasks = self.sessions.tasks
        pending = None
        if tasks is not None and self.connections.has_room:
            # Of a balancer's connections it is not known yet whose they are.
            source = address.rpartition(":")[0] if listener.proxy_protocol == "none" else None
            pending = self.context.pending.enter(source)
        if tasks is None or pending is None:
            self.connections.metrics.ended("over_limit")
            self.failures.add(trio.current_time(), "a connection", address, "over_limit", TOO_MANY)
            connection.close()
            return
        self.connections.begun()
        tasks.start_soon(self._serve, connection, address, listener, pending)

    async def _serve(
        self, sock: socket.socket, address: str, listener: Listener, pending: PendingHandshake
    ) -> None:
        """Bring a session about. The task ends there: an established session needs none."""
        caller = Caller(secrets.token_hex(8), address)
        outcome: str | None = "failed"
        try:
            outcome = await self._receive(sock, caller, listener, pending)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("session %s from %s failed", caller.session_id, address)
        finally:
            self.context.pending.leave(pending)
            self.context.admission.leave(caller.session_id)
            if outcome is not None:
                sock.close()
                self.connections.ended(outcome)

    async def _receive(
        self, sock: socket.socket, caller: Caller, listener: Listener, pending: PendingHandshake
    ) -> str | None:
        """How it ended, or None where the session is on the data path now."""
        context, policies_for = self.context, self.context.policies
        timing = None if self.tracer is None else HandshakeTiming()
        arrival = ClientArrival(context, listener, pending, timing, caller)
        try:
            with pending.scope:
                if policies_for.audit is not None:
                    await policies_for.audit.room()
                established = await arrival.receive(sock)
                try:
                    policies = await policies_for.prepared(established.principal, caller.session_id)
                except BaseException:
                    established.close()
                    raise
            if pending.scope.cancelled_caught:
                if not pending.gave_way:
                    return "drained"
                raise NotEstablishedError("over_limit", "silent for longest when there was no more room")
        except NotEstablishedError as failed:
            address = arrival.caller.address
            self.failures.add(trio.current_time(), caller.session_id, address, failed.outcome, str(failed))
            if self.tracer is not None and timing is not None:
                stranger = caller.principal(listener, None, "", {})
                rules = policies_for.in_force.now.traces_of(stranger)
                self.tracer.set_up(rules, stranger, caller.session_id, timing, failed.outcome)
            return failed.outcome
        context.pending.leave(pending)
        caller = arrival.caller
        try:
            session = self.sessions.establish(caller.session_id, established, policies)
        except SessionDeniedError as error:
            # Since connection.open was allowed, the policies have changed.
            log.warning("%s from %s: %s", caller.session_id, caller.address, error)
            established.close()
            return "refused"
        principal, choice = established.principal, session.facts.choice
        route = None if choice is None else choice.policy
        policies_for.selected.note(principal, session.session_policies.access, route)
        upstream = cluster_of(choice, principal.listener, context.settings)
        for observer in session.session_policies.observers:
            if isinstance(observer, StatsObserver):
                observer.opened_from(caller.address, upstream)
        if self.tracer is not None and timing is not None:
            rules = policies.traces_of(principal)
            self.tracer.set_up(rules, principal, session.id, timing)
        if pending.scope.cancel_called:
            session.relay.finish()
        return None
