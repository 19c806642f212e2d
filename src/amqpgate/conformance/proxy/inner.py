"""The broker behind a proxy: it takes any login, and notes what it hears, byte for byte.

It answers handshakes, channel.open, closes and basic.qos by itself; everything else waits for a conversation
to answer it. A proxy may use one connection for several clients: what belongs together is found by names.

It speaks the version that the proxy says, which need not be the client's: a proxy may translate.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import attrs
import trio

from amqpgate.conformance.client.outbox import ServedOutbox
from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.field_types import ALL_TYPES, OF_OLD
from amqpgate.conformance.peer import BODY, HEADER, HEARTBEAT, METHOD, frame
from amqpgate.conformance.versions import OF_RABBITMQ, VERSIONS, Name, SpokenVersion, said_as, said_in
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT as HEARTBEAT_FRAME
from amqpgate.protocol.frames import Frame, FrameDecoder, body_frames, method_frame
from amqpgate.wire.codec import ContentHeader, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import Table

_LARGEST: Final = 1 << 24
_READ: Final = 1 << 16

#: What the broker says of itself, and offers.
_CAPABILITIES: Final = {
    "publisher_confirms": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


def server_properties(version: Name) -> Table:
    """Of a broker that speaks a version. Always the same: a proxy may have asked before it has a client.

    Clients of 0-8 and 0-9 read few types, and 0-8 has none of the methods that capabilities are about.
    """
    said: dict[str, object] = {"product": "amqpgate conformance"}
    if version in OF_RABBITMQ:
        said["capabilities"] = _CAPABILITIES
    return Table((*Table.of(said).entries, *(ALL_TYPES if version == "0-9-1" else OF_OLD).entries))


MECHANISMS: Final = b"X-PROBE PLAIN EXTERNAL AMQPLAIN"

_BY_HEADER: Final = {version.header: version for version in VERSIONS.values()}

#: So much is noted of a conversation.
_MOST: Final = 20_000

#: How a proxy's connection ends, but for its end.
_ENDS: Final = (trio.BrokenResourceError, trio.ClosedResourceError, ProtocolViolation)

T = TypeVar("T")


@attrs.define(eq=False)
class ProbeScript:
    """What the broker says in handshakes from now on."""

    mechanisms: bytes = MECHANISMS
    channel_max: int = 2047
    frame_max: int = 131072
    heartbeat: int = 60
    #: Said in the place of tune, of open-ok; None: go on.
    instead_of_tune: Method | None = None
    instead_of_open_ok: Method | None = None


@attrs.define(eq=False)
class ProbeEnd:
    """A connection of the proxy's."""

    #: What is said, which waits for nobody: the client before the proxy may read later.
    outbox: ServedOutbox
    script: ProbeScript
    #: What the proxy speaks.
    version: SpokenVersion
    tune_ok: v0_9_1.ConnectionTuneOk | None = None
    start_ok: v0_9_1.ConnectionStartOk | None = None
    has_ended: bool = False
    #: The largest frame that came, and when anything did last.
    largest: int = 0
    heard_at: float = 0
    silence: float = 0
    _decoder: FrameDecoder = attrs.field(factory=lambda: FrameDecoder(_LARGEST), init=False)

    @property
    def frame_max(self) -> int:
        """As agreed."""
        return self.tune_ok.frame_max if self.tune_ok is not None else 4096

    async def send(self, *data: bytes) -> None:
        """Bytes as they are."""
        self.outbox.put(0, b"".join(data))
        await trio.lowlevel.checkpoint()

    async def say(self, channel: int, *said: Method) -> None:
        """Methods, in the proxy's version whichever they are of."""
        await self.send(*(self._frame(channel, one) for one in said))

    def _frame(self, channel: int, said: Method) -> bytes:
        return method_frame(channel, said_in(self.version, said), self.version.dialect)

    def content(self, channel: int, said: Method, properties: Properties, body: bytes) -> list[bytes]:
        """A method with content, the body cut as was agreed."""
        content = ContentHeader(said.CLASS_ID, len(body), properties)
        header = encode_header(content, self.version.dialect)
        bodies = body_frames(channel, body, self.frame_max)
        return [self._frame(channel, said), frame(HEADER, channel, header), *bodies]

    async def frames(self) -> list[Frame]:
        """Those that came next; none: it has ended. Heartbeats are not among them."""
        while True:
            found = []
            while (one := self._decoder.next()) is not None:
                self.largest = max(self.largest, len(one.payload) + 8)
                if one.type != HEARTBEAT:
                    found.append(one)
            if found:
                return found
            data = await self.outbox.stream.receive_some(_READ)
            now = trio.current_time()
            self.silence = max(self.silence, now - (self.heard_at or now))
            self.heard_at = now
            if not data:
                return []
            self._decoder.feed(data)


@attrs.define(eq=False)
class Noted:
    """Something that the broker has heard: a method, with its content if it has one."""

    end: ProbeEnd
    channel: int
    payload: bytes
    method: Method | None
    header: bytes = b""
    body: bytes = b""
    #: Whether all of its content is here.
    is_whole: bool = True


