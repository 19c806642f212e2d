"""One connection to the scripted broker: the handshake, channels, heartbeats, and the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import attrs
import trio

from amqpgate.conformance.client.findings import ClientFindings
from amqpgate.conformance.client.line import ClientLine
from amqpgate.conformance.client.methods import ChannelNames, answer
from amqpgate.conformance.client.outbox import ServedOutbox
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.client.served_channel import ChannelRefusal, ServedChannel
from amqpgate.conformance.client.store import MOST_BYTES, BrokerStore
from amqpgate.conformance.client.watch import ClientWatch
from amqpgate.conformance.peer import BODY
from amqpgate.conformance.versions import VERSIONS, SpokenVersion
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, Frame, FrameDecoder
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.dialects import HEADER_0_8
from amqpgate.wire.method import Method

_HEADER: Final = 8
#: Clients of 0-8 say this one, too.
_OF_OLD: Final = b"AMQP\x01\x01\x09\x01"
_READ: Final = 1 << 16
#: The largest frame that is taken, so that one that is too large can be named.
_LARGEST: Final = 1 << 24
#: Seconds without a word of the client's after which what a scenario held goes out.
_MOMENT: Final = 0.1
#: Seconds for the protocol header, and for the client to hang up after close-ok.
_PATIENCE: Final = 10.0


@attrs.define(eq=False)
class ServedConnection:
    """One. `run` returns when the client has hung up; then the findings and the outcome are there."""

    stream: trio.abc.Stream
    store: BrokerStore
    #: What is played; it may be another one once the client names a virtual host.
    scenario: Scenario
    #: A scenario by the name of a virtual host; None: there is none.
    by_name: Callable[[str], Scenario | None]
    findings: ClientFindings = attrs.field(factory=ClientFindings)
    line: ClientLine | None = None
    _decoder: FrameDecoder = attrs.field(factory=lambda: FrameDecoder(_LARGEST))
    _channels: dict[int, ServedChannel] = attrs.field(factory=dict)
    _names: ChannelNames = attrs.field(factory=ChannelNames)
    _heard_at: float = 0

    def outcome(self) -> str | None:
        """Of the scenario."""
        return self.scenario.outcome(self.line) if self.line is not None else None

    async def run(self) -> None:
        """Serve until either end hangs up."""
        try:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._run()
        finally:
            await trio.aclose_forcefully(self.stream)

    async def _run(self) -> None:
        version = await self._version()
        if version is None:
            return
        outbox = ServedOutbox(self.stream, self._drained, self.scenario.is_mixed, self.scenario.segment)
        line = self.line = ClientLine(version, outbox, ClientWatch(self.findings, version), self._dismiss)
        greeting = self.scenario.greet(line)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.run)
            try:
                if isinstance(greeting, bytes):
                    outbox.put(0, greeting)
                    outbox.end()
                else:
                    line.say(0, greeting)
                nursery.start_soon(self._beat, line)
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._serve(line)
            finally:
                self._leave(line)
                nursery.cancel_scope.cancel()

    def _leave(self, line: ClientLine) -> None:
        line.course.has_hung_up = True
        line.watch.ended()
        for channel in self._channels.values():
            channel.close()
        self.store.left_by(line)

    def _dismiss(self, number: int) -> str:
        channel = self._channels[number]
        tag = list(channel.consumers)[-1]
        channel.cancel(tag)
        return tag

    def _drained(self) -> None:
        for channel in self._channels.values():
            for consumer in list(channel.consumers.values()):
                consumer.queue.deliver()

    async def _version(self) -> SpokenVersion | None:
        header = b""
        with trio.move_on_after(_PATIENCE):
            while len(header) < _HEADER and (data := await self.stream.receive_some(_HEADER - len(header))):
                header += data
        said = HEADER_0_8 if header == _OF_OLD else header
        version = next((one for one in VERSIONS.values() if one.header == said), None)
        if header:
            self.findings.check("connection.header", header[:4] == b"AMQP", header.hex(" "))
        if version is None and header:
            await self.stream.send_all(VERSIONS["0-9-1"].header)
        return version

    # -- in --------------------------------------------------------------------------------------------------

    async def _serve(self, line: ClientLine) -> None:
        self._heard_at = time.monotonic()
        while True:
            data = await self._receive(line, _MOMENT)
            if data is None:
                self.scenario.flush(line)
                data = await self._receive(line, _PATIENCE if line.watch.is_over else math.inf)
            if not data:
                return
            if not self._decoder.is_broken:
                await self._frames(line, data)

    async def _frames(self, line: ClientLine, data: bytes | bytearray) -> None:
        self._decoder.feed(data)
        while (frame := self._next(line)) is not None:
            await self._frame(line, frame)
        if self._decoder.is_broken:
            line.say(0, line.method("ConnectionClose", reply_code=501, reply_text="FRAME_ERROR"))

    def _next(self, line: ClientLine) -> Frame | None:
        while True:
            try:
                return self._decoder.next()
            except ProtocolViolation as violation:
                line.watch.violated(violation, is_lost=self._decoder.is_broken)
                if self._decoder.is_broken:
                    return None

    async def _frame(self, line: ClientLine, frame: Frame) -> None:
        said = line.watch.heard(frame)
        channel = self._channels.get(frame.channel)
        if frame.type == BODY and channel is not None and channel.under_way is not None:
            channel.under_way.body += frame.payload
            if len(channel.under_way.body) > MOST_BYTES:
                self._refuse(channel, ChannelRefusal(506, "RESOURCE_ERROR - the body is too large"))
        elif isinstance(said, ContentHeader) and channel is not None and channel.under_way is not None:
            channel.under_way.header = said
        elif isinstance(said, Method):
            await self._method(line, frame.channel, said)
            return
        if channel is not None and channel.under_way is not None and channel.under_way.is_whole:
            method = channel.under_way.method
            try:
                channel.publish()
            except ChannelRefusal as refusal:
                self._refuse(channel, refusal)
            self.scenario.after(line, frame.channel, method)

    async def _method(self, line: ClientLine, number: int, said: Method) -> None:
        line.course.heard(number, said)
        pause = self.scenario.delay(said, line.heartbeat)
        if pause:
            # What comes meanwhile shows whether heartbeats do.
            await self._wait(line, pause)
        if number == 0:
            self._connection(line, said)
            return
        if said.NAME == "channel.open":
            self._channels[number] = ServedChannel(
                number, line, self.scenario, self.store, self.scenario.last_tag
            )
            line.say(number, line.method("ChannelOpenOk"))
            self.scenario.after(line, number, said)
            return
        channel = self._channels.get(number)
        if channel is None:
            return
        if said.NAME in ("channel.close", "channel.close-ok"):
            handled = self.scenario.before(line, number, said)
            self._channels.pop(number).close()
            if said.NAME == "channel.close" and not handled:
                line.say(number, line.method("ChannelCloseOk"))
            return
        is_closing = number in line.watch.channels and line.watch.channels[number].passes_over
        if not is_closing and not self.scenario.before(line, number, said):
            try:
                answer(channel, self._names, said)
            except ChannelRefusal as refusal:
                self._refuse(channel, refusal)
        if not said.CONTENT:
            self.scenario.after(line, number, said)

    async def _wait(self, line: ClientLine, seconds: float) -> None:
        """Let time go by; what comes is fed, and looked at later."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            data = await self._receive(line, left)
            if data is not None and not data:
                raise trio.BrokenResourceError
            self._decoder.feed(data or b"")

    async def _receive(self, line: ClientLine, seconds: float) -> bytes | bytearray | None:
        """What has come, empty at the end; None: nothing has within this time."""
        with trio.move_on_after(seconds) as scope:
            data = await self.stream.receive_some(_READ)
        now = time.monotonic()
        line.silence = max(line.silence, now - self._heard_at)
        if scope.cancelled_caught:
            return None
        self._heard_at = now
        return data

    def _refuse(self, channel: ServedChannel, refusal: ChannelRefusal) -> None:
        channel.under_way = None
        channel.say(
            channel.line.method("ChannelClose", reply_code=refusal.code, reply_text=str(refusal)[:255])
        )

    # -- the connection --------------------------------------------------------------------------------------

    def _connection(self, line: ClientLine, said: Method) -> None:
        amqp = line.version.amqp
        if isinstance(said, amqp.ConnectionStartOk):
            capabilities = said.client_properties.get("capabilities")
            line.capabilities = dict(capabilities) if isinstance(capabilities, dict) else {}
            names = [said.client_properties.get(name) for name in ("product", "version")]
            line.product = " ".join(name for name in names if isinstance(name, str))
            channel_max, frame_max, heartbeat = self.scenario.tune
            tune = amqp.ConnectionTune(channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
            line.say(0, self.scenario.refuses(line, said) or tune)
        elif isinstance(said, amqp.ConnectionTuneOk):
            line.heartbeat = said.heartbeat
        elif isinstance(said, amqp.ConnectionOpen):
            self._open(line, said.virtual_host, said)
        elif isinstance(said, amqp.ConnectionClose):
            line.say(0, amqp.ConnectionCloseOk())
        elif isinstance(said, amqp.ConnectionCloseOk):
            line.outbox.end()
        elif said.NAME == "connection.update-secret":
            line.say(0, amqp.ConnectionUpdateSecretOk())

    def _open(self, line: ClientLine, virtual_host: str, said: Method) -> None:
        line.virtual_host = virtual_host
        self.scenario = self.by_name(virtual_host.lstrip("/")) or self.scenario
        line.outbox.is_mixed, line.outbox.segment = self.scenario.is_mixed, self.scenario.segment
        self._names = ChannelNames(self.scenario.name_length)
        refusal = self.scenario.refuses(line, said)
        line.say(0, refusal or line.method("ConnectionOpenOk"))
        if refusal is None:
            self.scenario.after(line, 0, said)

    async def _beat(self, line: ClientLine) -> None:
        """A heartbeat every half of what was agreed, and every half second before."""
        while True:
            await trio.sleep(line.heartbeat / 2 or 0.5)
            if line.heartbeat and not line.is_mute:
                line.outbox.put(0, HEARTBEAT)
