"""Connections from their accept until they are sessions, one task each; and how many there are."""

from __future__ import annotations

import logging
import secrets
import socket
from functools import partial
from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.config import Listener
from amqpgate.gateway.handshake.client_side import Caller
from amqpgate.gateway.handshake.failures import HandshakeFailures
from amqpgate.gateway.handshake.handshake import ClientArrival, NotEstablishedError
from amqpgate.gateway.handshake.pending import PendingHandshake, PendingHandshakes, source_of
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.session.established import Established
from amqpgate.operator.sessions import cluster_of
from amqpgate.policy import Operation, PolicySet, Principal, SessionRefusedError, refusal

if TYPE_CHECKING:
    from amqpgate.gateway.server.gateway import Gateway

log = logging.getLogger(__name__)

TOO_MANY = "there are too many connections, or handshakes"


@attrs.define(eq=False)
class Acceptor:
    """Those of one gateway."""

    gateway: Gateway
    #: Connections that there are, sessions included.
    count: int = attrs.field(default=0, init=False)
    #: The connections that are not established yet.
    handshakes: PendingHandshakes = attrs.field(init=False)
    lost: HandshakeFailures = attrs.field(factory=HandshakeFailures, init=False)

    def __attrs_post_init__(self) -> None:
        limits = self.gateway.settings.limits
        self.handshakes = PendingHandshakes(limits.max_handshakes, limits.handshakes_per_address)

    def enter(self, connection: socket.socket, address: str, listener: Listener) -> None:
        """Take it in, unless there are too many."""
        tasks = self.gateway.established.tasks
        handshake = None
        if tasks is not None and self.count < self.gateway.settings.limits.max_connections:
            # Of a balancer's connections it is not known yet whose they are.
            source = address.rpartition(":")[0] if listener.proxy_protocol == "none" else None
            handshake = self.handshakes.enter(source)
        if tasks is None or handshake is None:
            self.gateway.metrics.ended("over_limit")
            self.lost.add(trio.current_time(), "a connection", address, "over_limit", TOO_MANY)
            connection.close()
            return
        self.count += 1
        tasks.start_soon(self._serve, connection, address, listener, handshake)

    def end(self) -> None:
        """None becomes a session any more."""
        self.handshakes.cancel()

    def gone(self, outcome: str) -> None:
        """A connection, or a session, has ended so."""
        self.gateway.metrics.ended(outcome)
        self.count -= 1

    async def _serve(
        self, sock: socket.socket, address: str, listener: Listener, handshake: PendingHandshake
    ) -> None:
        """Bring a session about. The task ends there: an established session needs none."""
        caller = Caller(secrets.token_hex(8), address)
        outcome: str | None = "failed"
        try:
            outcome = await self._receive(sock, caller, listener, handshake)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("session %s from %s failed", caller.session_id, address)
        finally:
            self.handshakes.leave(handshake)
            self.gateway.door.leave(caller.session_id)
            if outcome is not None:
                sock.close()
                self.gone(outcome)

    async def _receive(
        self, sock: socket.socket, caller: Caller, listener: Listener, handshake: PendingHandshake
    ) -> str | None:
        """How it ended, or None where the session is on the data path now."""
        gateway = self.gateway
        tracing = gateway.tracing
        reception = ClientArrival(
            gateway.settings,
            listener,
            gateway.routing,
            gateway.pools,
            gateway.principals,
            gateway.contexts,
            gateway.version,
            self._may_open,
            gateway.door,
            self.handshakes,
            handshake,
            None if tracing is None else HandshakeTiming(),
        )
        try:
            with handshake.scope:
                if gateway.auditing is not None:
                    await gateway.auditing.room()
                caller, established = await reception.receive(sock, caller)
                try:
                    policies = await self._prepared(established.principal, caller.session_id)
                except BaseException:
                    _hang_up(established)
                    raise
            if handshake.scope.cancelled_caught:
                if not handshake.gave_way:
                    return "drained"
                raise NotEstablishedError("over_limit", "silent for longest when there was no more room")
        except NotEstablishedError as failed:
            address = reception.caller.address
            self.lost.add(trio.current_time(), caller.session_id, address, failed.outcome, str(failed))
            if tracing is not None and reception.stages is not None:
                stranger = caller.principal(listener, None, "", {})
                rules = gateway.policies.traces_of(stranger)
                tracing.set_up(rules, stranger, caller.session_id, reception.stages, failed.outcome)
            return failed.outcome
        self.handshakes.leave(handshake)
        try:
            session = gateway.established.establish(caller.session_id, established, policies)
        except SessionRefusedError as error:
            # Since connection.open was allowed, the policies have changed.
            log.warning("%s from %s: %s", caller.session_id, caller.address, error)
            _hang_up(established)
            return "refused"
        route = None if session.choice is None else session.choice.policy
        gateway.selected.note(session.principal, session.judging.judges, route)
        gateway.reports.opened(session, caller.address, cluster_of(session, gateway.settings))
        traces = session.judging.traces
        if traces is not None and reception.stages is not None:
            traces.tracing.set_up(traces.rules, session.principal, session.id, reception.stages)
        if handshake.scope.cancel_called:
            session.relay.finish()
        return None

    async def _prepared(self, principal: Principal, session: str) -> PolicySet:
        """The policies in force, compiled for the session."""
        gateway = self.gateway
        while True:
            policies = gateway.policies
            if not policies.is_prepared(principal, session):
                source = source_of(principal.source or "")
                await gateway.compiling.run_for(source, partial(policies.prepare, principal, session))
            if policies is gateway.policies:
                return policies

    async def _may_open(self, principal: Principal, session: str) -> str | None:
        """Whether a policy refuses the vhost: why, in RabbitMQ's words for it."""
        gateway = self.gateway
        operation = Operation(principal, "connection.open")
        policies = await self._prepared(principal, session)
        judges = policies.judges_of(principal, session)
        verdict = judges.enforced.decide(operation)
        if verdict.allowed:
            gateway.reports.allowed(verdict)
            try:
                policies.transform_for(principal)
            except SessionRefusedError as error:
                # The client is not told which policies there are.
                log.warning("refused: user %r, vhost %r: %s", principal.user, principal.vhost, error)
                verdict = attrs.evolve(verdict, effect="deny")
            else:
                return None
        else:
            gateway.reports.denied(verdict, operation, session)
        gateway.selected.note(principal, judges)
        if gateway.auditing is not None:
            gateway.auditing.auditor(session, principal, policies).denied(verdict, operation)
        return refusal(operation, verdict)


def _hang_up(established: Established) -> None:
    established.client.sock.close()
    established.upstream.close()
