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
from amqpgate.gateway.client_handshake import Caller
from amqpgate.gateway.reception import NotEstablishedError, Reception
from amqpgate.gateway.session_rows import cluster_of
from amqpgate.gateway.setup import Established
from amqpgate.gateway.stages import Stages
from amqpgate.policy import Operation, PolicySet, Principal, SessionRefusedError, refusal

if TYPE_CHECKING:
    from amqpgate.gateway.server import Gateway

log = logging.getLogger(__name__)


@attrs.define(eq=False)
class Arrivals:
    """Those of one gateway."""

    gateway: Gateway
    #: Connections that there are, sessions included.
    count: int = attrs.field(default=0, init=False)
    #: Of the connections that are not established yet.
    handshakes: set[trio.CancelScope] = attrs.field(factory=set, init=False)

    def enter(self, connection: socket.socket, address: str, listener: Listener) -> None:
        """Take it in, unless there are too many."""
        limits = self.gateway.settings.limits
        too_many = self.count >= limits.max_connections
        tasks = self.gateway.established.tasks
        if tasks is None or too_many or len(self.handshakes) >= limits.max_handshakes:
            self.gateway.metrics.ended("over_limit")
            connection.close()
            return
        self.count += 1
        tasks.start_soon(self._serve, connection, address, listener)

    def end(self) -> None:
        """None becomes a session any more."""
        for handshake in self.handshakes:
            handshake.cancel()

    def gone(self, outcome: str) -> None:
        """A connection, or a session, has ended so."""
        self.gateway.metrics.ended(outcome)
        self.count -= 1

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
            self.gateway.door.leave(caller.session_id)
            if outcome is not None:
                sock.close()
                self.gone(outcome)

    async def _receive(self, sock: socket.socket, caller: Caller, listener: Listener) -> str | None:
        """How it ended, or None where the session is on the data path now."""
        gateway = self.gateway
        tracing = gateway.tracing
        reception = Reception(
            gateway.settings,
            listener,
            gateway.routing,
            gateway.pools,
            gateway.contexts,
            gateway.version,
            self._may_open,
            gateway.door,
            None if tracing is None else Stages(),
        )
        handshake = trio.CancelScope()
        self.handshakes.add(handshake)
        try:
            with handshake:
                if gateway.auditing is not None:
                    await gateway.auditing.room()
                caller, established = await reception.receive(sock, caller)
                try:
                    policies = await self._prepared(established.principal, caller.session_id)
                except BaseException:
                    _hang_up(established)
                    raise
            if handshake.cancelled_caught:
                return "drained"
        except NotEstablishedError as failed:
            log.info("%s from %s: %s", caller.session_id, caller.address, failed)
            if tracing is not None and reception.stages is not None:
                stranger = caller.principal(listener, None, "", {})
                rules = gateway.policies.traces_of(stranger)
                tracing.set_up(rules, stranger, caller.session_id, reception.stages, failed.outcome)
            return failed.outcome
        finally:
            self.handshakes.remove(handshake)
        try:
            session = gateway.established.establish(caller.session_id, established, policies)
        except SessionRefusedError as error:
            # Since connection.open was allowed, the policies have changed.
            log.warning("%s from %s: %s", caller.session_id, caller.address, error)
            _hang_up(established)
            return "refused"
        gateway.reports.opened(session, caller.address, cluster_of(session, gateway.settings))
        traces = session.judging.traces
        if traces is not None and reception.stages is not None:
            traces.tracing.set_up(traces.rules, session.principal, session.id, reception.stages)
        if handshake.cancel_called:
            session.relay.finish()
        return None

    async def _prepared(self, principal: Principal, session: str) -> PolicySet:
        """The policies in force, compiled for the session."""
        gateway = self.gateway
        while True:
            policies = gateway.policies
            if not policies.is_prepared(principal, session):
                await gateway.compiling.run(partial(policies.prepare, principal, session))
            if policies is gateway.policies:
                return policies

    async def _may_open(self, principal: Principal, session: str) -> str | None:
        """Whether a policy refuses the vhost: why, in RabbitMQ's words for it."""
        gateway = self.gateway
        operation = Operation(principal, "connection.open")
        policies = await self._prepared(principal, session)
        verdict = policies.judges_of(principal, session).enforced.decide(operation)
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
        if gateway.auditing is not None:
            gateway.auditing.auditor(session, principal, policies).denied(verdict, operation)
        return refusal(operation, verdict)


def _hang_up(established: Established) -> None:
    established.client.sock.close()
    if established.upstream is not None:
        established.upstream.sock.close()
