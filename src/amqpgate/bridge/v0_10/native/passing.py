"""The way of messages through an end of a relayed connection: in as copies, out as originals.

`PassingEnd` is made to be read; where it was compiled, ``_native`` serves, which does the same.
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.native.assemblies import AssemblyReader
from amqpgate.bridge.v0_10.native.build import Original, Outgoing
from amqpgate.bridge.v0_10.native.channels import RelayedChannel
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.bridge.v0_10.native.forms import KnownForms
from amqpgate.bridge.v0_10.native.limits import BEAT, CONNECTION, CONTENT, MOST_UNSENT, MOST_WAITING
from amqpgate.bridge.v0_10.native.relay import NativeRelay
from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)
from amqpgate.protocol.v0_10.frames import COMMAND
from amqpgate.wire.codec import decode_method
from amqpgate.wire.method import Method

#: Where a content header has the size of the body.
_SIZE: Final = slice(4, 12)
_HEAD_SIZE: Final = FRAME_HEAD.size


class _PassingMessage:
    """A message of the gateway's that is not whole."""

    __slots__ = ("header", "method", "missing")

    def __init__(self, method: bytes) -> None:
        self.method = method
        self.header = b""
        self.missing = 0


class PassingEnd:
    """Part of `NativeEnd`. ``out`` is for its peer, ``way`` for the other one.

    Assemblies of more than ``most`` bytes may have to be given to the other peer in smaller frames; ``takes``
    bytes has the largest frame that its own peer takes. ``is_delivery``: its peer is the broker. ``forms``
    are of its peer's transfers.
    """

    __slots__ = (
        "_contents",
        "_forms",
        "_frames",
        "_held",
        "_is_delivery",
        "_most",
        "_out",
        "_reader",
        "_relay",
        "_takes",
        "_way",
    )

    def __init__(
        self,
        relay: NativeRelay,
        reader: AssemblyReader,
        out: Outgoing,
        way: Outgoing,
        *,
        most: int,
        takes: int,
        is_delivery: bool,
        forms: KnownForms,
    ) -> None:
        self._relay = relay
        self._reader = reader
        self._out = out
        self._way = way
        self._most = most
        self._takes = takes
        self._is_delivery = is_delivery
        self._forms = forms
        #: Bytes of its peer's that wait until a session may begin.
        self._held = 0
        #: Frames for the gateway.
        self._frames = bytearray()
        self._contents: dict[int, _PassingMessage] = {}

    # The peer's side.

    @property
    def wants_bytes(self) -> bool:
        """As in `Translator`."""
        way = self._way
        return way.size <= MOST_UNSENT and way.waiting <= MOST_WAITING and self._held <= MOST_UNSENT

    def hold(self, size: int) -> None:
        """So many more bytes of its peer's wait until a session may begin, or fewer."""
        self._held += size

    def from_peer(self, data: bytes) -> None:
        """As in `Translator`."""
        reader = self._reader
        reader.add(data)
        while (assembly := reader.next()) is not None:
            number = assembly.channel
            if number >= self._relay.channel_max or len(assembly.original) > self._most:
                assembly = self._fitting(assembly)
            if assembly.kind == COMMAND:
                self._command(self._relay.channel(number), assembly)
            elif assembly.segment[:1] == CONNECTION:
                self._connection(assembly)
            else:
                self._control(self._relay.channel(number), assembly)

    def peer_ended(self) -> None:
        """As in `Translator`: the gateway sees it."""

    def bytes_for_peer(self) -> bytes:
        """As in `Translator`."""
        return self._out.take()

    def _fitting(self, assembly: Assembly) -> Assembly:
        """The same in frames that the other peer takes. Violation 501 for a channel that may not be used."""
        raise NotImplementedError

    def _connection(self, assembly: Assembly) -> None:
        """A control of the connection's."""
        raise NotImplementedError

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
                elif payload[:4] in CONTENT:
                    self._contents[number] = _PassingMessage(payload)
                else:
                    self._contents.pop(number, None)
                    self._method(self._relay.channel(number - 1), payload)
                continue
            if kind == FRAME_HEARTBEAT:
                self._out.put(BEAT)
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
                self._message(number, content.method, content.header)

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

    def give(self, frames: bytes) -> None:
        """These are for the gateway."""
        self._frames += frames

    def _amended(self, original: Original, header: bytes) -> bytes:
        """The frames of an original whose copy has this header now."""
        raise NotImplementedError

    def _tell(self, method: Method) -> None:
        """A method of the connection's, to the peer."""
        raise NotImplementedError

    def _method(self, channel: RelayedChannel, payload: bytes) -> None:
        """A method of a channel's, without content."""
        raise NotImplementedError

    def _message(self, number: int, method: bytes, header: bytes) -> None:
        """A message has come whole: what it is a copy of goes on."""
        channel = self._relay.channel(number - 1)
        lane = channel.up if self._is_delivery else channel.down
        if not lane.waiting:
            if lane.is_dropping:
                return
            raise ValueError("a message that is no copy")
        original = lane.waiting[0]
        if original.copies[-1] != method:
            raise ValueError("a message that is no copy of the next one")
        lane.release(None if original.header == header else self._amended(original, header))
