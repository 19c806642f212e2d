"""The handshake that nearly all connections have, step by step; what is otherwise goes on as a conversation.

::

    client                      gateway                        broker
      │ protocol header ──────────▶ │ HEADER
      │ ◀────────────────── start   │  as this broker said it last
      │ start-ok ─────────────────▶ │ START_OK    ─────────── dial, protocol header ──────▶ │  CONNECT
      │                             │ GREETING    ◀─────────────────────────────────  start │
      │                             │ ────────────────────────────────────────── start-ok ▶ │
      │ ◀─────────────────── tune   │ TUNE        ◀──────────────────────────────────  tune │
      │ tune-ok ──────────────────▶ │ TUNE_OK     ───────────────────────────────── tune-ok ▶
      │ open ─────────────────────▶ │ OPEN        ────────────────────────────────────  open ▶
      │ ◀──────────────── open-ok   │ OPEN_OK     ◀───────────────────────────────  open-ok │

A step takes what was received at once, and goes on where that is what most peers say: byte for byte what
was understood before (`repeated`), but for the login in a start-ok. A broker is dialled by an address,
without TLS. Whatever else comes is not dealt with here: another version, half a frame, a challenge, a
refusal, the end of a connection, a deadline. `Conversations.converse` goes on with it, from the step that
it came at and with the bytes that came. So it is for who has to be judged: where logins are limited
(`ConnectionPolicies.judges_logins`), and where a policy has to be asked whether a virtual host may be
opened.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import socket
from typing import Final, Protocol

import attrs
import trio

from amqpgate.bridge import NATIVE, VERSIONS, pair_of
from amqpgate.config import Listener
from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.errors import ConfigError
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.agreements import Agreement, Agreements, Offer
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.passthrough import offered
from amqpgate.gateway.handshake.pending import PendingHandshake, Silence
from amqpgate.gateway.handshake.progress import Progress, Stage
from amqpgate.gateway.handshake.start_ok import UsualStartOk, start_ok_of, usual_start_ok
from amqpgate.gateway.session.established import Established, OwnSource
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.connecting import begin
from amqpgate.gateway.transport.fiber import Scheduler
from amqpgate.gateway.transport.method_stream import MethodStream, prepare
from amqpgate.gateway.transport.repeated import HEARD, START_FRAMES, frame_of
from amqpgate.gateway.transport.stepper import Stepper
from amqpgate.gateway.upstream.cluster import EndpointHealth
from amqpgate.gateway.upstream.dialer import BegunCall, DialedBroker, Dialer, too_slow, unreachable
from amqpgate.policy import SelectedPolicies
from amqpgate.protocol.methods import Role
from amqpgate.values import frozen
from amqpgate.wire.dialects import HEADER_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)

#: Bytes that are received at once. What most peers say is less; of more, nothing is looked at here.
_READ: Final = 16 * 1024
#: The version that is spoken here.
_VERSION: Final = VERSIONS.named("0-9-1")
_NATIVE: Final = pair_of(NATIVE, NATIVE)

# To look a member of an enum up takes Python 3.11 a detour each time.
_GREETED: Final = Silence.GREETED
_OPEN: Final = AdmissionStage.OPEN

#: Steps, by what is waited for.
HEADER, START_OK, CONNECT, GREETING, TUNE, TUNE_OK, OPEN, OPEN_OK = range(8)

#: Those that wait for the client.
_OF_CLIENT: Final = frozenset({HEADER, START_OK, TUNE_OK, OPEN})
#: What is received and has not been understood before.
_NOT_KNOWN: Final = None, b""

#: The stage that a conversation goes on from, by the step that it left at.
_STAGES: Final = (
    Stage.ACCEPTED,
    Stage.STARTED,
    Stage.STARTED,
    Stage.STARTED,
    Stage.LOGGED_IN,
    Stage.TUNING,
    Stage.TUNED,
    Stage.ASKED,
)


class Conversations(Protocol):
    """What becomes of connections that leave the fast path (`accept.Acceptor`)."""

    def converse(
        self, sock: socket.socket, listener: Listener, pending: PendingHandshake, progress: Progress
    ) -> None:
        """It goes on as a conversation, from there."""

    def establish(
        self,
        caller: Caller,
        established: Established,
        pending: PendingHandshake,
        policies: SelectedPolicies,
    ) -> bool:
        """It becomes a session; whether it did. Where it did not, its sockets are closed."""

    def left(self, sock: socket.socket, pending: PendingHandshake, outcome: str | None) -> None:
        """It is over so; None: it is a session."""


@attrs.define(eq=False)
class FastPath:
    """The fast path of one listener."""

    context: HandshakeContext
    listener: Listener
    conversations: Conversations
    agreements: Agreements = attrs.field(init=False)
    #: Seconds after which its connections look at their deadlines for the first time.
    first_look: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.agreements = Agreements(self.listener)
        settings = self.context.settings
        waits = [min(one.connect_timeout, one.answer_timeout) for one in settings.upstreams]
        self.first_look = min(settings.limits.handshake_timeout, *waits)

    @property
    def is_common(self) -> bool:
        """Whether nobody is to be asked before a client is answered."""
        policies = self.context.policies
        return not policies.judges_logins and (policies.audit is None or not policies.audit.is_full)

    def enter(
        self, scheduler: Scheduler, sock: socket.socket, address: str, pending: PendingHandshake
    ) -> FastHandshake:
        """The handshake of a connection that has just been accepted."""
        now = trio.current_time()
        until = now + self.context.settings.limits.handshake_timeout
        made = FastHandshake(scheduler, until, self, pending, sock, Caller(secrets.token_hex(8), address))
        pending.scope.tell(made)
        scheduler.look_at(made, now + self.first_look)
        return made


@frozen(eq=False)
class Greeted:
    """Where a connection goes whose client has heard start."""

    dialler: Dialer
    #: Whose start it was.
    endpoint: EndpointHealth
    start: amqp.ConnectionStart


@frozen(eq=False)
class Line:
    """A connection to the broker that is not answered yet."""

    sock: socket.socket
    #: On trio's clock: since when, and until when it is waited for.
    since: float
    until: float


@attrs.define(eq=False)
class FastHandshake(Stepper):
    """The handshake of one connection, while it is like others."""

    path: FastPath
    pending: PendingHandshake
    client: socket.socket
    caller: Caller
    #: What is waited for.
    step: int = attrs.field(default=HEADER, init=False)
    _greeted: Greeted | None = attrs.field(default=None, init=False)
    _said: UsualStartOk | None = attrs.field(default=None, init=False)
    _line: Line | None = attrs.field(default=None, init=False)
    _offer: Offer | None = attrs.field(default=None, init=False)
    _agreement: Agreement | None = attrs.field(default=None, init=False)
    #: What the client wants to be opened, and the policies that let it.
    _opening: tuple[amqp.ConnectionOpen, SelectedPolicies] | None = attrs.field(default=None, init=False)
    #: Why nothing more is received of whom it waits for.
    _fault: OSError | None = attrs.field(default=None, init=False)

    def proceed(self) -> bool:
        self.is_queued = False
        try:
            if self.is_cancelled:
                self._drop()
                return True
            if self.is_interrupted:
                return self._leave()
            return _STEPS[self.step](self)
        except Exception:
            # One connection's fault ends that connection.
            log.exception("session %s from %s failed", self.caller.session_id, self.caller.address)
            self._drop()
            return True

    def look(self, now: float) -> None:
        line = self._line
        until = self.until
        if self.step in (CONNECT, GREETING) and line is not None:
            until = min(until, line.until)
        if now >= until:
            self.is_interrupted = True
            self.scheduler.resume_soon(self)
        else:
            self.scheduler.look_at(self, until)

    # -- with the client ---------------------------------------------------------------------

    def _header(self) -> bool:
        data = self._receive(self.client)
        if data is None:
            return False
        path, listener, session = self.path, self.path.listener, self.caller.session_id
        if data != HEADER_0_9_1 or not path.is_common:
            return self._leave(data)
        router = path.context.router
        try:
            dialler = router.early_dialler(listener, self.caller, session)
        except ConfigError:
            dialler = None
        if dialler is None or dialler.settings.has_login or dialler.settings.tls is not None:
            return self._leave(data)
        now = trio.current_time()
        endpoint, version = dialler.cluster.ordered(session, now)[0], dialler.settings.version
        start, met = endpoint.starts.known(version, now), endpoint.starts.met
        if start is None or met is None or met.start is not start or met.asked is not _VERSION:
            return self._leave(data)
        if dialler.choice is not None:
            router.took(dialler.choice)
        self._greeted = Greeted(dialler, endpoint, start)
        path.context.pending.awaits(self.pending, _GREETED)
        return self._tell(self.client, START_FRAMES.of(offered(dialler, listener, start)), START_OK)

    def _start_ok(self) -> bool:
        data = self._receive(self.client)
        if data is None:
            return False
        context, greeted = self.path.context, self._greeted
        assert greeted is not None
        said = usual_start_ok(data) if len(data) <= context.settings.limits.handshake_frame_max else None
        if said is None or context.policies.judges_logins:
            return self._leave(data)
        if said.mechanism.encode() not in greeted.start.mechanisms.split():
            return self._leave(data)
        context.pending.awaits(self.pending, None)
        self._said = said
        return self._dial(greeted)

    def _tune_ok(self) -> bool:
        data = self._receive(self.client)
        if data is None:
            return False
        method, rest = HEARD.get(data, _NOT_KNOWN)
        if not isinstance(method, amqp.ConnectionTuneOk):
            return self._leave(data)
        assert self._offer is not None
        agreement = self._offer.agreed(method)
        if agreement is None:
            return self._leave(data)
        self._agreement = agreement
        self.step = OPEN
        if rest:
            # The client has not waited before it said open: neither does the broker wait for tune-ok alone.
            return self._ask(rest, agreement.frame)
        assert self._line is not None
        sent = _send(self._line.sock, agreement.frame)
        if sent < len(agreement.frame):
            return self._leave(broker_unsent=agreement.frame[sent:])
        self.wait_for(self.client)
        return False

    def _open(self) -> bool:
        data = self._receive(self.client)
        return False if data is None else self._ask(data, b"")

    def _ask(self, data: bytes, unsaid: bytes) -> bool:
        """The client wants its virtual host to be opened: this is where policies are asked."""
        method, rest = HEARD.get(data, _NOT_KNOWN)
        context, greeted, said = self.path.context, self._greeted, self._said
        assert greeted is not None
        assert said is not None
        if rest or not isinstance(method, amqp.ConnectionOpen):
            return self._leave(data, unsaid=unsaid)
        settings, user = greeted.dialler.settings, said.user
        if settings.vhost is not None:
            method = attrs.evolve(method, virtual_host=settings.vhost)
        principal = self.caller.principal(
            self.path.listener, user, method.virtual_host, said.introduction.said.texts, user
        )
        selected = context.policies.opens_at_once(principal, self.caller.session_id)
        if selected is None or context.admission.holds(_OPEN, selected.limits):
            return self._leave(data, unsaid=unsaid)
        self._opening = method, selected
        frame = unsaid + frame_of(
            amqp.ConnectionOpen, method.virtual_host, method.reserved_1, method.reserved_2
        )
        assert self._line is not None
        return self._tell(self._line.sock, frame, OPEN_OK)

    # -- with the broker ---------------------------------------------------------------------

    def _dial(self, greeted: Greeted) -> bool:
        dialler, now = greeted.dialler, trio.current_time()
        endpoint = dialler.next(now)
        if endpoint is not greeted.endpoint:
            self._greeted = Greeted(dialler, endpoint, greeted.start)
        self.step = CONNECT
        try:
            attempt = begin(endpoint.address.host, endpoint.address.port)
            if attempt is None:
                dialler.put_back(endpoint)
                return self._leave()
            self._line = Line(attempt.sock, now, now + dialler.settings.connect_timeout)
            if attempt.is_pending:
                self.wait_alone_for(attempt.sock, select.EPOLLOUT)
                return False
            attempt.settle()
        except OSError as error:
            return self._failed(error)
        return self._greet()

    def _connect(self) -> bool:
        assert self._line is not None
        sock = self._line.sock
        self.ignore(sock.fileno())
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return self._failed(OSError(error, os.strerror(error))) if error else self._greet()

    def _greet(self) -> bool:
        greeted, line = self._greeted, self._line
        assert greeted is not None
        assert line is not None
        try:
            prepare(line.sock, greeted.endpoint.address.host)
        except OSError as error:
            return self._failed(error)
        until = trio.current_time() + greeted.dialler.settings.answer_timeout
        self._line = Line(line.sock, line.since, until)
        return self._tell(line.sock, HEADER_0_9_1, GREETING)

    def _failed(self, error: OSError) -> bool:
        """It cannot be connected: the conversation tries another one."""
        greeted, line = self._greeted, self._line
        assert greeted is not None
        if line is not None:
            self._hang_up(line)
        greeted.dialler.give_up(greeted.endpoint, unreachable(greeted.endpoint.address, error))
        return self._leave()

    def _greeting(self) -> bool:
        greeted, line, said = self._greeted, self._line, self._said
        assert greeted is not None
        assert line is not None
        assert said is not None
        data = self._receive(line.sock)
        if data is None:
            return False
        method, rest = HEARD.get(data, _NOT_KNOWN)
        dialler, endpoint = greeted.dialler, greeted.endpoint
        met, version = endpoint.starts.met, dialler.settings.version
        if rest or met is None or not isinstance(method, amqp.ConnectionStart):
            return self._leave(data)
        if met.start is not greeted.start or not met.is_again(method, _VERSION, is_set=version != "auto"):
            return self._leave(data)
        endpoint.starts.heard(version, met.start, trio.current_time())
        dialler.answered(endpoint, met.start, line.since)
        endpoint.succeeded()
        frame = start_ok_of(said, self.caller, self.path.context.version)
        return self._tell(line.sock, frame, TUNE)

    def _tune(self) -> bool:
        assert self._line is not None
        assert self._greeted is not None
        data = self._receive(self._line.sock)
        if data is None:
            return False
        method, rest = HEARD.get(data, _NOT_KNOWN)
        if rest or not isinstance(method, amqp.ConnectionTune):
            return self._leave(data)
        offer = self.path.agreements.offer(method, self._greeted.dialler.settings)
        if offer is None:
            return self._leave(data)
        self._offer = offer
        return self._tell(self.client, offer.frame, TUNE_OK)

    def _open_ok(self) -> bool:
        line, greeted, opening, agreement = self._line, self._greeted, self._opening, self._agreement
        said, context = self._said, self.path.context
        assert line is not None
        assert greeted is not None
        assert opening is not None
        assert agreement is not None
        assert said is not None
        data = self._receive(line.sock)
        if data is None:
            return False
        method, rest = HEARD.get(data, _NOT_KNOWN)
        selected = opening[1]
        if rest or not isinstance(method, amqp.ConnectionOpenOk):
            return self._leave(data)
        if not context.policies.are_in_force(selected):
            return self._leave(data)
        frame = frame_of(amqp.ConnectionOpenOk)
        sent = _send(self.client, frame)
        if not sent:
            return self._leave(data)
        assert sent == len(frame), "a socket that has taken a byte has room for twelve"
        dialler = greeted.dialler
        context.router.count_shadows(selected.principal, self.caller.session_id)
        client, broker = agreement.tunes
        established = Established(
            selected,
            HandedOverSocket(self.client, client.frame_max, float(client.heartbeat)),
            OwnSource(HandedOverSocket(line.sock, broker.frame_max, float(broker.heartbeat))),
            broker.channel_max,
            _NATIVE,
            said.introduction.said.capabilities,
            dialler.choice,
            dialler.cluster.name,
            self.path.listener.channel_flow == "gateway",
        )
        self.ignore_all()
        is_session = self.path.conversations.establish(self.caller, established, self.pending, selected)
        self.path.conversations.left(self.client, self.pending, None if is_session else "refused")
        return True

    # -- to and fro ---------------------------------------------------------------------------

    def _receive(self, sock: socket.socket) -> bytes | None:
        """What has come, which is nothing known at its end; None: nothing yet."""
        try:
            return sock.recv(_READ)
        except BlockingIOError:
            self.wait_alone_for(sock)
            return None
        except OSError as error:
            self._fault = error
            return b""

    def _tell(self, sock: socket.socket, frame: bytes, step: int) -> bool:
        """Say it, and wait for what comes in that step."""
        self.step = step
        sent = _send(sock, frame)
        if sent < len(frame):
            rest = frame[sent:]
            return self._leave(client_unsent=rest) if sock is self.client else self._leave(broker_unsent=rest)
        line = self._line
        self.wait_for(self.client if step in _OF_CLIENT or line is None else line.sock)
        return False

    # -- what is otherwise --------------------------------------------------------------------

    def _leave(
        self,
        data: bytes = b"",
        *,
        unsaid: bytes = b"",
        client_unsent: bytes = b"",
        broker_unsent: bytes = b"",
    ) -> bool:
        """A conversation goes on from here; ``data`` is what came of whom this step waits for."""
        received: bytes | OSError = self._fault or data
        step, greeted, line, said, offer, opening = (
            self.step,
            self._greeted,
            self._line,
            self._said,
            self._offer,
            self._opening,
        )
        dialled = None
        if step in (CONNECT, GREETING):
            assert said is not None
            self._leave_dial(received, broker_unsent)
            received = said.frame
        elif greeted is not None and line is not None:
            is_brokers = step not in _OF_CLIENT
            hop = _hop(line, greeted, received if is_brokers else b"")
            dialled = DialedBroker(greeted.endpoint, hop, greeted.start)
            received = b"" if is_brokers else received
        progress = Progress(
            _STAGES[step],
            self.caller,
            self.until,
            received,
            None if greeted is None else greeted.dialler,
            None if greeted is None else greeted.start,
            dialled,
            None if step < TUNE or said is None else said.method,
            None if offer is None else offer.asked,
            None if offer is None else offer.tune,
            None if self._agreement is None else self._agreement.tunes,
            unsaid,
            None if opening is None else opening[0],
            None if opening is None else opening[1],
            client_unsent,
            broker_unsent,
        )
        self.ignore_all()
        self.path.conversations.converse(self.client, self.path.listener, self.pending, progress)
        return True

    def _leave_dial(self, received: bytes | OSError, broker_unsent: bytes) -> None:
        """The conversation goes on to dial, or with what has been dialled."""
        greeted, line = self._greeted, self._line
        assert greeted is not None
        dialler, endpoint = greeted.dialler, greeted.endpoint
        if line is None:
            return
        if self.step == GREETING and not broker_unsent:
            hop = _hop(line, greeted, received)
            dialler.resume(BegunCall(endpoint, hop, line.since, line.until))
            return
        self._hang_up(line)
        if self.step == CONNECT and trio.current_time() >= line.until:
            dialler.give_up(endpoint, too_slow(endpoint.address, dialler.settings))
        else:
            dialler.put_back(endpoint)

    def _hang_up(self, line: Line) -> None:
        self.ignore(line.sock.fileno())
        line.sock.close()
        self._line = None

    def _drop(self) -> None:
        """It is over, whatever it was."""
        self.ignore_all()
        if self._line is not None:
            self._line.sock.close()
        self.path.conversations.left(self.client, self.pending, "failed")


def _send(sock: socket.socket, frame: bytes) -> int:
    """How many bytes were taken. Where it is broken, whoever sends the others will hear why."""
    try:
        return sock.send(frame)
    except OSError:
        return 0


def _hop(line: Line, greeted: Greeted, received: bytes | OSError) -> MethodStream:
    return MethodStream(line.sock, frame_max=greeted.dialler.frame_max, peer=Role.SERVER, received=received)


_STEPS: Final = (
    FastHandshake._header,
    FastHandshake._start_ok,
    FastHandshake._connect,
    FastHandshake._greeting,
    FastHandshake._tune,
    FastHandshake._tune_ok,
    FastHandshake._open,
    FastHandshake._open_ok,
)
