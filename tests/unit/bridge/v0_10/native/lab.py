"""A gateway between both ends of a relayed connection: it passes copies on, and denies as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpgate.bridge.v0_10.native.broker_end import BrokerEnd
from amqpgate.bridge.v0_10.native.client_end import ClientEnd
from amqpgate.bridge.v0_10.native.end import NativeEnd
from amqpgate.bridge.v0_10.native.relay import NativeRelay
from amqpgate.protocol.frames import (
    FRAME_HEADER,
    FRAME_METHOD,
    Frame,
    FrameDecoder,
    encode_frame,
    method_frame,
)
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from tests.support.recorded_0_10 import HEADER

_FRAME_HEADER = 12
_OPEN = amqp10.ConnectionOpen.CLASS_CODE << 8 | amqp10.ConnectionOpen.CODE
_OPEN_OK = amqp10.ConnectionOpenOk.CLASS_CODE << 8 | amqp10.ConnectionOpenOk.CODE


def behind_open(data: bytes) -> int:
    """Where connection.open, or open-ok, ends in what a side said."""
    at = len(HEADER)
    while at < len(data):
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        kind, code = data[at + 1], int.from_bytes(data[at + 12 : at + 14], "big")
        at += size
        if kind == 0 and code in (_OPEN, _OPEN_OK):
            return at
    return at


class Lab:
    """Both ends. ``denies`` says of a client's method whether it is denied."""

    def __init__(
        self,
        denies: Callable[[Method], bool] = lambda method: False,
        *,
        frame_max: int = 131_072,
        channel_max: int = 256,
        most_to_client: int = 65535,
        most_to_broker: int = 65535,
    ) -> None:
        relay = NativeRelay(
            frame_max, channel_max, most_to_client=most_to_client, most_to_broker=most_to_broker
        )
        self.client = ClientEnd(relay)
        self.broker = BrokerEnd(relay)
        self.denies = denies
        #: What passed the gateway, in both directions, but for bodies.
        self.up: list[tuple[int, Method]] = []
        self.down: list[tuple[int, Method]] = []
        self.properties: list[amqp.BasicProperties] = []
        #: What the peers got.
        self.to_broker = b""
        self.to_client = b""
        self._denied: dict[int, amqp.ChannelClose] = {}
        self._left: dict[NativeEnd, FrameDecoder] = {
            self.client: FrameDecoder(0),
            self.broker: FrameDecoder(0),
        }

    def from_client(self, data: bytes) -> bytes:
        """The client says it; what the broker gets."""
        self.client.from_peer(data)
        before = len(self.to_broker)
        self.settle()
        return self.to_broker[before:]

    def from_broker(self, data: bytes) -> bytes:
        """The broker says it; what the client gets."""
        self.broker.from_peer(data)
        before = len(self.to_client)
        self.settle()
        return self.to_client[before:]

    def settle(self) -> None:
        """Until nothing moves."""
        while self._step():
            pass
        self.to_broker += self.broker.bytes_for_peer()
        self.to_client += self.client.bytes_for_peer()

    def _step(self) -> bool:
        moved = False
        for frame in self._frames(self.client):
            moved = True
            self._go_up(frame)
        for frame in self._frames(self.broker):
            moved = True
            self._go_down(frame)
        return moved

    def _frames(self, end: NativeEnd) -> Iterator[Frame]:
        while end.has_frames:
            self._left[end].feed(end.frames_for_gateway(1000))
        while (frame := self._left[end].next()) is not None:
            yield frame

    def _go_up(self, frame: Frame) -> None:
        if frame.channel in self._denied:
            if frame.type == FRAME_METHOD and isinstance(decode_method(frame.payload), amqp.ChannelCloseOk):
                del self._denied[frame.channel]
            return
        if frame.type == FRAME_HEADER:
            properties = decode_header(frame.payload).properties
            assert isinstance(properties, amqp.BasicProperties)
            self.properties.append(properties)
        if frame.type == FRAME_METHOD:
            method = decode_method(frame.payload)
            if self.denies(method):
                self._denied[frame.channel] = amqp.ChannelClose(
                    403, f"ACCESS_REFUSED - {method.NAME}", method.CLASS_ID, method.METHOD_ID
                )
                self.broker.from_gateway(method_frame(frame.channel, self._denied[frame.channel]))
                return
            self.up.append((frame.channel, method))
        self.broker.from_gateway(encode_frame(*frame))

    def _go_down(self, frame: Frame) -> None:
        if frame.type == FRAME_METHOD:
            method = decode_method(frame.payload)
            if frame.channel in self._denied and isinstance(method, amqp.ChannelCloseOk):
                self.client.from_gateway(method_frame(frame.channel, self._denied[frame.channel]))
                return
            self.down.append((frame.channel, method))
        self.client.from_gateway(encode_frame(*frame))
