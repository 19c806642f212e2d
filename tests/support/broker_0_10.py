"""A broker of AMQP 0-10 at the other end of the gateway's connection, which says what a test tells it to."""

from __future__ import annotations

from typing import Final, TypeVar

from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import ConnectionClosed, ConnectionControl, ConnectionEvent, PeerHeader
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.structs import Control
from amqpgate.wire.v0_10.types import Array, Map, Value

from .talker import Gone, Talker, Unexpected

C = TypeVar("C", bound=Control)
E = TypeVar("E", bound=ConnectionEvent)


def start(*mechanisms: bytes, version: bytes = b"1.40") -> amqp.ConnectionStart:
    """What qpidd says of itself."""
    return amqp.ConnectionStart(
        server_properties=Map(
            ((b"product", Value(TypeCode.STR16, b"qpid-cpp")), (b"version", Value(TypeCode.STR16, version)))
        ),
        mechanisms=Array(TypeCode.STR16, mechanisms or (b"DIGEST-MD5", b"PLAIN", b"ANONYMOUS")),
        locales=Array(TypeCode.STR16, (b"en_US",)),
    )


START: Final = start()


class Broker010:
    """It has ``talker``'s socket, and answers nothing by itself."""

    def __init__(self, talker: Talker) -> None:
        self.talker = talker
        self.connection = SessionConnection(Role.SERVER)
        self._heard: list[ConnectionEvent] = []

    def greet(self, said: amqp.ConnectionStart = START) -> Broker010:
        """Hear the header, and answer it with the same and a start."""
        assert self.talker.exactly(8) == PROTOCOL_HEADER
        self._hear(PROTOCOL_HEADER)
        self.event(PeerHeader)
        self.say(said)
        return self

    def let_in(self, tuning: Tuning | None = None) -> Broker010:
        """Any login, and any virtual host."""
        self.expect(amqp.ConnectionStartOk)
        self.say((tuning or Tuning(channel_max=100)).offer())
        self.expect(amqp.ConnectionTuneOk)
        self.expect(amqp.ConnectionOpen)
        self.say(amqp.ConnectionOpenOk())
        return self

    def say(self, *controls: Control) -> None:
        """Send controls of the connection's."""
        for control in controls:
            self.connection.send(control)
        self.flush()

    def flush(self) -> None:
        """Send what there is."""
        self.talker.raw(self.connection.take_output())

    def expect(self, kind: type[C]) -> C:
        """The next control of the connection's, which must be of this kind."""
        said = self.event(ConnectionControl).control
        if not isinstance(said, kind):
            raise Unexpected(f"{kind.__name__} was expected, not {said}")
        return said

    def expect_close(self) -> None:
        """The gateway closes the connection; it is answered, and the socket ends."""
        self.event(ConnectionClosed)
        self.flush()
        self.talker.expect_end()

    def event(self, kind: type[E]) -> E:
        """The next event, which must be of this kind."""
        while not self._heard:
            self._hear(b"")
            if not self._heard:
                data = self.talker.receive()
                if not data:
                    raise Gone("closed")
                self._hear(data)
        event = self._heard.pop(0)
        if not isinstance(event, kind):
            raise Unexpected(f"{kind.__name__} was expected, not {event}")
        return event

    def _hear(self, data: bytes) -> None:
        self._heard += self.connection.receive(data)
