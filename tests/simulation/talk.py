"""What both models have in common: frames in and out, with contents put together, as 0-9-1 has them."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    HEARTBEAT,
    FrameDecoder,
    body_frames,
    encode_frame,
    method_frame,
)
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.method import Method
from tests.simulation.versions import Version


class Wrong(Exception):
    """What was said by the gateway breaks the protocol."""


class Content(NamedTuple):
    """Of a message."""

    properties: BasicProperties
    body: bytes


def frames_of(data: bytes) -> list[bytes]:
    """What is whole frames, one by one."""
    frames, at = [], 0
    while at < len(data):
        _kind, _channel, size = FRAME_HEAD.unpack_from(data, at)
        frames.append(data[at : at + size + FRAME_OVERHEAD])
        at += size + FRAME_OVERHEAD
    return frames


def woven(random: Random, first: bytes, second: bytes) -> bytes:
    """The frames of two channels, each channel's in their order. The first one's first frame is the first."""
    begun, *rest = frames_of(first)
    more = frames_of(second)
    frames = [begun]
    while rest and more:
        frames.append((rest if random.random() < 0.5 else more).pop(0))
    return b"".join((*frames, *rest, *more))


class _Assembly:
    """A message that has begun on a channel."""

    __slots__ = ("body", "header", "method")

    def __init__(self, method: Method) -> None:
        self.method = method
        self.header: ContentHeader | None = None
        self.body = b""


class Talk:
    """Frames in, methods out, whole contents with them; anything out of its order is `Wrong`."""

    def __init__(self, version: str = "0-9-1") -> None:
        self.version = Version(version)
        self.decoder = FrameDecoder(4096)
        self.frame_max = 4096
        self._begun: dict[int, _Assembly] = {}

    def agree(self, frame_max: int) -> None:
        self.frame_max = self.decoder.frame_max = frame_max

    def feed(self, data: bytes) -> None:
        self.decoder.feed(data)

    def next(self) -> tuple[int, Method | None, Content | None] | None:
        """Channel, method and content of what is whole; a heartbeat has no method. None: more is to come."""
        while (frame := self.decoder.next()) is not None:
            kind, channel, payload = frame
            if len(payload) + 8 > self.frame_max:
                raise Wrong(f"a frame of {len(payload) + 8} bytes, {self.frame_max} are agreed")
            begun = self._begun.get(channel)
            if kind == FRAME_HEARTBEAT:
                if channel or payload:
                    raise Wrong("a heartbeat on a channel, or with something in it")
                return 0, None, None
            if kind == FRAME_METHOD:
                if begun is not None:
                    raise Wrong(f"a method in the middle of a message on channel {channel}")
                method = self.version.heard(payload)
                if not method.CONTENT:
                    return channel, method, None
                self._begun[channel] = _Assembly(method)
                continue
            if begun is None:
                raise Wrong(f"a content frame on channel {channel} without a method")
            if kind == FRAME_HEADER:
                if begun.header is not None:
                    raise Wrong(f"two headers on channel {channel}")
                begun.header = self.version.header_heard(payload)
            elif kind == FRAME_BODY:
                if begun.header is None:
                    raise Wrong(f"a body without a header on channel {channel}")
                if not payload:
                    raise Wrong("an empty body frame")
                begun.body += payload
            assert begun.header is not None
            if len(begun.body) > begun.header.body_size:
                raise Wrong(f"more of a body than was said on channel {channel}")
            if len(begun.body) == begun.header.body_size:
                del self._begun[channel]
                properties = begun.header.properties
                assert isinstance(properties, BasicProperties)
                return channel, begun.method, Content(properties, begun.body)
        return None

    def forget(self, channel: int) -> None:
        """It is closed: what had begun on it never ends."""
        self._begun.pop(channel, None)

    def method(self, channel: int, method: Method) -> bytes:
        return method_frame(channel, self.version.spoken(method), self.version.dialect)

    def content(self, channel: int, method: Method, content: Content) -> bytes:
        properties = self.version.properties_spoken(content.properties)
        header = encode_header(ContentHeader(60, len(content.body), properties), self.version.dialect)
        return b"".join(
            (
                self.method(channel, method),
                encode_frame(FRAME_HEADER, channel, header),
                *body_frames(channel, content.body, self.frame_max),
            )
        )

    heartbeat = HEARTBEAT
