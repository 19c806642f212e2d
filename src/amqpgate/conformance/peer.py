"""One connection to whoever is tested: bytes and methods out, frames in, and in words what came of it.

========================  ============================================================================
outcome                   the peer
========================  ============================================================================
``connection.close 501``  said so; it was answered with close-ok
``channel.close 404``     said so; it was answered with close-ok
``hangs up``              ended the stream without a word
``silence``               said nothing within `TestedPeer.patience` seconds
``goes on``               answered what was asked after the conversation (`TestedPeer.goes_on`)
``header AMQP 0 0 9 1``   answered with a protocol header
anything else             the name of the method that it said, or of the frame's type
========================  ============================================================================
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final, Generic, Self, TypeVar

import attrs
import trio

from amqpgate.conformance.dialling import PeerLogin, dialled
from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.versions import SpokenVersion
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_END, FRAME_HEAD, Frame, FrameDecoder, method_frame
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method, encode_header
from amqpgate.wire.method import Method, Properties

_READ: Final = 1 << 16

#: The largest frame that is taken: more than any broker offers.
_LARGEST: Final = 1 << 24

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8


M = TypeVar("M", bound=Method)


@attrs.frozen
class PeerMessage(Generic[M]):
    """A method with its content."""

    method: M
    properties: Properties
    body: bytes


def frame(kind: int, channel: int, payload: bytes, *, size: int | None = None, end: int = FRAME_END) -> bytes:
    """A frame, whole or not: it may claim another size, or end otherwise."""
    claimed = len(payload) if size is None else size
    return FRAME_HEAD.pack(kind, channel, claimed) + payload + bytes([end])


@attrs.define(eq=False)
class TestedPeer:
    """One connection. Methods raise `Unexpected` where the peer does otherwise than the caller wants."""

    version: SpokenVersion
    stream: trio.abc.Stream
    #: Seconds for an answer.
    patience: float
    _decoder: FrameDecoder = attrs.field(factory=lambda: FrameDecoder(_LARGEST), init=False)
    #: A protocol header that came in the place of frames.
    _header: bytes | None = attrs.field(default=None, init=False)
    _has_heard: bool = attrs.field(default=False, init=False)

    @classmethod
    async def dial(cls, target: PeerLogin, version: SpokenVersion, patience: float) -> Self:
        """A connection on which nothing is said yet. Raises ``OSError``."""
        return cls(version, await dialled(target, patience), patience)

    async def aclose(self) -> None:
        """Hang up."""
        await trio.aclose_forcefully(self.stream)

    # -- out -------------------------------------------------------------------------------------------------

    async def send(self, *data: bytes) -> None:
        """Bytes as they are. Whoever has hung up is not told."""
        with suppress(trio.BrokenResourceError, trio.TooSlowError), trio.fail_after(self.patience):
            await self.stream.send_all(b"".join(data))

    def encoded(self, channel: int, method: Method) -> bytes:
        """A method's frame."""
        return method_frame(channel, method, self.version.dialect)

    async def say(self, channel: int, *methods: Method) -> None:
        """Methods on a channel, in one piece."""
        await self.send(*(self.encoded(channel, method) for method in methods))

    def content(
        self, channel: int, method: Method, body: bytes, properties: Properties | None = None
    ) -> tuple[bytes, ...]:
        """The frames of a method with content; the body in one frame, or in none if it is empty."""
        made = properties if properties is not None else self.version.amqp.BasicProperties()
        header = ContentHeader(method.CLASS_ID, len(body), made)
        frames = (
            self.encoded(channel, method),
            frame(HEADER, channel, encode_header(header, self.version.dialect)),
        )
        return (*frames, frame(BODY, channel, body)) if body else frames

    # -- in --------------------------------------------------------------------------------------------------

    async def frame(self) -> Frame | None:
        """The next one but heartbeats; None: the stream has ended. Raises `trio.TooSlowError`."""
        with trio.fail_after(self.patience):
            while True:
                if self._header is not None:
                    return None
                found = self._decoder.next()
                if found is not None and found.type != HEARTBEAT:
                    return found
                if found is None and not await self._receive():
                    return None

    async def _receive(self) -> bool:
        try:
            data = await self.stream.receive_some(_READ)
        except (trio.BrokenResourceError, ssl.SSLError):
            data = b""
        if not data:
            return False
        if not self._has_heard and data[:4] == b"AMQP":
            self._header = bytes(data[:8])
        self._has_heard = True
        self._decoder.feed(data)
        return True

    async def method(self, channel: int | None = None) -> Method:
        """The next method; one of another channel is passed over if one is named."""
        while True:
            found = await self._heard()
            if channel is None or found.channel == channel or found.channel == 0:
                if found.type != METHOD:
                    raise Unexpected(f"a frame of type {found.type}")
                return self.decoded(found)

    def decoded(self, found: Frame) -> Method:
        """The method in a method frame."""
        return decode_method(found.payload, self.version.dialect)

    async def _heard(self) -> Frame:
        try:
            found = await self.frame()
        except trio.TooSlowError:
            raise Unexpected("silence") from None
        except ProtocolViolation as violation:
            raise Unexpected(f"malformed: {violation.text}") from None
        if found is None:
            raise Unexpected(self._end())
        return found

    def _end(self) -> str:
        if self._header is not None:
            return "header AMQP " + " ".join(str(one) for one in self._header[4:])
        return "hangs up"

    async def expect(self, kind: type[M], channel: int = 0) -> M:
        """A method of this kind, the next that comes. Raises `Unexpected` with the outcome otherwise."""
        while True:
            found = await self._heard()
            if found.type != METHOD:
                raise Unexpected(f"a frame of type {found.type}")
            said = self.decoded(found)
            if isinstance(said, kind) and found.channel == channel:
                return said
            raise Unexpected(await self.told(found.channel, said))

    async def message(self, channel: int, kind: type[M]) -> PeerMessage[M]:
        """A method of this kind with its content: a delivery, an answer to get, a return."""
        method = await self.expect(kind, channel)
        head = await self._heard()
        if (head.type, head.channel) != (HEADER, channel):
            raise Unexpected(f"a frame of type {head.type} where a content header is due")
        said = decode_header(head.payload, self.version.dialect)
        body = b""
        while len(body) < said.body_size:
            part = await self._heard()
            if (part.type, part.channel) != (BODY, channel):
                raise Unexpected(f"a frame of type {part.type} where a body is due")
            body += part.payload
        return PeerMessage(method, said.properties, body)

    async def outcome(self) -> str:
        """What the peer does next, in words; closes are answered."""
        try:
            found = await self._heard()
        except Unexpected as what:
            return str(what)
        if found.type != METHOD:
            return f"a frame of type {found.type}"
        try:
            said = self.decoded(found)
        except ProtocolViolation as violation:
            return f"malformed: {violation.text}"
        return await self.told(found.channel, said)

    async def told(self, channel: int, said: Method) -> str:
        """A method in words; a close is answered."""
        amqp = self.version.amqp
        if isinstance(said, amqp.ConnectionClose):
            await self.say(0, amqp.ConnectionCloseOk())
            return f"connection.close {said.reply_code}"
        if isinstance(said, amqp.ChannelClose):
            await self.say(channel, amqp.ChannelCloseOk())
            return f"channel.close {said.reply_code}"
        return said.NAME

    async def goes_on(self, channel: int) -> str:
        """``goes on`` if the channel still answers; else what came in its place."""
        await self.say(channel, self.version.amqp.BasicQos(prefetch_count=0))
        said = await self.outcome()
        return "goes on" if said == "basic.qos-ok" else said
