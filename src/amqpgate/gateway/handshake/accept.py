"""Connections from their accept until they are sessions, one fiber each; and how many there are.

::

    accepted ──▶ PROXY header, TLS, protocol header ──▶ `passthrough`, or `late_binding` ──▶ a session

All of it happens under one absolute deadline and with bounded memory, since the client has not proven who it
is.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import ssl
from typing import TYPE_CHECKING, NoReturn

import attrs
import trio

from amqpgate.bridge import VERSIONS, TranslatedVersion
from amqpgate.config import Listener
from amqpgate.errors import AmqpgateError, ConfigError, ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.client_side import ClientHandshake
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.failures import HandshakeFailures
from amqpgate.gateway.handshake.late_binding import LateBinding
from amqpgate.gateway.handshake.passthrough import Passthrough
from amqpgate.gateway.handshake.pending import PendingHandshake, Silence
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.observers.stats.session import StatsObserver
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.session.registry import SessionRegistry
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.conversation import invite, say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.tls import identity
from amqpgate.gateway.transport.waiting import CancelScope, fail_after, in_trio, move_on_after
from amqpgate.gateway.upstream.broker_side import UpstreamFaultError
from amqpgate.gateway.upstream.client import RefusedError
from amqpgate.gateway.upstream.dialer import UpstreamUnavailableError
from amqpgate.gateway.upstream.route_pause import PausedError
from amqpgate.logs import RECURRING
from amqpgate.policy import SelectedPolicies, SessionDeniedError
from amqpgate.protocol.header import HEADER_SIZE, REFUSAL, name_of
from amqpgate.protocol.methods import Role
from amqpgate.protocol.proxy_header import ProxyHeader, ProxyHeaderError, ProxyHeaderParser
from amqpgate.telemetry.faults import FAULTS
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
        self.count -= 1
        self.metrics.ended(outcome)


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
        fibers = self.sessions.fibers
        pending = None
        if not fibers.is_closed and self.connections.has_room:
            # Of a balancer's connections it is not known yet whose they are.
            source = address.rpartition(":")[0] if listener.proxy_protocol == "none" else None
            pending = self.context.pending.enter(source)
        if pending is None:
            self.connections.metrics.ended("over_limit")
            self.failures.add(trio.current_time(), "a connection", address, "over_limit", TOO_MANY)
            connection.close()
            return
        self.connections.begun()
        try:
            serving = self._serve(connection, address, listener, pending)
            try:
                fibers.start_soon(serving)
            except BaseException:
                serving.close()
                raise
        except BaseException:
            self._left(connection, pending, "failed")
            raise

    async def _serve(
        self, sock: socket.socket, address: str, listener: Listener, pending: PendingHandshake
    ) -> None:
        """Bring a session about. The fiber ends there: an established session needs none."""
        session_id = ""
        outcome: str | None = "failed"
        try:
            session_id = secrets.token_hex(8)
            outcome = await self._receive(sock, Caller(session_id, address), listener, pending)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("session %s from %s failed", session_id, address)
        finally:
            try:
                self.context.admission.leave(session_id)
            finally:
                self._left(sock, pending, outcome)

    def _left(self, sock: socket.socket, pending: PendingHandshake, outcome: str | None) -> None:
        """It is no pending handshake any more; ``outcome`` None: but a session."""
        try:
            self.context.pending.leave(pending)
        finally:
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
                if policies_for.audit is not None and policies_for.audit.is_full:
                    await in_trio(policies_for.audit.room)
                established = await arrival.receive(sock)
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
            address = arrival.caller.address
            self.failures.add(trio.current_time(), caller.session_id, address, failed.outcome, str(failed))
            if self.tracer is not None and timing is not None:
                stranger = caller.principal(listener, None, "", {})
                rules = policies_for.in_force.now.traces_of(stranger)
                self.tracer.set_up(rules, stranger, caller.session_id, timing, failed.outcome)
            return failed.outcome
        try:
            context.pending.leave(pending)
            session = self.sessions.establish(caller.session_id, established, policies)
        except SessionDeniedError as error:
            # Since connection.open was allowed, the policies have changed.
            address = arrival.caller.address
            log.warning("%s from %s: %s", caller.session_id, address, error, extra=RECURRING)
            established.close()
            return "refused"
        except BaseException:
            established.close()
            raise
        try:
            self._tell(session, arrival.caller, policies, timing)
        except Exception:
            FAULTS.caught("metrics", "what is told of a new session")
        if pending.scope.cancel_called:
            session.relay.finish()
        return None

    def _tell(
        self, session: Session, caller: Caller, policies: SelectedPolicies, timing: HandshakeTiming | None
    ) -> None:
        """Tell those who look on where the session comes from."""
        principal, choice = policies.principal, session.facts.choice
        route = None if choice is None else choice.policy
        self.context.policies.selected.note(principal, session.session_policies.access, route)
        upstream = self.context.router.cluster_of(choice, principal.listener).name
        for observer in session.session_policies.observers:
            if isinstance(observer, StatsObserver):
                observer.opened_from(caller.address, upstream)
        if self.tracer is not None and timing is not None:
            rules = policies.policies.traces_of(principal)
            self.tracer.set_up(rules, principal, session.id, timing)


class NotEstablishedError(AmqpgateError):
    """The connection did not become a session. ``outcome`` is the metric's label."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


