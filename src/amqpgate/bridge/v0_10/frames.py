"""The gateway's side of a translator: canonical frames in, methods and whole messages out, and back.

A message is put together here, for a transfer of 0-10 is judged by its size before it is begun. Who sends
messages to a client is its broker: its own limit bounds them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from attrs import define, field, frozen

from amqpgate.bridge.v0_10.build import copy_frames
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_MIN_SIZE,
    FRAME_OVERHEAD,
    HEARTBEAT,
    body_frames,
    encode_frame,
)
from amqpgate.wire.codec import ContentHeader, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

_SIZE: Final = Struct(">Q")
#: Where a content header has the size of the body (AMQP 0-9-1, section 4.2.6.1).
_SIZE_AT: Final = 4
#: Bytes of a body that is copied once more, so that its message is one piece.
_MOST_COPIED: Final = 4096


class FromBroker(NamedTuple):
    """A method on a channel, with the message that belongs to it if it carries one."""

    channel: int
    method: Method
    #: Payload of the header frame.
    header: bytes = b""
    body: bytes = b""


@frozen
class Beat:
    """A heartbeat."""


@define
class _Content:
    """A message that is not whole yet."""

    method: Method
    header: bytes = b""
    missing: int = 0
    chunks: list[bytes] = field(factory=list)


class CanonicalReader:
    """Whole frames of the gateway's, to methods and messages."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        #: What is not whole yet, by channel.
        self.open: dict[int, _Content] = {}

    def feed(self, frames: bytes) -> Iterator[FromBroker | Beat]:
        """All that is whole with these: frames come whole from one who has judged them."""
        pos, end = 0, len(frames)
        while pos < end:
            kind, channel, size = FRAME_HEAD.unpack_from(frames, pos)
            start = pos + FRAME_HEAD.size
            pos += size + FRAME_OVERHEAD
            if kind == FRAME_HEARTBEAT:
                yield Beat()
                continue
            told = self._take(kind, channel, frames[start : start + size])
            if told is not None:
                yield told

    def forget(self, channel: int) -> None:
        """What was begun on a channel is not gone on with."""
        self.open.pop(channel, None)

    def _take(self, kind: int, channel: int, payload: bytes) -> FromBroker | None:
        if kind == FRAME_METHOD:
            method = decode_method(payload)
            self.open.pop(channel, None)
            if not method.CONTENT:
                return FromBroker(channel, method)
            self.open[channel] = _Content(method)
            return None
        content = self.open.get(channel)
        if content is None:
            return None
        if kind == FRAME_HEADER:
            content.header, content.missing = payload, _SIZE.unpack_from(payload, _SIZE_AT)[0]
        elif kind == FRAME_BODY:
            content.chunks.append(payload)
            content.missing -= len(payload)
        if content.missing > 0:
            return None
        del self.open[channel]
        return FromBroker(channel, content.method, content.header, b"".join(content.chunks))


class CanonicalWriter:
    """Methods and messages to frames for the gateway, until they are taken.

    ``frame_max`` is in bytes. Violation 506 from all who write, and nothing is written, if a method or the
    header of a message is larger.
    """

    __slots__ = ("_at", "frame_max", "frames")

    def __init__(self) -> None:
        self.frame_max = FRAME_MIN_SIZE
        #: What is not taken.
        self.frames: deque[bytes] = deque()
        #: What of the first one is taken.
        self._at = 0

    def __bool__(self) -> bool:
        return bool(self.frames)

    def allow(self, frame_max: int) -> None:
        """What was tuned holds from now on."""
        self.frame_max = frame_max

    def method(self, channel: int, method: Method) -> None:
        """A method that carries no message."""
        payload = method.encode()
        self._check(len(payload), method)
        self.frames.append(encode_frame(FRAME_METHOD, channel, payload))

    def message(self, channel: int, method: Method, properties: amqp.BasicProperties, body: bytes) -> None:
        """A method and the message that it carries."""
        payload = method.encode()
        header = encode_header(ContentHeader(method.CLASS_ID, len(body), properties))
        self._check(max(len(payload), len(header)), method)
        first = encode_frame(FRAME_METHOD, channel, payload) + encode_frame(FRAME_HEADER, channel, header)
        if not body:
            self.frames.append(first)
        elif len(body) <= min(_MOST_COPIED, self.frame_max - FRAME_OVERHEAD):
            self.frames.append(first + encode_frame(FRAME_BODY, channel, body))
        else:
            self.frames.append(first)
            self.frames.extend(body_frames(channel, body, self.frame_max))

    def form(self, channel: int, method: bytes, header: bytes, body: bytes) -> bool:
        """A message whose payloads are known, but for the size of the body in the header's. False, and
        nothing is written, if one of them does not fit into a frame."""
        if max(len(method), len(header)) + FRAME_OVERHEAD > self.frame_max:
            return False
        self.frames.append(copy_frames(channel, method, header, body, self.frame_max)[0])
        return True

    def beat(self) -> None:
        """A heartbeat."""
        self.frames.append(HEARTBEAT)

    def take(self, limit: int) -> bytes:
        """The next ``limit`` bytes at most."""
        taken: list[bytes] = []
        if len(self.frames) == 1 and not self._at and len(self.frames[0]) <= limit:
            return self.frames.popleft()
        while self.frames and limit:
            first = self.frames[0]
            piece = first[self._at : self._at + limit]
            taken.append(piece)
            limit -= len(piece)
            self._at += len(piece)
            if self._at == len(first):
                self.frames.popleft()
                self._at = 0
        return b"".join(taken)

    def _check(self, size: int, method: Method) -> None:
        if size + FRAME_OVERHEAD > self.frame_max:
            raise ProtocolViolation(506, f"{method.NAME} does not fit into a frame of {self.frame_max} bytes")
