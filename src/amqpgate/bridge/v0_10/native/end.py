"""The end that both are of a relayed connection: what it does with what is not a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve

from amqpgate.bridge.v0_10.native.amending import amended
from amqpgate.bridge.v0_10.native.assemblies import AssemblyReader, cut
from amqpgate.bridge.v0_10.native.build import Original, Outgoing
from amqpgate.bridge.v0_10.native.content import MessageCopier
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.bridge.v0_10.native.forms import KnownForms
from amqpgate.bridge.v0_10.native.relay import NativeRelay
from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.protocol.frames import FRAME_METHOD, FRAME_OVERHEAD, HEARTBEAT, encode_frame
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.v0_10.codes import close_of, violation_of_close
from amqpgate.protocol.v0_10.frames import MOST_FRAME_SIZE, control_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_control
from amqpgate.wire.v0_10.structs import Control
from amqpgate.wire.v0_10.types import EMPTY_ARRAY

if TYPE_CHECKING:
    from amqpgate.bridge.v0_10.native.passing import PassingEnd
else:
    try:
        from amqpgate.bridge.v0_10.native._native import PassingEnd
    except ImportError:
        from amqpgate.bridge.v0_10.native.passing import PassingEnd

#: Bytes of messages that are not whole, in one direction: RabbitMQ's own limit of a message.
MOST_BODY: Final = 128 * 1024 * 1024


class NativeEnd(PassingEnd):
    """One end: a `Translator` of a peer whose handshake is over, but for open-ok."""

    __slots__ = ("_copier",)

    def __init__(
        self, relay: NativeRelay, out: Outgoing, way: Outgoing, *, most: int, takes: int, is_delivery: bool
    ) -> None:
        super().__init__(
            relay,
            AssemblyReader(MOST_BODY),
            out,
            way,
            most=most if most < MOST_FRAME_SIZE else MOST_BODY * 2,
            takes=takes,
            is_delivery=is_delivery,
            forms=KnownForms(),
        )
        self._copier = MessageCopier(relay.frame_max, self._forms, is_delivery=is_delivery)

    def read_headers(self, is_read: bool) -> None:
        """Whether anybody looks at the headers of this peer's messages."""
        self._forms.read_headers(is_read)

    def _fitting(self, assembly: Assembly) -> Assembly:
        """The same in frames that the other peer takes. Violation 501 for a channel that may not be used."""
        number = assembly.channel
        if number >= self._relay.channel_max:
            raise ProtocolViolation(501, f"channel {number} is above channel-max", channel=number)
        return cut(assembly, self._most)

    def _connection(self, assembly: Assembly) -> None:
        control = decode_control(assembly.segment)
        if assembly.channel:
            raise ProtocolViolation(501, f"{control.NAME} on channel {assembly.channel}")
        match control:
            case amqp10.ConnectionHeartbeat():
                self.give(HEARTBEAT)
            case amqp10.ConnectionClose():
                why = violation_of_close(control, ConnectionState.OPEN)
                self._say(0, amqp.ConnectionClose(why.code, cut_reply(why.text)))
            case amqp10.ConnectionCloseOk():
                self._say(0, amqp.ConnectionCloseOk())
            case _:
                raise ProtocolViolation(501, f"unexpected {control.NAME} in connection state open")

    def _amended(self, original: Original, header: bytes) -> bytes:
        """The frames of an original whose copy has this header now."""
        return amended(original, header, self._takes)

    def _tell(self, method: Method) -> None:
        """A method of the connection's, to the peer."""
        match method:
            case amqp.ConnectionOpenOk():
                self._put(0, amqp10.ConnectionOpenOk(known_hosts=EMPTY_ARRAY))
            case amqp.ConnectionClose(reply_code=code, reply_text=text):
                close = close_of(code, text)
                self._put(0, close if close.reply_text else evolve(close, reply_text=None))
            case amqp.ConnectionCloseOk():
                self._put(0, amqp10.ConnectionCloseOk())
            case _:
                raise ValueError(f"{method.NAME} has no place in 0-10")

    def _say(self, number: int, method: Method) -> bytes:
        """A method for the gateway, on its channel of that number: the payload. Violation 506 if it is too
        large for a frame."""
        payload = method.encode()
        if len(payload) + FRAME_OVERHEAD > self._relay.frame_max:
            raise ProtocolViolation(506, f"{method.NAME} does not fit into a frame")
        self.give(encode_frame(FRAME_METHOD, number, payload))
        return payload

    def _put(self, number: int, control: Control) -> None:
        """A control for the peer that the other one has not said."""
        self._out.put(control_frame(number, control.encode(), MOST_FRAME_SIZE))