@attrs.define
class ClientArrival:
    """Receives one connection. ``receive`` returns both open hops or raises ``NotEstablishedError``.

    Whatever it raises, both sockets are closed by then.
    """

    context: HandshakeContext
    listener: Listener
    pending: PendingHandshake
    #: Where it is noted how far the handshake has come; None: nowhere.
    timing: HandshakeTiming | None
    #: Who calls, as far as it is known.
    caller: Caller
    client: MethodStream = attrs.field(init=False)
    broker: MethodStream | None = attrs.field(default=None, init=False)
    deadline: CancelScope = attrs.field(init=False)

    async def receive(self, sock: socket.socket) -> Established:
        limits = self.context.settings.limits
        self.client = MethodStream(sock, frame_max=limits.handshake_frame_max, peer=Role.CLIENT)
        kept = False
        try:
            with fail_after(limits.handshake_timeout) as self.deadline:
                await self._approach()
                established = await self._establish(self.caller)
            kept = True
            if self.timing is not None:
                self.timing.mark("open-ok")
            return established
        except trio.TooSlowError:
            raise NotEstablishedError(
                "handshake_timeout", f"not established within {limits.handshake_timeout:g} s"
            ) from None
        except StreamClosedError as closed:
            raise NotEstablishedError("handshake_failed", f"client: {closed}") from closed
        except (ssl.SSLError, OSError) as error:
            raise NotEstablishedError("handshake_failed", f"client: {error}") from error
        except (RefusedError, ProxyHeaderError) as refused:
            raise NotEstablishedError("refused", str(refused)) from refused
        except ProtocolViolation as violation:
            await self._say_close(violation)
            raise NotEstablishedError("violation", str(violation)) from violation
        finally:
            if not kept:
                self.client.close()
                if self.broker is not None:
                    self.broker.close()

    async def _approach(self) -> None:
        """What comes before AMQP: where the client really is, and TLS."""
        if self.listener.proxy_protocol != "none":
            header = await self._proxy_header()
            if header.source is not None:
                self.caller = attrs.evolve(self.caller, address=str(header.source))
                if not self.context.pending.of(self.pending, self.caller.source):
                    raise NotEstablishedError("over_limit", "too many handshakes from its address")
        if self.listener.tls is not None:
            try:
                context = self.context.contexts.for_listener(self.listener.tls)
            except ConfigError as error:
                log.error("a client is refused: %s", error, extra=RECURRING)
                raise RefusedError(str(error)) from error
            await self.client.start_tls(context, server_side=True)
            assert isinstance(self.client.sock, ssl.SSLSocket)
            self.caller = attrs.evolve(self.caller, tls=identity(self.client.sock))
            if self.timing is not None:
                self.timing.mark("tls")

    async def _proxy_header(self) -> ProxyHeader:
        # A byte at a time: what follows may be a TLS handshake, which must find its first byte.
        parser = ProxyHeaderParser()
        while (header := parser.feed(await self.client.receive_exactly(1))) is None:
            pass
        if self.listener.proxy_protocol not in ("any", f"v{header.version}"):
            raise ProxyHeaderError(f"PROXY v{header.version}, not {self.listener.proxy_protocol}")
        return header

    async def _establish(self, caller: Caller) -> Established:
        context, router = self.context, self.context.router
        header = await self.client.receive_exactly(HEADER_SIZE)
        context.pending.awaits(self.pending, None)
        version = VERSIONS.of_client(header)
        if version is None:
            # The standard's answer (AMQP 0-9-1, section 4.2.2): what we speak, and the end.
            await self.client.send(REFUSAL)
            await self.client.linger()
            raise RefusedError(f"not a protocol header that is spoken here: {name_of(header)}")
        if isinstance(version, TranslatedVersion):
            # It may be imported, which is nothing for the data path's thread.
            self.client.translate(await in_trio(trio.to_thread.run_sync, version.client))
            self.client.speak(version.interpreter)
        else:
            self.client.speak(version.client())
        if self.timing is not None:
            self.timing.mark("protocol-header")
        before = caller.principal(self.listener, None, "", {})
        stranger = context.policies.of_stranger(before, caller.session_id)
        if stranger is not None:
            over_limit = await context.admission.enter(AdmissionStage.ARRIVAL, stranger)
            if over_limit is not None:
                # Without a word, as where there are too many connections.
                raise NotEstablishedError("over_limit", over_limit.text)
        early = router.choose_early(self.listener, before, caller.session_id)
        if early is None:
            return await self._establish_late(caller)
        try:
            if router.is_paused(early):
                with self.deadline.standing_still():
                    dialler = await router.dialler(self.listener, before, caller.session_id, early=early)
            else:
                dialler = await router.dialler(self.listener, before, caller.session_id, early=early)
            greeting, line = await dialler.greet()
            if line is not None and self.timing is not None:
                self.timing.mark("dial")
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            context.pending.awaits(self.pending, Silence.GREETED)
            await invite(self.client)
            await self._unavailable(error)
        client = self._handshake(caller)
        passthrough = Passthrough(client, dialler, greeting, line)
        try:
            established = await passthrough.run()
            router.count_shadows(established.policies.principal, caller.session_id)
            return established
        except (UpstreamUnavailableError, ConfigError) as error:
            # No broker answers, or there is no login for it.
            if passthrough.line is not None:
                passthrough.line.hop.close()
            await self._unavailable(error)
        except UpstreamFaultError as fault:
            why = f"upstream {passthrough.address}: {fault}"
            log.warning("upstream %s: %s", passthrough.address, fault, extra=RECURRING)
            if client.is_silent:
                # The broker hangs up in these states to refuse a login, and that is what the client sees.
                raise NotEstablishedError("refused", why) from fault
            if client.is_logging_in:
                await self._say_close(ProtocolViolation(403, "Authentication failed"))
                raise NotEstablishedError("refused", why) from fault
            await self._say_close(ProtocolViolation(320, why))
            raise NotEstablishedError("upstream_unavailable", why) from fault
        finally:
            self.broker = None if passthrough.line is None else passthrough.line.hop

    async def _establish_late(self, caller: Caller) -> Established:
        """The broker is chosen by what the client says."""
        client = self._handshake(caller)
        late = LateBinding(client, self.deadline.standing_still)
        try:
            return await late.run()
        except (UpstreamUnavailableError, ConfigError, PausedError) as error:
            await self._unavailable(error)
        finally:
            self.broker = late.broker

    def _handshake(self, caller: Caller) -> ClientHandshake:
        return ClientHandshake(self.context, caller, self.listener, self.client, self.pending, self.timing)

    async def _unavailable(self, error: AmqpgateError) -> NoReturn:
        """There is no broker for the client."""
        if not isinstance(error, UpstreamUnavailableError):
            log.warning("%s", error, extra=RECURRING)
        # Where files are is not the client's business.
        why = "the gateway's log says why" if isinstance(error, ConfigError) else str(error)
        await self._say_close(ProtocolViolation(320, why))
        raise NotEstablishedError("upstream_unavailable", str(error)) from error

    async def _say_close(self, why: ProtocolViolation) -> None:
        with (
            move_on_after(self.context.settings.limits.close_timeout),
            contextlib.suppress(StreamClosedError),
        ):
            await say_close(self.client, why)
