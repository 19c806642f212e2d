"""Connections from their accept until they are sessions; and how many there are.

::

    accepted ──▶ `fast_handshake` ────────────────────────────────────────────────────────▶ a session
       │            └── what is not like others ──▶ │
       └──▶ `arrival`: PROXY header, TLS, protocol header ──▶ `passthrough`, or `late_binding` ──▶ a session

All of it happens under one absolute deadline and with bounded memory, since the client has not proven who it
is.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.config import Listener
from amqpgate.gateway.handshake.arrival import ClientArrival, NotEstablishedError
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.failures import HandshakeFailures
from amqpgate.gateway.handshake.fast_handshake import begin_fast
from amqpgate.gateway.handshake.fast_path import FastPath
from amqpgate.gateway.handshake.pending import PendingHandshake
from amqpgate.gateway.handshake.progress import Progress
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.observers.stats.session import StatsObserver
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.waiting import in_trio
from amqpgate.logs import RECURRING, About
from amqpgate.policy import SelectedPolicies, SessionDeniedError
from amqpgate.telemetry.faults import FAULTS
from amqpgate.telemetry.metrics import Metrics
from amqpgate.values import define

if TYPE_CHECKING:
    from amqpgate.gateway.observers.trace.tracer import Tracer

log = logging.getLogger(__name__)

TOO_MANY = "there are too many connections, or handshakes"


@define(eq=False)
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
        self.count -= 1
        self.metrics.ended(outcome)


@define(eq=False)
class Acceptor:
    """Brings about the sessions of one gateway."""

    context: HandshakeContext
    connections: Connections
    sessions: SessionRegistry
    #: None: nothing is traced.
    tracer: Tracer | None
    failures: HandshakeFailures = attrs.field(factory=HandshakeFailures, init=False)
    #: By the name of a listener; it is not for those behind balancers, nor to be traced.
    _fast: Mapping[str, FastPath] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._fast = {
            listener.name: FastPath(self.context, listener, self)
            for listener in self.context.settings.listeners
            if self.tracer is None and listener.proxy_protocol == "none"
        }

    def enter(self, listener: Listener, connection: socket.socket, address: str) -> None:
        """Take a connection in, unless there are too many."""
        fibers = self.sessions.fibers
        pending = None
        if not fibers.is_closed and self.connections.has_room:
            # Of a balancer's connections it is not known yet whose they are.
            source = address.rpartition(":")[0] if listener.proxy_protocol == "none" else None
            pending = self.context.pending.enter(source)
        if pending is None:
            self.connections.metrics.ended("over_limit")
            who: About = {"listener": listener.name}
            self.failures.add(trio.current_time(), "a connection", address, "over_limit", TOO_MANY, who)
            connection.close()
            return
        self.connections.begun()
        try:
            path = self._fast.get(listener.name)
            if path is None:
                self._serve_soon(connection, address, listener, pending)
            else:
                fibers.begin(begin_fast(path, fibers, connection, address, pending))
        except BaseException:
            self.left(connection, pending, "failed")
            raise

    def converse(
        self, sock: socket.socket, listener: Listener, pending: PendingHandshake, progress: Progress
    ) -> None:
        """What has left the fast path goes on."""
        self._serve_soon(sock, progress.caller.address, listener, pending, progress)

    def _serve_soon(
        self,
        sock: socket.socket,
        address: str,
        listener: Listener,
        pending: PendingHandshake,
        progress: Progress | None = None,
    ) -> None:
        serving = self._serve(sock, address, listener, pending, progress)
        try:
            self.sessions.fibers.start_soon(serving)
        except BaseException:
            serving.close()
            raise

    async def _serve(
        self,
        sock: socket.socket,
        address: str,
        listener: Listener,
        pending: PendingHandshake,
        progress: Progress | None,
    ) -> None:
        """Bring a session about. The fiber ends there: an established session needs none."""
        session_id = "" if progress is None else progress.caller.session_id
        outcome: str | None = "failed"
        try:
            session_id = session_id or secrets.token_hex(8)
            outcome = await self._receive(sock, Caller(session_id, address), listener, pending, progress)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("session %s from %s failed", session_id, address)
        finally:
            try:
                self.context.admission.leave(session_id)
            finally:
                self.left(sock, pending, outcome)

    def left(self, sock: socket.socket, pending: PendingHandshake, outcome: str | None) -> None:
        """It is no pending handshake any more; ``outcome`` None: but a session."""
        try:
            self.context.pending.leave(pending)
        finally:
            if outcome is not None:
                sock.close()
                self.connections.ended(outcome)

    async def _receive(
        self,
        sock: socket.socket,
        caller: Caller,
        listener: Listener,
        pending: PendingHandshake,
        progress: Progress | None,
    ) -> str | None:
        """How it ended, or None where the session is on the data path now."""
        context, policies_for = self.context, self.context.policies
        timing = None if self.tracer is None else HandshakeTiming()
        arrival = ClientArrival(context, listener, pending, timing, caller)
        try:
            with pending.scope:
                if policies_for.audit is not None and policies_for.audit.is_full:
                    await in_trio(policies_for.audit.room)
                established = await arrival.receive(sock, progress)
                try:
                    policies = await policies_for.still(established.policies)
                except BaseException:
                    established.close()
                    raise
            if pending.scope.cancelled_caught:
                if not pending.gave_way:
                    return "drained"
                raise NotEstablishedError("over_limit", "silent for longest when there was no more room")
        except NotEstablishedError as failed:
            self._note(arrival, failed)
            if self.tracer is not None and timing is not None:
                stranger = caller.principal(listener, None, "", {})
                rules = policies_for.in_force.now.traces_of(stranger)
                self.tracer.set_up(rules, stranger, caller.session_id, timing, failed.outcome)
            return failed.outcome
        is_session = self.establish(arrival.caller, established, pending, policies, timing)
        return None if is_session else "refused"

    def _note(self, arrival: ClientArrival, failed: NotEstablishedError) -> None:
        """It has failed: for the log, and where its login was refused for the records."""
        who, caller, outcome = arrival.claimed, arrival.caller, failed.outcome
        self.failures.add(
            trio.current_time(),
            caller.session_id,
            caller.address,
            outcome,
            str(failed),
            {
                "user": who.user,
                "vhost": who.vhost or None,
                "listener": who.listener,
                "upstream": arrival.upstream,
                "reply_code": failed.code,
            },
        )
        audit = self.context.policies.audit
        if failed.of_login and audit is not None:
            audit.refused(caller.session_id, who, arrival.upstream, failed.code, str(failed))

    def establish(
        self,
        caller: Caller,
        established: Established,
        pending: PendingHandshake,
        policies: SelectedPolicies,
        timing: HandshakeTiming | None = None,
    ) -> bool:
        """Both hops are open: it becomes a session. Whether it did; else they are closed."""
        try:
            self.context.pending.leave(pending)
            session = self.sessions.establish(caller.session_id, established, policies)
        except SessionDeniedError as error:
            # Since connection.open was allowed, the policies have changed.
            log.warning("%s from %s: %s", caller.session_id, caller.address, error, extra=RECURRING)
            established.close()
            return False
        except BaseException:
            established.close()
            raise
        try:
            self._tell(session, caller, policies, timing)
        except Exception:
            FAULTS.caught("metrics", "what is told of a new session")
        if pending.is_cancelled:
            session.relay.finish()
        return True

    def _tell(
        self, session: Session, caller: Caller, policies: SelectedPolicies, timing: HandshakeTiming | None
    ) -> None:
        """Tell those who look on where the session comes from."""
        principal, choice = policies.principal, session.facts.choice
        route = None if choice is None else choice.policy
        for observer in session.session_policies.observers:
            if isinstance(observer, StatsObserver):
                observer.opened_from(caller.address, session.facts.cluster)
        self.context.policies.selected.count(principal, session.session_policies.access, route)
        if self.tracer is not None and timing is not None:
            rules = policies.policies.traces_of(principal)
            self.tracer.set_up(rules, principal, session.id, timing)
