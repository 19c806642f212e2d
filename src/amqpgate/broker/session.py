"""One client's connection without I/O: bytes in, bytes into the outbox.

The owner feeds ``receive`` with what it reads, sends what is in the outbox, and hangs up once ``is_over``
is set and the outbox is empty. ``close`` is always called at the end, whatever the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from attrs import define, field

from amqpgate.broker.amqp.connection import Connection, LocalProtocolError
from amqpgate.broker.amqp.events import ContentReceived, Event, HeaderReceived, HeaderRefused, MethodReceived
from amqpgate.broker.amqp.limits import ConnectionLimits
from amqpgate.broker.channel import BrokerChannel
from amqpgate.broker.greeting import MECHANISMS, Greeting
from amqpgate.broker.outbox import OVERLOAD_MARK, Outbox
from amqpgate.broker.peers import named
from amqpgate.broker.state import BrokerState
from amqpgate.broker.vhost import VirtualHost
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.sasl import credentials
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Table

log = logging.getLogger(__name__)

#: A reply text is a short string; RabbitMQ cuts it to 252 bytes and three dots.
_REPLY_TEXT_MAX: Final = 255

#: Unfinished messages of one connection, in bytes: one of RabbitMQ's largest.
_LIMITS: Final = ConnectionLimits(body_total=ConnectionLimits().body)


def reply_text(violation: ProtocolViolation) -> str:
    """The text of a close method, as RabbitMQ cuts it."""
    data = violation.reply_text.encode("utf-8", "surrogateescape")
    if len(data) > _REPLY_TEXT_MAX:
        data = data[: _REPLY_TEXT_MAX - 3] + b"..."
    return data.decode("utf-8", "surrogateescape")


@define(eq=False, repr=False)
class BrokerSession:
    """A connection in the server's role. It is the peer of its channels (see ``peers``)."""

    state: BrokerState
    greeting: Greeting
    outbox: Outbox
    connection: Connection = field(factory=lambda: Connection("server", limits=_LIMITS))
    #: Who logged in.
    user: str = ""
    #: Nothing more is read; hang up when all is sent.
    is_over: bool = False
    #: Something could not be sent to the client; ``give_up`` says so.
    failure: ProtocolViolation | None = None
    _vhost: VirtualHost | None = None
    _channels: dict[int, BrokerChannel] = field(factory=dict)
    _capabilities: Table = EMPTY_TABLE

    @property
    def vhost(self) -> VirtualHost | None:
        """Where the client is; None before connection.open, and after the end."""
        return self._vhost

    # What the client sends.

    def receive(self, data: bytes | bytearray) -> Iterator[None]:
        """Take bytes; yields after each frame or message that was handled."""
        self.connection.receive(data)
        while not self.is_over:
            try:
                event = self.connection.next_event()
                if event is None:
                    return
                self._handle(event)
            except ProtocolViolation as violation:
                self._refuse(violation)
            self.state.agenda.settle()
            yield

    def resume(self) -> None:
        """The outbox is no longer congested."""
        for channel in list(self._channels.values()):
            channel.resume()
        self.state.agenda.settle()

    def give_up(self) -> None:
        """Close the connection because of ``failure``."""
        if self.failure is not None and self.connection.is_open:
            self._refuse(self.failure)
            self.state.agenda.settle()

    def shut_down(self) -> None:
        """The broker stops: say so to a client that is logged in."""
        if self.connection.is_open:
            text = "broker forced connection closure with reason 'shutdown'"
            self._refuse(ProtocolViolation(320, text))
        self.is_over = True

    def turn_away(self, header: bytes) -> None:
        """The client does not speak what is spoken here: that is ``header``, with which it is answered."""
        self.outbox.put(header)
        self.is_over = True

    def abandon(self, why: ProtocolViolation) -> None:
        """The client breaks a protocol below this one, of which it has been told."""
        log.info("closing a connection: %s", why)
        self.close()
        self.is_over = True

    def close(self) -> None:
        """Let go of everything that the connection had. May be called more than once."""
        for number in list(self._channels):
            self._close_channel(number)
        if self._vhost is not None:
            self._vhost.drop_queues_of(self)
            self._vhost = None
        self.state.agenda.settle()

    def _handle(self, event: Event) -> None:
        match event:
            case ContentReceived():
                channel = self._channels[event.channel]
                assert isinstance(event.header.properties, amqp.BasicProperties)
                channel.publish(event.method, event.header.properties, event.body)
            case MethodReceived(channel=0):
                self._handle_connection(event.method)
            case MethodReceived():
                self._handle_channel(event.channel, event.method)
            case HeaderReceived():
                self.send(0, self.greeting.start())
            case HeaderRefused():
                self.turn_away(event.answer)

    def _handle_connection(self, method: Method) -> None:
        match method:
            case amqp.ConnectionStartOk():
                self._authenticate(method)
            case amqp.ConnectionOpen():
                self._open(method)
            case amqp.ConnectionUpdateSecret():
                # There is nothing in a password that could expire.
                self.send(0, amqp.ConnectionUpdateSecretOk())
            case amqp.ConnectionClose():
                self.close()
                self.send(0, amqp.ConnectionCloseOk())
                self.is_over = self.connection.is_closed
            case amqp.ConnectionCloseOk():
                self.is_over = self.connection.is_closed
            case _:
                # tune-ok: the protocol room has taken note of it.
                pass

    def _handle_channel(self, number: int, method: Method) -> None:
        match method:
            case amqp.ChannelOpen():
                assert self._vhost is not None
                self._channels[number] = BrokerChannel(number, self, self._vhost, self.state)
                self.send(number, amqp.ChannelOpenOk())
            case amqp.ChannelClose():
                self._close_channel(number)
                self.send(number, amqp.ChannelCloseOk())
            case amqp.ChannelCloseOk():
                pass
            case _:
                self._channels[number].handle(method)

    # The handshake.

    def _authenticate(self, method: amqp.ConnectionStartOk) -> None:
        capabilities = method.client_properties.field("capabilities")
        if capabilities is not None and isinstance(capabilities.value, Table):
            self._capabilities = capabilities.value
        if method.mechanism not in MECHANISMS:
            raise named(
                ProtocolViolation(503, f"unknown authentication mechanism '{method.mechanism}'"), method, 0
            )
        login = credentials(method.mechanism, method.response)
        assert login is not None
        if self.state.knows(login.user, login.password):
            self.user = login.user
            self.send(0, self.greeting.tune())
            return
        log.warning("login of user %r refused", login.user)
        if self._is_able_to("authentication_failure_close"):
            text = (
                f"Login was refused using authentication mechanism {method.mechanism}."
                " For details see the broker logfile."
            )
            self._close_connection(ProtocolViolation(403, text))
        else:
            self.is_over = True

    def _open(self, method: amqp.ConnectionOpen) -> None:
        try:
            self._vhost = self.state.vhost(method.virtual_host)
        except ProtocolViolation as violation:
            raise named(violation, method, 0) from None
        self.send(0, amqp.ConnectionOpenOk())

    def _is_able_to(self, capability: str) -> bool:
        return self._capabilities.get(capability) is True

    # What channels ask for: see Peer.

    @property
    def is_congested(self) -> bool:
        return self.outbox.is_congested or self.failure is not None

    @property
    def is_overloaded(self) -> bool:
        return self.outbox.size > OVERLOAD_MARK or self.failure is not None

    @property
    def wants_cancel(self) -> bool:
        return self._is_able_to("consumer_cancel_notify")

    def send(self, channel: int, method: Method) -> None:
        self.outbox.put(self.connection.send(channel, method))

    def send_content(
        self, channel: int, method: Method, properties: amqp.BasicProperties, body: bytes
    ) -> None:
        try:
            data = self.connection.send_content(channel, method, properties, body)
        except LocalProtocolError as error:
            # Headers that came in larger frames than this client takes. We may be in the middle of some
            # other client's publish, so this connection is closed by its own task.
            self.failure = ProtocolViolation(501, str(error))
            self.outbox.wake()
            return
        self.outbox.put(data)

    # Ends.

    def _refuse(self, violation: ProtocolViolation) -> None:
        if violation.scope == "channel":
            self._close_channel(violation.channel)
            self.send(
                violation.channel,
                amqp.ChannelClose(
                    violation.code, reply_text(violation), violation.class_id, violation.method_id
                ),
            )
        elif self.connection.is_silent:
            # RabbitMQ keeps such a client waiting for three seconds first.
            self.is_over = True
        else:
            self._close_connection(violation)

    def _close_connection(self, why: ProtocolViolation) -> None:
        log.info("closing a connection: %s", why)
        self.close()
        self.send(0, amqp.ConnectionClose(why.code, reply_text(why), why.class_id, why.method_id))
        if self.connection.is_broken:
            self.is_over = True

    def _close_channel(self, number: int) -> None:
        channel = self._channels.pop(number, None)
        if channel is not None:
            channel.close()
