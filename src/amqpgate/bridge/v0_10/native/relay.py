"""What both ends of a relayed connection share, and the end that both are."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from amqpgate.bridge.v0_10.native.amending import amended
from amqpgate.bridge.v0_10.native.assemblies import Assembly, AssemblyReader, cut
from amqpgate.bridge.v0_10.native.channels import OriginalQueue, Outgoing, RelayedChannel
from amqpgate.bridge.v0_10.native.content import MessageCopier
from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    HEARTBEAT,
    encode_frame,
)
from amqpgate.protocol.handshake import ConnectionState
from amqpgate.protocol.v0_10.codes import close_of, violation_of_close
from amqpgate.protocol.v0_10.frames import COMMAND, MOST_FRAME_SIZE, control_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_control
from amqpgate.wire.v0_10.structs import Control
from amqpgate.wire.v0_10.types import EMPTY_ARRAY

#: Bytes for one peer that may wait before the other one is not read any more.
MOST_UNSENT: Final = 1024 * 1024
#: Bytes of one peer that may wait for their copies before it is not read any more, or one message.
MOST_WAITING: Final = 4 * 1024 * 1024
#: Bytes of messages that are not whole, in one direction: RabbitMQ's own limit of a message.
MOST_BODY: Final = 128 * 1024 * 1024

#: How methods with content begin.
_CONTENT: Final = frozenset(
    method.INDEX.to_bytes(4, "big") for method in (amqp.BasicPublish, amqp.BasicDeliver, amqp.BasicReturn)
)
#: Where a content header has the size of the body.
_SIZE: Final = slice(4, 12)
_HEAD_SIZE: Final = FRAME_HEAD.size
_CONNECTION: Final = bytes((amqp10.ConnectionHeartbeat.CLASS_CODE,))
_BEAT: Final = control_frame(0, amqp10.ConnectionHeartbeat().encode())


class NativeRelay:
    """One client's connection and its broker's. ``frame_max`` is the largest frame of the gateway's on both
    hops, in bytes, ``channel_max`` the number of channels that the client may use."""

    __slots__ = (
        "channel_max",
        "channels",
        "frame_max",
        "most_to_broker",
        "most_to_client",
        "to_broker",
        "to_client",
    )

    def __init__(
        self,
        frame_max: int,
        channel_max: int,
        *,
        most_to_client: int = MOST_FRAME_SIZE,
        most_to_broker: int = MOST_FRAME_SIZE,
    ) -> None:
        self.frame_max = frame_max
        self.channel_max = channel_max
        #: The largest frame of 0-10 that each takes.
        self.most_to_client = most_to_client
        self.most_to_broker = most_to_broker
        self.to_client = Outgoing()
        self.to_broker = Outgoing()
        #: Those that were used.
        self.channels: dict[int, RelayedChannel] = {}

    def channel(self, number: int) -> RelayedChannel:
        """The one of that number of 0-10's; it is the gateway's number less one."""
        channel = self.channels.get(number)
        if channel is None:
            channel = self.channels[number] = RelayedChannel(number, self.to_broker, self.to_client)
        return channel


class _PassingMessage:
    """A message of the gateway's that is not whole."""

    __slots__ = ("header", "method", "missing")

    def __init__(self, method: bytes) -> None:
        self.method = method
        self.header = b""
        self.missing = 0


