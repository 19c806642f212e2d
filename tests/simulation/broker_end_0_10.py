"""The model broker's end of one connection of AMQP 0-10: what it says and takes, as Broker-J would."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    PeerHeader,
    SessionBegun,
    SessionEnded,
    SessionFailed,
)
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.structs import Control
from amqpgate.wire.v0_10.types import Array, Map, Value
from tests.simulation.broker_session_0_10 import BrokerSession010
from tests.simulation.connection import Line
from tests.simulation.entries import Delivery
from tests.simulation.held import Channel, Consumer
from tests.simulation.ledger import Violation

if TYPE_CHECKING:
    from tests.simulation.broker import Broker

_START = amqp.ConnectionStart(
    server_properties=Map(((b"product", Value(TypeCode.STR16, b"model")),)),
    mechanisms=Array(TypeCode.STR16, (b"PLAIN",)),
    locales=Array(TypeCode.STR16, (b"en_US",)),
)


class BrokerEnd010:
    """The broker's end of one connection."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.clock = broker, broker.world.clock
        self.link = SessionConnection(Role.SERVER)
        self.connection: Line | None = None
        #: By number, as `Broker` knows them: `BrokerSession010`.
        self.channels: dict[int, Channel] = {}
        self.is_over = False
        self.heartbeat = 0.0
        self.heard_at = self.clock.now

    @property
    def name(self) -> str:
        number = self.connection.number if self.connection is not None else 0
        return f"broker {self.broker.name}/{number}"

    # -- as a peer ---------------------------------------------------------------------------------

    def connected(self, connection: Line) -> None:
        self.connection = connection

    def ended(self, why: str) -> None:
        self.is_over = True
        self.broker.lost(self)

    def received(self, data: bytes) -> None:
        if self.is_over:
            return
        self.heard_at = self.clock.now
        for event in self.link.receive(data):
            self._hear(event)
            if self.is_over:
                return
        self.flush()
        if self.link.is_over:
            self._leave()

    def flush(self) -> None:
        """Say what is to be said."""
        if self.connection is not None and not self.is_over:
            self.connection.send(self.link.take_output())

    def _leave(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.ended("closed")

    def _hear(self, event: ConnectionEvent) -> None:
        match event:
            case PeerHeader(is_accepted=is_accepted):
                # Another version's is answered with its own, and that is all.
                if is_accepted:
                    self.link.send(_START)
            case ConnectionControl(control=control):
                self._log_in(control)
            case ConnectionFailed(violation=violation) | SessionFailed(violation=violation):
                raise Violation(f"{self.name}: the gateway broke the protocol: {violation}")
            case ConnectionClosed(violation=violation):
                if violation.code not in (200, 320):
                    raise Violation(f"{self.name} heard connection.close {violation.code} {violation.text!r}")
            case SessionBegun(channel=channel):
                self.channels[channel] = BrokerSession010(self, channel, self.link.sessions[channel])
            case SessionEnded(channel=channel):
                session = self.channels.pop(channel, None)
                if session is not None:
                    self.broker.close(self, session)
            case IncomingCommand(channel=channel):
                self._session(channel).commanded(event)
            case IncomingHeader(channel=channel):
                self._session(channel).header(event)
            case IncomingBody(channel=channel):
                self._session(channel).body(event)
            case CommandsCompleted(channel=channel, commands=commands):
                self._session(channel).completed(commands)

    def _session(self, channel: int) -> BrokerSession010:
        session = self.channels[channel]
        assert isinstance(session, BrokerSession010)
        return session

    def deliver(self, channel: Channel, consumer: Consumer, delivery: Delivery) -> None:
        """Send a message to a subscription."""
        assert isinstance(channel, BrokerSession010)
        channel.deliver(consumer, delivery)
        self.flush()

    # -- the connection ----------------------------------------------------------------------------

    def _log_in(self, control: Control) -> None:
        random = self.broker.random
        match control:
            case amqp.ConnectionStartOk():
                offer = Tuning(channel_max=255, max_frame_size=random.choice((4096, 65535)), heartbeat=60)
                self.link.send(offer.offer())
            case amqp.ConnectionTuneOk():
                self.heartbeat = float(control.heartbeat or 0)
                if self.heartbeat:
                    self.clock.after(self.heartbeat / 2, self._beat)
            case amqp.ConnectionOpen():
                self.link.send(amqp.ConnectionOpenOk())

    def _beat(self) -> None:
        if self.is_over or self.connection is None:
            return
        if self.clock.now - self.heard_at > 2 * self.heartbeat:
            self.broker.world.tell(
                f"{self.name} has heard nothing for {2 * self.heartbeat:g} s, and hangs up"
            )
            self.connection.reset()
            return
        self.link.send(amqp.ConnectionHeartbeat())
        self.flush()
        self.clock.after(self.heartbeat / 2, self._beat)
