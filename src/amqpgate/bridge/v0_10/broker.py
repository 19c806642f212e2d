"""A broker of AMQP 0-10, as a broker of AMQP 0-9-1: its `Translator`.

::

    broker ── bytes ──▶ SessionConnection ── events ──▶ BrokerTranslator ── CanonicalWriter ──▶ gateway
                                                              │
                                                         AttachedChannel, for each channel: a session
                                                              │
    broker ◀── bytes ── SessionConnection ◀── commands ───────┴──────────────────── frames ◀── gateway

Channel 1 is session 0, and so on. `broker_login` has the methods of the connection itself, `broker_channel`
a channel's life and errors, `broker_publishing`, `broker_consuming` and `broker_declaring` what is done on
it.

What is not there
    A queue that is exclusive is its session's in 0-10: it ends with its channel, not with its connection, and
    other channels have no access to it (405). A prefetch count with ``global`` is for each consumer.
    What is mandatory comes back from the default exchange and direct ones only, with qpidd.
    connection.blocked is not said when the broker stops a session's publishing; its channel waits. Arguments
    are left out of queue.unbind. A queue that is deleted under a consumer closes its channel (404), where
    RabbitMQ cancels the consumer. Transactions do not hold back basic.nack and basic.reject. A method that
    is answered costs a round trip before the next one on its channel.

Memory
    Messages of the broker's that are not whole, see `broker_incoming`. Frames of the gateway's behind a
    method that is not answered: no more are wanted above `MOST_KEPT` bytes. What the parts of a channel say.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.bridge.v0_10.broker_channel import AttachedChannel, ChannelStage
from amqpgate.bridge.v0_10.broker_incoming import IncomingMessages
from amqpgate.bridge.v0_10.broker_link import Abilities, ChannelLink, Held
from amqpgate.bridge.v0_10.broker_login import (
    FRAME_MAX,
    hears_cancels,
    keeps_used_exchanges,
    open_of,
    redirect_of,
    start_of,
    start_ok_of,
    takes_reserved_queues,
    tune_of,
    tune_ok_of,
)
from amqpgate.bridge.v0_10.frames import CanonicalWriter
from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD
from amqpgate.protocol.handshake import CLOSING_STATES, ConnectionState
from amqpgate.protocol.methods import Role
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
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.structs import Control

#: Bytes of frames behind methods that are not answered.
MOST_KEPT: Final = 256 * 1024
_BEATING: Final = frozenset({ConnectionState.OPENING, ConnectionState.ASKED, ConnectionState.OPEN})


class BrokerTranslator:
    """See the module. It begins when the broker has answered its protocol header with the same.

    ``name`` is one that no other connection to the broker has: names of sessions begin with it.
    """

    __slots__ = (
        "_abilities",
        "_channels",
        "_connection",
        "_due",
        "_held",
        "_incoming",
        "_is_leaving",
        "_name",
        "_sessions",
        "_tune",
        "_writer",
    )

    def __init__(self, name: str) -> None:
        self._name = name
        self._abilities = Abilities()
        self._connection = SessionConnection(Role.CLIENT, joins=True)
        self._writer = CanonicalWriter()
        self._writer.allow(FRAME_MAX)
        self._channels: dict[int, AttachedChannel] = {}
        self._incoming = IncomingMessages()
        #: Bytes of frames that wait.
        self._held = Held()
        #: Numbers of channels that have something to send.
        self._due: set[int] = set()
        #: Sessions that were begun.
        self._sessions = 0
        #: connection.tune of the broker's.
        self._tune = amqp10.ConnectionTune()
        #: The gateway has sent connection.close.
        self._is_leaving = False
        self._connection.send_header()
        self._connection.take_output()
        for _ in self._connection.receive(PROTOCOL_HEADER):
            pass

    # The broker's side.

    @property
    def wants_bytes(self) -> bool:
        """As in `Translator`."""
        return True

    def from_peer(self, data: bytes) -> None:
        """As in `Translator`."""
        for event in self._connection.receive(data):
            self._hear(event)

    def peer_ended(self) -> None:
        """As in `Translator`: the gateway sees it."""

    def bytes_for_peer(self) -> bytes:
        """As in `Translator`."""
        if self._due:
            due = sorted(self._due)
            self._due.clear()
            for number in due:
                channel = self._channels.get(number)
                if channel is not None and not channel.flush():
                    # In the middle of a body.
                    self._due.add(number)
        return self._connection.take_output()

    def _hear(self, event: ConnectionEvent) -> None:
        if isinstance(event, IncomingMessage):
            # Most of what comes.
            self._hear_message(event)
            return
        match event:
            case IncomingCommand() | IncomingHeader() | IncomingBody():
                channel = self._channels.get(event.channel + 1)
                if channel is not None:
                    self._hear_command(channel, event)
            case ConnectionControl(control=control):
                self._hear_control(control)
            case ConnectionClosed(violation=violation):
                self._close(violation)
            case ConnectionFailed(violation=violation):
                raise violation
            case (
                CommandsCompleted(channel=number)
                | SessionBegun(channel=number)
                | SessionEnded(channel=number)
                | SessionFailed(channel=number)
            ):
                channel = self._channels.get(number + 1)
                if channel is not None:
                    self._hear_session(channel, event)

    def _hear_session(
        self, channel: AttachedChannel, event: CommandsCompleted | SessionBegun | SessionEnded | SessionFailed
    ) -> None:
        match event:
            case CommandsCompleted(commands=commands):
                channel.completed(commands)
            case SessionBegun():
                channel.begun()
            case SessionFailed(violation=violation):
                channel.end(ProtocolViolation(541, f"the broker broke the protocol: {violation.text}"))
            case SessionEnded(channel=number):
                self._incoming.drop(number)
                channel.ended()
                if channel.stage is ChannelStage.OVER:
                    del self._channels[number + 1]

    def _hear_message(self, event: IncomingMessage) -> None:
        channel = self._channels.get(event.channel + 1)
        if channel is None:
            return
        try:
            message = self._incoming.whole(event)
        except ProtocolViolation as violation:
            channel.fail(violation, event.command_id, amqp10.MessageTransfer)
        else:
            channel.transferred(message)

    def _hear_command(
        self, channel: AttachedChannel, event: IncomingCommand | IncomingHeader | IncomingBody
    ) -> None:
        if isinstance(event, IncomingCommand) and not isinstance(event.command, amqp10.MessageTransfer):
            channel.commanded(event.command_id, event.command)
            return
        try:
            message = self._incoming.take(event)
        except ProtocolViolation as violation:
            channel.fail(violation, event.command_id, amqp10.MessageTransfer)
        else:
            if message is not None:
                channel.transferred(message)

    def _hear_control(self, control: Control) -> None:
        match control:
            case amqp10.ConnectionStart():
                keeps = keeps_used_exchanges(control)
                reserved = takes_reserved_queues(control)
                self._abilities = attrs.evolve(
                    self._abilities, keeps_used_exchanges=keeps, takes_reserved_queues=reserved
                )
                self._say(start_of(control, self._writer.frame_max))
            case amqp10.ConnectionSecure(challenge=challenge):
                self._say(amqp.ConnectionSecure(challenge or b""))
            case amqp10.ConnectionTune():
                method = tune_of(control)
                self._tune = control
                self._say(method)
            case amqp10.ConnectionOpenOk():
                self._say(amqp.ConnectionOpenOk())
            case amqp10.ConnectionRedirect():
                self._say(redirect_of(control))
            case amqp10.ConnectionCloseOk():
                if self._is_leaving:
                    self._say(amqp.ConnectionCloseOk())

    def _close(self, why: ProtocolViolation) -> None:
        """The broker has closed the connection."""
        self._channels.clear()
        self._say(amqp.ConnectionClose(why.code, cut_reply(why.reply_text), why.class_id, why.method_id))

    def _say(self, method: Method) -> None:
        self._writer.method(0, method)

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
        """As in `Translator`."""
        return self._held.size < MOST_KEPT

    def from_gateway(self, frames: bytes) -> None:
        """As in `Translator`."""
        pos, end = 0, len(frames)
        while pos < end:
            kind, number, size = FRAME_HEAD.unpack_from(frames, pos)
            start = pos + FRAME_HEAD.size
            pos += size + FRAME_OVERHEAD
            if kind == FRAME_HEARTBEAT:
                if self._connection.state in _BEATING:
                    self._connection.send(amqp10.ConnectionHeartbeat())
            elif number:
                self._take(number, kind, frames[start : start + size])
            elif kind == FRAME_METHOD:
                self._do(decode_method(frames[start : start + size]))

    def gateway_ended(self) -> None:
        """As in `Translator`."""
        self._connection.lost()

    @property
    def has_frames(self) -> bool:
        """As in `Translator`."""
        return bool(self._writer)

    def frames_for_gateway(self, limit: int) -> bytes:
        """As in `Translator`."""
        return self._writer.take(limit)

    def _do(self, method: Method) -> None:
        """A method of the connection's."""
        connection = self._connection
        if connection.state in CLOSING_STATES:
            if isinstance(method, amqp.ConnectionClose):
                # Said and answered already, or not to be answered any more.
                self._say(amqp.ConnectionCloseOk())
            return
        match method:
            case amqp.ConnectionStartOk():
                self._abilities = attrs.evolve(self._abilities, hears_cancels=hears_cancels(method))
                connection.send(start_ok_of(method))
            case amqp.ConnectionSecureOk(response=response):
                connection.send(amqp10.ConnectionSecureOk(response))
            case amqp.ConnectionTuneOk(frame_max=frame_max):
                self._writer.allow(frame_max or FRAME_MAX)
                connection.send(tune_ok_of(method, self._tune))
            case amqp.ConnectionOpen():
                connection.send(open_of(method))
            case amqp.ConnectionClose(reply_code=code, reply_text=text):
                self._is_leaving = True
                connection.close(code, text)
            case amqp.ConnectionUpdateSecret():
                why = ProtocolViolation(
                    540,
                    "AMQP 0-10 knows no new secrets",
                    class_id=method.CLASS_ID,
                    method_id=method.METHOD_ID,
                )
                connection.close(why.code, why.text)
                self._close(why)

    def _take(self, number: int, kind: int, payload: bytes) -> None:
        """A frame of a channel's."""
        if self._connection.state is not ConnectionState.OPEN:
            return
        channel = self._channels.get(number)
        if channel is not None:
            channel.take(kind, payload)
            if channel.stage is ChannelStage.OVER:
                del self._channels[number]
        elif kind == FRAME_METHOD and isinstance(decode_method(payload), amqp.ChannelOpen):
            self._attach(number)

    def _attach(self, number: int) -> None:
        tune = self.tune
        if tune is not None and number > tune.channel_max:
            why = ProtocolViolation(504, f"channel {number} is above channel-max {tune.channel_max}")
            self._connection.close(why.code, why.text)
            self._close(why)
            return
        self._sessions += 1
        name = f"{self._name}.{self._sessions}".encode()
        session = self._connection.attach(number - 1, name)
        link = ChannelLink(number, session, self._writer, self._due, self._held, self._abilities)
        self._channels[number] = AttachedChannel(link)
