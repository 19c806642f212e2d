"""A connection to a broker, past the gateway: how many messages are ready in its queues.

One thread, one socket, one thing after the other. It says of itself that it is the gateway's, as the
gateway's own connections do.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import attrs

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import Event, HeaderRefused, MethodReceived
from amqpgate.cli.failures import Failure
from amqpgate.errors import AmqpgateError
from amqpgate.logs import on_one_line
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import Table

if TYPE_CHECKING:
    from amqpgate.config.address import AmqpUrl

M = TypeVar("M", bound=Method)

#: One for questions, one to hold what is held for as long as the connection.
_ASKS, _HOLDS = 1, 2
#: Declares that are under way at once.
_AHEAD: Final = 200
_READ: Final = 256 * 1024
_NOT_FOUND, _LOCKED = 404, 405


class LinkEnd(Protocol):
    """A broker, where it is, and who asks."""

    @property
    def upstream(self) -> str: ...

    @property
    def amqp(self) -> AmqpUrl: ...

    @property
    def user(self) -> str: ...


class ChannelClosed(Failure):
    """A broker has closed a channel."""

    def __init__(self, broker: str, close: amqp.ChannelClose) -> None:
        super().__init__(f"amqpgate: {broker} says {close.reply_code} {on_one_line(close.reply_text)}")
        self.code = close.reply_code


@attrs.define(eq=False)
class MoveLink:
    """One connection to one virtual host. All methods raise ``Failure`` where it breaks."""

    end: LinkEnd
    vhost: str
    password: str = attrs.field(repr=False)
    #: Seconds, of each wait.
    timeout: float = 30.0
    #: As the broker lists it. A move's is one of its own.
    product: str = "amqpgate move"
    _socket: socket.socket | None = attrs.field(default=None, init=False)
    _connection: Connection = attrs.field(factory=lambda: Connection("client"), init=False)

    def open(self) -> None:
        try:
            self._log_in()
        except Failure:
            self.close()
            raise

    def _log_in(self) -> None:
        with self._told():
            self._dial()
        self._send(self._connection.send_header())
        self.expect(0, amqp.ConnectionStart)
        # The gateway's own are known to a move by this entry.
        entry = Table.of({"move": self.vhost})
        self.say(
            0,
            amqp.ConnectionStartOk(
                client_properties=Table.of(
                    {"product": self.product, "capabilities": {"publisher_confirms": True}}
                ).with_("amqpgate", entry.to_python()),
                mechanism="PLAIN",
                response=plain_response(self.end.user, self.password),
                locale="en_US",
            ),
        )
        tune = self.expect(0, amqp.ConnectionTune)
        # No heartbeats: it is asked something every second, and has deadlines of its own.
        self.say(0, amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        self.ask(0, amqp.ConnectionOpen(virtual_host=self.vhost), amqp.ConnectionOpenOk)
        self.ask(_ASKS, amqp.ChannelOpen(), amqp.ChannelOpenOk)

    def close(self) -> None:
        """Without a word: the broker gives back what was not acknowledged."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # -- what a move asks ------------------------------------------------------------------------------------

    def hold(self, queue: str) -> bool:
        """Have an exclusive queue of that name for as long as this connection; False: another one has it."""
        self.ask(_HOLDS, amqp.ChannelOpen(), amqp.ChannelOpenOk)
        try:
            self.ask(_HOLDS, amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk)
        except ChannelClosed as closed:
            if closed.code == _LOCKED:
                return False
            raise
        return True

    def depths(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Messages that are ready, and consumers, of each queue that is there and is nobody's own.

        Passive declares: what the queue itself says now, without a statistic in between.
        """
        found: dict[str, tuple[int, int]] = {}
        left = list(names)
        while left:
            batch = left[:_AHEAD]
            for name in batch:
                self.say(_ASKS, amqp.QueueDeclare(queue=name, passive=True))
            for number, name in enumerate(batch):
                try:
                    said = self.expect(_ASKS, amqp.QueueDeclareOk)
                except ChannelClosed as closed:
                    if closed.code not in (_NOT_FOUND, _LOCKED):
                        raise
                    self.ask(_ASKS, amqp.ChannelOpen(), amqp.ChannelOpenOk)
                    left = left[number + 1 :]
                    break
                found[name] = said.message_count, said.consumer_count
            else:
                left = left[len(batch) :]
        return found

    # -- one method, one event -------------------------------------------------------------------------------

    def say(self, channel: int, method: Method) -> None:
        self._send(self._connection.send(channel, method))

    def publish(self, channel: int, publish: amqp.BasicPublish, properties: Properties, body: bytes) -> None:
        self._send(self._connection.send_content(channel, publish, properties, body))

    def ask(self, channel: int, question: Method, answer: type[M]) -> M:
        """The answer to a question. Raises ``ChannelClosed``."""
        self.say(channel, question)
        return self.expect(channel, answer)

    def expect(self, channel: int, answer: type[M]) -> M:
        while True:
            event = self.next()
            if isinstance(event, MethodReceived) and event.channel == channel:
                if isinstance(event.method, answer):
                    return event.method
                self._raise_closed(event)

    def next(self) -> Event:
        """What comes next. Raises ``ChannelClosed``, ``Failure``."""
        while (event := self._event()) is None:
            assert self._socket is not None
            with self._told():
                data = self._socket.recv(_READ)
                if not data:
                    raise ConnectionResetError("it has closed the connection")
                self._connection.receive(data)
        if isinstance(event, HeaderRefused):
            raise Failure(f"amqpgate: what answers at {self.end.amqp} does not speak AMQP 0-9-1")
        if isinstance(event, MethodReceived):
            if isinstance(event.method, amqp.ConnectionClose):
                close = event.method
                raise Failure(
                    f"amqpgate: {self.end.upstream} says {close.reply_code} {on_one_line(close.reply_text)}"
                )
            self._raise_closed(event)
        return event

    def _event(self) -> Event | None:
        with self._told():
            return self._connection.next_event()

    def _raise_closed(self, event: MethodReceived) -> None:
        if isinstance(event.method, amqp.ChannelClose):
            self.say(event.channel, amqp.ChannelCloseOk())
            raise ChannelClosed(self.end.upstream, event.method)

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        with self._told():
            self._socket.sendall(data)

    def _dial(self) -> None:
        url = self.end.amqp
        raw = socket.create_connection((url.host, url.port), self.timeout)
        if url.scheme == "amqps":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=url.host)
        self._socket = raw

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What breaks inside is told as one line."""
        try:
            yield
        except (OSError, AmqpgateError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failure(f"amqpgate: {self.end.upstream} at {self.end.amqp}: {why}") from error