@attrs.define(eq=False)
class ProbeBroker:
    """All connections of the proxy's."""

    patience: float
    script: ProbeScript = attrs.field(factory=ProbeScript)
    ends: list[ProbeEnd] = attrs.field(factory=list)
    noted: list[Noted] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)

    def forget(self) -> None:
        """A new conversation begins."""
        self.script = ProbeScript()
        self.ends[:] = [one for one in self.ends if not one.has_ended]
        self.noted.clear()

    # -- what conversations wait for -------------------------------------------------------------------------

    async def until(self, found: Callable[[], T | None], what: str) -> T:
        """What is found once it is. Raises `Unexpected`."""
        with trio.move_on_after(self.patience):
            while True:
                one = found()
                if one is not None:
                    return one
                await self._news.wait()
        raise Unexpected(what)

    async def hears(self, name: str, matches: Callable[[Method], bool] = lambda _: True) -> Noted:
        """A method of this name that matches, with its content. Raises `Unexpected`."""

        def found() -> Noted | None:
            for one in self.noted:
                if (
                    one.is_whole
                    and one.method is not None
                    and name == one.method.NAME
                    and matches(one.method)
                ):
                    self.noted.remove(one)
                    return one
            return None

        return await self.until(found, f"{name} does not come to the broker")

    # -- serving ---------------------------------------------------------------------------------------------

    async def serve(self, stream: trio.abc.Stream) -> None:
        """A connection of the proxy's, until it ends."""
        end = ProbeEnd(ServedOutbox(stream, lambda: None), self.script, VERSIONS["0-9-1"])
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(end.outbox.run)
                nursery.start_soon(_beat, end)
                with suppress(*_ENDS):
                    if await self._greeted(end):
                        self.ends.append(end)
                        await self._listen(end)
                nursery.cancel_scope.cancel()
        finally:
            end.has_ended = True
            self._tell()
            await trio.aclose_forcefully(stream)

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    async def _greeted(self, end: ProbeEnd) -> bool:
        header = b""
        while len(header) < len(end.version.header):
            data = await end.outbox.stream.receive_some(len(end.version.header) - len(header))
            if not data:
                return False
            header += data
        version = _BY_HEADER.get(header)
        if version is None:
            await end.send(end.version.header)
            return False
        end.version = version
        major, minor, _ = version.dialect.version
        start = v0_9_1.ConnectionStart(
            major, minor, server_properties(version.name), end.script.mechanisms, b"en_US"
        )
        await end.say(0, start)
        return True

    async def _listen(self, end: ProbeEnd) -> None:
        under_way: dict[int, Noted] = {}
        left: dict[int, int] = {}
        while frames := await end.frames():
            for one in frames:
                if one.type == METHOD:
                    await self._method(end, one, under_way)
                elif (noted := under_way.get(one.channel)) is not None:
                    if one.type == HEADER:
                        noted.header = one.payload
                        left[one.channel] = int.from_bytes(one.payload[4:12], "big")
                    elif one.type == BODY:
                        noted.body += one.payload
                    if len(noted.body) >= left.get(one.channel, 0):
                        noted.is_whole = True
                        del under_way[one.channel]
            self._tell()

    async def _method(self, end: ProbeEnd, one: Frame, under_way: dict[int, Noted]) -> None:
        try:
            said: Method | None = decode_method(one.payload, end.version.dialect)
        except ProtocolViolation:
            said = None
        noted = Noted(end, one.channel, one.payload, said)
        if len(self.noted) < _MOST:
            self.noted.append(noted)
        if said is not None and said.CONTENT:
            noted.is_whole = False
            under_way[one.channel] = noted
        elif said is not None:
            await _answer(end, one.channel, said)


async def _beat(end: ProbeEnd) -> None:
    """A heartbeat twice in the interval that was agreed."""
    while True:
        agreed = end.tune_ok.heartbeat if end.tune_ok is not None else 0
        await trio.sleep(agreed / 2 or 0.5)
        if agreed:
            await end.send(HEARTBEAT_FRAME)


async def _answer(end: ProbeEnd, channel: int, said: Method) -> None:
    script = end.script
    tune = v0_9_1.ConnectionTune(script.channel_max, script.frame_max, script.heartbeat)
    match said.NAME:
        case "connection.start-ok":
            end.start_ok = said_as(v0_9_1.ConnectionStartOk, said)
            await end.say(0, script.instead_of_tune or tune)
        case "connection.secure-ok":
            await end.say(0, tune)
        case "connection.tune-ok":
            end.tune_ok = said_as(v0_9_1.ConnectionTuneOk, said)
        case "connection.open":
            await end.say(0, script.instead_of_open_ok or v0_9_1.ConnectionOpenOk())
        case "connection.close":
            await end.say(0, v0_9_1.ConnectionCloseOk())
        case "channel.open":
            await end.say(channel, v0_9_1.ChannelOpenOk())
        case "channel.close":
            await end.say(channel, v0_9_1.ChannelCloseOk())
        case "basic.qos":
            await end.say(channel, v0_9_1.BasicQosOk())
