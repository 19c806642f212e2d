"""A client of AMQP 0-10, as a client of AMQP 0-9-1: its `Translator`.

::

    client ── bytes ──▶ SessionConnection ── events ──▶ ClientTranslator ── CanonicalWriter ──▶ gateway
                                                              │
                                                         ClientSession, for each session
                                                              │
    client ◀── bytes ── SessionConnection ◀── commands ───────┴──────────── CanonicalReader ◀── gateway

Of the connection itself `login` has the methods; here is their order, and what ends it:

====================================  =============================================================
the client closes                     the gateway hears of it when all that was asked before is done,
                                      and its close-ok is the client's
the gateway closes                    connection.close with the nearest code; close-ok comes back
the client breaks the protocol        it is told, and the violation is raised to the gateway
what only a session can have done     that session ends, the connection goes on
====================================  =============================================================

Memory
    What sessions keep (see `client_session`), frames that wait for the gateway, which come of that, and
    messages that are not whole. `MOST_SESSIONS` sessions that are detached and not done: then the client is
    not read.
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.build import basic_ack
from amqpgate.bridge.v0_10.client_session import ClientSession
from amqpgate.bridge.v0_10.frames import Beat, CanonicalReader, FromBroker
from amqpgate.bridge.v0_10.link import MOST_QUEUED, BrokerLink, ClientOptions
from amqpgate.bridge.v0_10.login import (
    MOST_SESSIONS,
    confirms,
    nacks,
    open_of,
    open_ok,
    start_of,
    start_ok_of,
    tune_ok_of,
    tuning_of,
)
from amqpgate.bridge.v0_10.topology import KnownTopology
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.methods import Role
from amqpgate.protocol.sasl import user_of
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    ConnectionClosed,
    ConnectionControl,
    ConnectionEvent,
    ConnectionFailed,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    IncomingMessage,
    SessionBegun,
    SessionEnded,
    SessionFailed,
)
from amqpgate.protocol.v0_10.names import SessionNames
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.structs import Control

#: Which program a client is, among its properties.
_PROCESS: Final = "qpid.client_process"
_OF_SESSIONS: Final = (IncomingCommand, IncomingHeader, IncomingBody, CommandsCompleted)
_OPEN: Final = frozenset({ConnectionState.OPENING, ConnectionState.ASKED, ConnectionState.OPEN})


class ClientTranslator:
    """See the module. It begins behind the client's protocol header, which it answers.

    ``topology`` and ``names`` may be shared by the clients of one virtual host, and of one broker.
    """

    __slots__ = (
        "_close",
        "_connection",
        "_ending",
        "_has_confirms",
        "_is_leaving",
        "_link",
        "_lost",
        "_offer",
        "_reader",
        "_sessions",
    )

    def __init__(
        self,
        options: ClientOptions | None = None,
        *,
        topology: KnownTopology | None = None,
        names: SessionNames | None = None,
    ) -> None:
        self._connection = SessionConnection(Role.SERVER, names=names, joins=True)
        self._link = BrokerLink(options or ClientOptions(), topology or KnownTopology())
        self._reader = CanonicalReader()
        self._sessions: dict[int, ClientSession] = {}
        #: Sessions that are detached, while something is left to do.
        self._ending: list[ClientSession] = []
        #: Those of them that the client did not wait for.
        self._lost: list[ClientSession] = []
        #: Whether the broker says that it confirms what is published.
        self._has_confirms = True
        #: connection.tune of the gateway's.
        self._offer = amqp.ConnectionTune()
        #: connection.close for the gateway, once the sessions have done what they were asked.
        self._close: amqp.ConnectionClose | None = None
        #: The client has closed, and hears nothing before the gateway knows.
        self._is_leaving = False
        for _ in self._connection.receive(PROTOCOL_HEADER):
            pass

    # The client's side.

    @property
    def wants_bytes(self) -> bool:
        """As in `Translator`."""
        return self._link.queued < MOST_QUEUED and len(self._ending) < MOST_SESSIONS

    def from_peer(self, data: bytes) -> None:
        """As in `Translator`."""
        has_heard = not data
        for event in self._connection.receive(data):
            if isinstance(event, IncomingMessage):
                session = self._sessions.get(event.channel)
                # One of them for each message: most are published, and that is all.
                if session is None or session.transferred(event):
                    continue
            else:
                self._hear(event)
            has_heard = True
        if has_heard or not self._has_confirms:
            self._rest()

    def peer_ended(self) -> None:
        """As in `Translator`."""
        for session in (*self._sessions.values(), *self._ending):
            session.lost()
        self._lost += self._ending
        self._ending = []
        self._say_close()

    def bytes_for_peer(self) -> bytes:
        """As in `Translator`."""
        return b"" if self._is_leaving else self._connection.take_output()

    def _hear(self, event: ConnectionEvent) -> None:
        if isinstance(event, _OF_SESSIONS):
            session = self._sessions.get(event.channel)
            if session is not None:
                session.receive(event)
            return
        match event:
            case SessionBegun(channel=channel):
                self._sessions[channel] = ClientSession(self._connection.sessions[channel], self._link)
            case SessionEnded(channel=channel):
                self._end(channel)
            case SessionFailed(channel=channel):
                session = self._sessions.get(channel)
                if session is not None:
                    session.drop()
            case ConnectionControl(control=control):
                self._say(control)
            case ConnectionClosed(violation=violation):
                self._close = amqp.ConnectionClose(violation.code, violation.text)
                self._is_leaving = True
                self._end_all()
            case ConnectionFailed(violation=violation):
                self._end_all()
                raise violation

    def _say(self, control: Control) -> None:
        """A control of the connection's, to the gateway."""
        method: Method
        match control:
            case amqp10.ConnectionStartOk():
                method = start_ok_of(control)
                self._log_in(method)
            case amqp10.ConnectionSecureOk(response=response):
                method = amqp.ConnectionSecureOk(response or b"")
            case amqp10.ConnectionTuneOk():
                assert self._connection.tune is not None
                method = tune_ok_of(self._offer, self._connection.tune.heartbeat)
                self._link.numbers.allow(method.channel_max, has_confirms=self._has_confirms)
                self._link.writer.allow(method.frame_max)
            case amqp10.ConnectionOpen():
                method = open_of(control, self._link.options.default_vhost)
            case amqp10.ConnectionCloseOk():
                method = amqp.ConnectionCloseOk()
            case _:
                return
        self._link.writer.method(0, method)

    def _log_in(self, start_ok: amqp.ConnectionStartOk) -> None:
        """Who it is, as far as it is known by now: names of sessions are the user's."""
        try:
            user = user_of(start_ok.mechanism, start_ok.response)
        except ProtocolViolation:
            # The gateway says so.
            return
        self._link.log_in(user or "", start_ok.client_properties.get(_PROCESS))
        self._connection.log_in(self._link.login.encode("utf-8", "surrogateescape"))

    @property
    def tune(self) -> Tuning | None:
        """What was agreed with it; None: nothing yet."""
        return self._connection.tune

    def take_rest(self) -> bytes:
        """What it has sent and was not looked at, for whoever takes this one's place."""
        return self._connection.take_rest()

    # The gateway's side.

    @property
    def wants_frames(self) -> bool:
        """As in `Translator`. What comes is answered, or kept within what was asked for."""
        return True

    def from_gateway(self, frames: bytes) -> None:
        """As in `Translator`."""
        confirm = basic_ack(frames)
        if confirm is not None and self._confirmed(*confirm):
            return
        for told in self._reader.feed(frames):
            if isinstance(told, Beat):
                if self._connection.state in _OPEN:
                    self._connection.send(amqp10.ConnectionHeartbeat())
            elif told.channel:
                self._hear_channel(told)
            else:
                self._hear_connection(told.method)
        self._rest()
        if self._ending or self._close is not None:
            self._reap()

    def gateway_ended(self) -> None:
        """As in `Translator`."""
        self._is_leaving = False
        self._connection.lost()
        for session in (*self._sessions.values(), *self._ending, *self._lost):
            session.release()

    @property
    def has_frames(self) -> bool:
        """As in `Translator`."""
        return bool(self._link.writer.frames)

    def frames_for_gateway(self, limit: int) -> bytes:
        """As in `Translator`."""
        return self._link.writer.take(limit)

    def _confirmed(self, number: int, tag: int, multiple: bool) -> bool:
        """basic.ack came, and nothing else. Whether that was all."""
        if self._reader.open or self._ending or self._close is not None:
            return False
        channel = self._link.numbers.at(number)
        return channel is not None and channel.confirmed(channel, tag, multiple)

    def _hear_channel(self, told: FromBroker) -> None:
        channel = self._link.numbers.at(told.channel)
        if channel is not None:
            channel.hear(channel, told)

    def _hear_connection(self, method: Method) -> None:
        connection = self._connection
        match method:
            case amqp.ConnectionStart():
                self._has_confirms = confirms(method)
                self._link.meets(nacks=nacks(method))
                connection.send(start_of(method))
            case amqp.ConnectionSecure(challenge=challenge):
                connection.send(amqp10.ConnectionSecure(challenge=challenge))
            case amqp.ConnectionTune():
                self._offer = method
                connection.send(tuning_of(method).offer())
            case amqp.ConnectionOpenOk():
                connection.send(open_ok())
            case amqp.ConnectionCloseOk():
                self._is_leaving = False
            case amqp.ConnectionClose(reply_code=code, reply_text=text):
                connection.close(code, text)
                self._end_all()
        # What the client sent ahead of an answer is looked at now.
        try:
            self.from_peer(b"")
        except ProtocolViolation as violation:
            # It is told, if it has not been. It is not who speaks now, so to the gateway it is one that
            # closes.
            connection.close(violation.code, violation.text)
            self._close = amqp.ConnectionClose(violation.code, violation.reply_text)
            self._end_all()

    # Sessions.

    def _end(self, channel: int) -> None:
        session = self._sessions.pop(channel, None)
        if session is not None:
            session.ended()
            self._ending.append(session)
            self._reap()

    def _rest(self) -> None:
        for session in self._sessions.values():
            session.rest()

    def _end_all(self) -> None:
        for channel in list(self._sessions):
            self._end(channel)
        self._reap()

    def _reap(self) -> None:
        """Forget sessions that are done; after the last one the gateway hears that the client closes."""
        for session in self._ending:
            session.rest()
        self._ending = [session for session in self._ending if not session.is_idle]
        if not self._ending:
            self._say_close()

    def _say_close(self) -> None:
        """The gateway hears that the client closes, if it does."""
        if self._close is not None:
            self._link.writer.method(0, self._close)
            self._close = None
