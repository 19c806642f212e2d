"""The handshake that nearly all connections have, step by step; what is otherwise goes on as a conversation.

::

    client                      gateway                        broker
      │ TLS, if it has any ───────▶ │ TLS
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
import select
import socket
import ssl
from typing import Final

import attrs
import trio

from amqpgate.bridge import NATIVE, pair_of
from amqpgate.datapath.engine import HandedOverSocket
from amqpgate.datapath.tls import has_ended, would_block
from amqpgate.errors import ConfigError
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.agreements import Agreement, Offer, start_for
from amqpgate.gateway.handshake.fast_path import FastPath
from amqpgate.gateway.handshake.identities import TOKEN_MARK
from amqpgate.gateway.handshake.pending import PendingHandshake, Silence
from amqpgate.gateway.handshake.progress import Progress, Stage
from amqpgate.gateway.handshake.start_ok import Introduction, UsualStartOk, start_ok_of, usual_start_ok
from amqpgate.gateway.session.established import Established, OwnSource
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.connecting import keep_alive
from amqpgate.gateway.transport.fiber import Scheduler
from amqpgate.gateway.transport.repeated import HEARD, START_FRAMES, frame_of
from amqpgate.gateway.transport.stepper import Stepper
from amqpgate.gateway.transport.tls import identity, serve_tls
from amqpgate.gateway.upstream.first_call import FirstCall
from amqpgate.policy import Principal, SelectedPolicies
from amqpgate.values import define
from amqpgate.wire.dialects import HEADER_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)

#: Bytes that are received at once. What most peers say is less; of more, nothing is looked at here.
_READ: Final = 16 * 1024
_NATIVE: Final = pair_of(NATIVE, NATIVE)
#: Principals that are kept of one listener.
_MOST_PRINCIPALS: Final = 256

# To look a member of an enum up takes Python 3.11 a detour each time.
_GREETED: Final = Silence.GREETED
_NAMED: Final = Silence.NAMED
_OPEN: Final = AdmissionStage.OPEN

#: Steps, by what is waited for.
TLS, HEADER, START_OK, CONNECT, GREETING, TUNE, TUNE_OK, OPEN, OPEN_OK = range(9)

#: Those that wait for a broker's first words.
_OF_CALL: Final = frozenset({CONNECT, GREETING})
#: Those that wait for the client.
_OF_CLIENT: Final = frozenset({TLS, HEADER, START_OK, TUNE_OK, OPEN})
#: What is received and has not been understood before.
_NOT_KNOWN: Final = None, b""

#: The stage that a conversation goes on from, by the step that it left at.
_STAGES: Final = (
    Stage.ACCEPTED,
    Stage.ACCEPTED,
    Stage.STARTED,
    Stage.STARTED,
    Stage.STARTED,
    Stage.LOGGED_IN,
    Stage.TUNING,
    Stage.TUNED,
    Stage.ASKED,
)


@define(eq=False)
class FastHandshake(Stepper):
    """The handshake of one connection, while it is like others."""

    path: FastPath
    pending: PendingHandshake
    client: socket.socket
    caller: Caller
    #: What is waited for.
    step: int
    #: Of the broker.
    _call: FirstCall | None = attrs.field(default=None, init=False)
    #: The connection to it, once that is begun.
    _broker: socket.socket = attrs.field(init=False)
    _said: UsualStartOk | None = attrs.field(default=None, init=False)
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
        until, call = self.until, self._call
        if call is not None and self.step in _OF_CALL:
            until = min(until, call.until)
        if now >= until:
            self.is_interrupted = True
            self.scheduler.resume_soon(self)
        else:
            self.scheduler.look_at(self, until)

    # -- with the client ---------------------------------------------------------------------

    def _tls(self) -> bool:
        """Its handshake; a plain socket has none."""
        sock, tls = self.client, self.path.listener.tls
        try:
            if not isinstance(sock, ssl.SSLSocket):
                assert tls is not None
                sock = self.client = serve_tls(sock, self.path.context.contexts.for_listener(tls))
            sock.do_handshake()
            proven = identity(sock)
        except ssl.SSLWantReadError:
            self.wait_for(sock)
            return False
        except ssl.SSLWantWriteError:
            return self._leave()
        except ConfigError:
            return self._leave()
        except OSError as error:
            # Its traceback leads back here.
            self._fault = error.with_traceback(None)
            return self._leave()
        if proven is not None:
            self.caller = attrs.evolve(self.caller, tls=proven)
        self.step = HEADER
        return self._header()

    def _header(self) -> bool:
        data = self._receive(self.client)
        if data is None:
            return False
        path, listener = self.path, self.path.listener
        if data != HEADER_0_9_1 or path.verifies_tokens or path.context.policies.are_asked_first:
            return self._leave(data)
        router, to = path.context.router, path.home
        if router.table.policies:
            try:
                to = router.early(listener, self.caller)
            except ConfigError:
                to = None
        call = None if to is None else FirstCall.known(to, self.caller.session_id, trio.current_time())
        if to is None or call is None:
            return self._leave(data)
        if to.choice is not None:
            router.took(to.choice)
        self._call = call
        path.context.pending.awaits(self.pending, _GREETED)
        start = start_for(call.start, listener, to.settings)
        return self._tell(self.client, START_FRAMES.of(start), START_OK)

    def _start_ok(self) -> bool:
        data = self._receive(self.client)
        if data is None:
            return False
        context, call = self.path.context, self._call
        assert call is not None
        said = usual_start_ok(data) if len(data) <= context.settings.limits.handshake_frame_max else None
        if said is None or TOKEN_MARK in data or context.policies.judges_logins:
            return self._leave(data)
        if said.mechanism.encode() not in call.start.mechanisms.split():
            return self._leave(data)
        context.pending.awaits(self.pending, None)
        self._said = said
        self.step = CONNECT
        return self._is_called(call, call.begin())

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
        sent = _send(self._broker, agreement.frame)
        if sent < len(agreement.frame):
            return self._leave(unsent=agreement.frame[sent:])
        self.wait_for(self.client)
        return False

    def _open(self) -> bool:
        data = self._receive(self.client)
        return False if data is None else self._ask(data, b"")

    def _ask(self, data: bytes, unsaid: bytes) -> bool:
        """The client wants its virtual host to be opened: this is where policies are asked."""
        method, rest = HEARD.get(data, _NOT_KNOWN)
        context, call, said = self.path.context, self._call, self._said
        assert call is not None
        assert said is not None
        if rest or not isinstance(method, amqp.ConnectionOpen):
            return self._leave(data, unsent=unsaid)
        context.pending.awaits(self.pending, None)
        settings, user = call.destination.settings, said.user
        if settings.vhost is not None:
            method = attrs.evolve(method, virtual_host=settings.vhost)
        principal = principal_of(self.path, self.caller, user, method.virtual_host, said.introduction)
        selected = context.policies.opens_at_once(principal, self.caller.session_id)
        if selected is None or context.admission.holds(_OPEN, selected.limits):
            return self._leave(data, unsent=unsaid)
        self._opening = method, selected
        frame = unsaid + frame_of(
            amqp.ConnectionOpen, method.virtual_host, method.reserved_1, method.reserved_2
        )
        return self._tell(self._broker, frame, OPEN_OK)

    # -- with the broker ---------------------------------------------------------------------

    def _is_called(self, call: FirstCall, is_told: bool | None) -> bool:
        """Wait for its answer, or until it is connected; or leave it to the conversation."""
        if is_told is None or call.sock is None:
            return self._leave()
        self._broker = call.sock
        if is_told:
            self.step = GREETING
            self.wait_for(call.sock)
        else:
            self.wait_alone_for(call.sock, select.EPOLLOUT)
        return False

    def _connect(self) -> bool:
        assert self._call is not None
        self.ignore(self._broker.fileno())
        return self._is_called(self._call, self._call.connected())

    def _greeting(self) -> bool:
        call, said, broker = self._call, self._said, self._broker
        assert call is not None
        assert said is not None
        data = self._receive(broker)
        if data is None:
            return False
        if not call.answers(data):
            return self._leave(data)
        return self._tell(broker, start_ok_of(said, self.caller, self.path.context.version), TUNE)

    def _tune(self) -> bool:
        assert self._call is not None
        data = self._receive(self._broker)
        if data is None:
            return False
        method, rest = HEARD.get(data, _NOT_KNOWN)
        if rest or not isinstance(method, amqp.ConnectionTune):
            return self._leave(data)
        offer = self.path.agreements.offer(method, self._call.destination.settings)
        if offer is None:
            return self._leave(data)
        self._offer = offer
        self.path.context.pending.awaits(self.pending, _NAMED)
        return self._tell(self.client, offer.frame, TUNE_OK)

    def _open_ok(self) -> bool:
        call, opening, agreement, said = self._call, self._opening, self._agreement, self._said
        context, broker = self.path.context, self._broker
        assert call is not None
        assert opening is not None
        assert agreement is not None
        assert said is not None
        data = self._receive(broker)
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
        to = call.destination
        if context.router.table.policies:
            context.router.count_shadows(selected.principal, self.caller.session_id)
        ours, theirs = agreement.tunes
        if not theirs.heartbeat:
            keep_alive(broker)
        established = Established(
            selected,
            HandedOverSocket(self.client, ours.frame_max, float(ours.heartbeat)),
            OwnSource(HandedOverSocket(broker, theirs.frame_max, float(theirs.heartbeat))),
            theirs.channel_max,
            _NATIVE,
            said.introduction.said.capabilities,
            to.choice,
            to.cluster.name,
            self.path.keeps_deliveries,
        )
        # The session's from here on: they are watched for it as they are.
        if not self.path.conversations.establish(self.caller, established, self.pending, selected):
            self.ignore_all()
            self.path.conversations.left(self.client, self.pending, "refused")
        return True

    # -- to and fro ---------------------------------------------------------------------------

    def _receive(self, sock: socket.socket) -> bytes | None:
        """What has come, which is nothing known at its end; None: nothing yet."""
        try:
            return sock.recv(_READ)
        except would_block():
            self.wait_alone_for(sock)
            return None
        except has_ended():
            return b""
        except OSError as error:
            # Its traceback leads back here.
            self._fault = error.with_traceback(None)
            return b""

    def _tell(self, sock: socket.socket, frame: bytes, step: int) -> bool:
        """Say it, and wait for what comes in that step."""
        self.step = step
        sent = _send(sock, frame)
        if sent < len(frame):
            return self._leave(unsent=frame[sent:])
        self.wait_for(self.client if step in _OF_CLIENT else self._broker)
        return False

    # -- what is otherwise --------------------------------------------------------------------

    def _leave(self, data: bytes = b"", *, unsent: bytes = b"") -> bool:
        """A conversation goes on from here. ``data`` has come of whom this step waits for; ``unsent`` is left
        of what was said last."""
        received: bytes | OSError = self._fault or data
        step, call, said = self.step, self._call, self._said
        dialed = None
        self.ignore_all()
        if step in _OF_CALL:
            assert call is not None
            assert said is not None
            call.leave(received)
            received = said.frame
        elif step > GREETING:
            assert call is not None
            is_brokers = step not in _OF_CLIENT
            dialed = call.dialed(received if is_brokers else b"")
            received = b"" if is_brokers else received
        progress = Progress(
            _STAGES[step],
            self.caller,
            self.until,
            received,
            None if call is None else call.dialler(),
            None if call is None else call.start,
            dialed,
            None if step < TUNE or said is None else said.method,
            self._offer,
            self._agreement,
            self._opening,
            unsent,
        )
        self.path.conversations.converse(self.client, self.path.listener, self.pending, progress)
        return True

    def _drop(self) -> None:
        """It is over, whatever it was."""
        self.ignore_all()
        if self._call is not None:
            self._call.close()
        self.path.conversations.left(self.client, self.pending, "failed")


def principal_of(
    path: FastPath, caller: Caller, user: str, vhost: str, introduction: Introduction
) -> Principal:
    """The principal of a caller that has said who it is."""
    texts = introduction.said.texts
    if caller.tls is not None:
        return caller.principal(path.listener, user, vhost, texts, user)
    key = caller.source, user, vhost, id(introduction)
    known = path.principals.get(key)
    if known is None:
        if len(path.principals) >= _MOST_PRINCIPALS:
            path.principals.clear()
        principal = caller.principal(path.listener, user, vhost, texts, user)
        known = path.principals[key] = principal, introduction
    return known[0]


def _send(sock: socket.socket, frame: bytes) -> int:
    """How many bytes were taken. Where it is broken, whoever sends the others will hear why."""
    try:
        return sock.send(frame)
    except OSError:
        return 0


def begin_fast(
    path: FastPath, scheduler: Scheduler, sock: socket.socket, address: str, pending: PendingHandshake
) -> FastHandshake:
    """The handshake of a connection that has just been accepted."""
    now = trio.current_time()
    caller = Caller(os.urandom(8).hex(), address)
    step = HEADER if path.listener.tls is None else TLS
    made = FastHandshake(scheduler, now + path.timeout, path, pending, sock, caller, step)
    pending.goes_by(made)
    scheduler.look_at(made, now + path.first_look)
    return made


_STEPS: Final = (
    FastHandshake._tls,
    FastHandshake._header,
    FastHandshake._start_ok,
    FastHandshake._connect,
    FastHandshake._greeting,
    FastHandshake._tune,
    FastHandshake._tune_ok,
    FastHandshake._open,
    FastHandshake._open_ok,
)