class NativeEnd:
    """One end: a `Translator` of a peer whose handshake is over, but for open-ok."""

    __slots__ = ("_contents", "_copier", "_frames", "_most", "_out", "_reader", "_relay", "_takes", "_way")

    def __init__(
        self, relay: NativeRelay, out: Outgoing, way: Outgoing, *, most: int, takes: int, is_delivery: bool
    ) -> None:
        self._relay = relay
        #: Bytes for this peer, and for the other one.
        self._out = out
        self._way = way
        #: Bytes of an assembly that the other peer may have to be given in smaller frames.
        self._most = most if most < MOST_FRAME_SIZE else MOST_BODY * 2
        #: The largest frame that this peer takes.
        self._takes = takes
        self._reader = AssemblyReader(MOST_BODY)
        self._copier = MessageCopier(relay.frame_max, is_delivery=is_delivery)
        #: Frames for the gateway.
        self._frames = bytearray()
        self._contents: dict[int, _PassingMessage] = {}

    def read_headers(self, is_read: bool) -> None:
        """Whether anybody looks at the headers of this peer's messages."""
        self._copier.read_headers(is_read)

    # The peer's side.

    @property
    def wants_bytes(self) -> bool:
        """As in `Translator`."""
        return self._way.size <= MOST_UNSENT and self._way.waiting <= MOST_WAITING

    def from_peer(self, data: bytes) -> None:
        """As in `Translator`."""
        for assembly in self._reader.feed(data):
            if assembly.channel >= self._relay.channel_max:
                number = assembly.channel
                raise ProtocolViolation(501, f"channel {number} is above channel-max", channel=number)
            if len(assembly.original) > self._most:
                assembly = cut(assembly, self._most)
            if assembly.kind == COMMAND:
                self._command(self._relay.channel(assembly.channel), assembly)
            elif assembly.segment[:1] == _CONNECTION:
                self._connection(assembly)
            else:
                self._control(self._relay.channel(assembly.channel), assembly)

    def peer_ended(self) -> None:
        """As in `Translator`: the gateway sees it."""

    def bytes_for_peer(self) -> bytes:
        """As in `Translator`."""
        return self._out.take()

    def _connection(self, assembly: Assembly) -> None:
        control = decode_control(assembly.segment)
        if assembly.channel:
            raise ProtocolViolation(501, f"{control.NAME} on channel {assembly.channel}")
        match control:
            case amqp10.ConnectionHeartbeat():
                self._frames += HEARTBEAT
            case amqp10.ConnectionClose():
                why = violation_of_close(control, ConnectionState.OPEN)
                self._say(0, amqp.ConnectionClose(why.code, cut_reply(why.text)))
            case amqp10.ConnectionCloseOk():
                self._say(0, amqp.ConnectionCloseOk())
            case _:
                raise ProtocolViolation(501, f"unexpected {control.NAME} in connection state open")

    def _control(self, channel: RelayedChannel, assembly: Assembly) -> None:
        """A control of a session."""
        raise NotImplementedError

    def _command(self, channel: RelayedChannel, assembly: Assembly) -> None:
        """A command, with what it carries."""
        raise NotImplementedError

    # The gateway's side.

    @property
    def wants_frames(self) -> bool:
        """As in `Translator`."""
        return True

    def from_gateway(self, frames: bytes) -> None:
        """As in `Translator`."""
        pos, end = 0, len(frames)
        while pos < end:
            kind, number, size = FRAME_HEAD.unpack_from(frames, pos)
            start = pos + _HEAD_SIZE
            pos += size + FRAME_OVERHEAD
            if kind == FRAME_METHOD:
                payload = frames[start : start + size]
                if number == 0:
                    self._tell(decode_method(payload))
                elif payload[:4] in _CONTENT:
                    self._contents[number] = _PassingMessage(payload)
                else:
                    self._contents.pop(number, None)
                    self._method(self._relay.channel(number - 1), payload)
                continue
            if kind == FRAME_HEARTBEAT:
                self._out.put(_BEAT)
                continue
            content = self._contents.get(number)
            if content is None:
                continue
            if kind == FRAME_HEADER:
                content.header = frames[start : start + size]
                content.missing = int.from_bytes(content.header[_SIZE], "big")
            elif kind == FRAME_BODY:
                content.missing -= size
            if content.missing <= 0:
                del self._contents[number]
                self._message(self._relay.channel(number - 1), content.method, content.header)

    def gateway_ended(self) -> None:
        """As in `Translator`."""

    @property
    def has_frames(self) -> bool:
        """As in `Translator`."""
        return bool(self._frames)

    def frames_for_gateway(self, limit: int) -> bytes:
        """As in `Translator`."""
        frames = self._frames
        if len(frames) <= limit:
            self._frames = bytearray()
            return bytes(frames)
        taken = bytes(frames[:limit])
        del frames[:limit]
        return taken

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

    def _method(self, channel: RelayedChannel, payload: bytes) -> None:
        """A method of a channel's, without content."""
        raise NotImplementedError

    def _message(self, channel: RelayedChannel, method: bytes, header: bytes) -> None:
        """A message has come whole: what it is a copy of goes on."""
        lane = self._lane(channel)
        if not lane.waiting:
            if lane.is_dropping:
                return
            raise ValueError("a message that is no copy")
        original = lane.waiting[0]
        if original.copies[-1] != method:
            raise ValueError("a message that is no copy of the next one")
        lane.release(None if original.header == header else amended(original, header, self._takes))

    def _lane(self, channel: RelayedChannel) -> OriginalQueue:
        """What goes to this peer."""
        raise NotImplementedError

    # Both.

    def _say(self, number: int, method: Method) -> bytes:
        """A method for the gateway, on its channel of that number: the payload. Violation 506 if it is too
        large for a frame."""
        payload = method.encode()
        if len(payload) + FRAME_OVERHEAD > self._relay.frame_max:
            raise ProtocolViolation(506, f"{method.NAME} does not fit into a frame")
        self._frames += encode_frame(FRAME_METHOD, number, payload)
        return payload

    def _put(self, number: int, control: Control) -> None:
        """A control for the peer that the other one has not said."""
        self._out.put(control_frame(number, control.encode(), MOST_FRAME_SIZE))
