"""A client's stream on which it speaks AMQP 0-10, as a stream of frames of AMQP 0-9-1.

Between the two is the translator that the gateway has for such clients, which is pure: here is its I/O.

=====================================  =======================================================
the client is not read while           frames of it wait for the broker, the translator wants no bytes,
                                       or more than ``MOST_UNSENT`` bytes wait for the client
the broker waits, as for any stream    until the client has taken what its frames became
=====================================  =======================================================
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

import trio
from attrs import define, field

from amqpgate.bridge import Translator
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_OVERHEAD

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Bytes of one read.
_READ: Final = 64 * 1024
#: Bytes that the translator is given at once.
_PIECE: Final = 4 * 1024
#: Bytes that are sent before more frames are translated.
_SEND: Final = 64 * 1024
#: Bytes that may wait for a client before it is not read any more: the translator's own answers.
MOST_UNSENT: Final = 512 * 1024


@define(eq=False, repr=False)
class TranslatedStream(trio.abc.HalfCloseableStream):
    """See the module. One task reads, one sends, and one runs ``send_answers``.

    ``heard`` is called for all that the client sends: not all of it becomes frames.
    """

    inner: trio.abc.HalfCloseableStream
    translator: Translator
    #: Received, and not given to the translator yet: at first what came behind the protocol header.
    _input: memoryview = field(converter=memoryview)
    heard: Callable[[], None]
    #: For the client; what is being sent is not in here, but counts.
    _output: bytearray = field(factory=bytearray, init=False)
    _unsent: int = field(default=0, init=False)
    _sending: trio.Lock = field(factory=trio.Lock, init=False)
    _has_output: trio.Event = field(factory=trio.Event, init=False)
    #: The one who reads waits in here.
    _waiting: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    #: The client breaks the protocol: what it still sends is dropped.
    _is_deaf: bool = field(default=False, init=False)
    #: Nothing more comes of the client, or nothing can be sent to it any more.
    _is_over: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._take_output()

    @property
    def is_full(self) -> bool:
        """The client is not read before it has read."""
        return self._unsent > MOST_UNSENT

    # From the client.

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Frames, cut anywhere; ``b""`` at the end.

        Raises :class:`ProtocolViolation` where the client breaks the protocol, of which it has been told.
        What it sends from then on is dropped.
        """
        await trio.lowlevel.checkpoint()
        while True:
            frames = self._frames(max_bytes or _READ)
            if frames or self._is_over:
                return frames
            if not self._wants_bytes():
                await self._until_changed(trio.sleep_forever)
            elif self._input:
                piece, self._input = bytes(self._input[:_PIECE]), self._input[_PIECE:]
                if not self._is_deaf:
                    self._feed(piece)
            else:
                await self._read()

    def _wants_bytes(self) -> bool:
        return not self.is_full and (self._is_deaf or self.translator.wants_bytes)

    def _frames(self, limit: int) -> bytes:
        with self._failing():
            return self.translator.frames_for_gateway(limit)

    def _feed(self, piece: bytes) -> None:
        why = None
        with self._failing():
            try:
                self.translator.from_peer(piece)
            except ProtocolViolation as violation:
                why = violation
        self._take_output()
        if why is not None:
            self._is_deaf = True
            raise why

    async def _read(self) -> None:
        data = await self._until_changed(lambda: self.inner.receive_some(_READ))
        if data:
            self.heard()
            self._input = memoryview(data)
        elif data is not None:
            self._is_over = True
            with self._failing():
                self.translator.peer_ended()

    async def _until_changed(self, wait: Callable[[], Awaitable[T]]) -> T | None:
        """What is waited for; None if before it comes something else may have changed."""
        with trio.CancelScope() as self._waiting:
            return await wait()
        return None

    # To the client.

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send whole frames; returns when the client has taken all that became of them, or the kernel has."""
        for frame in _split(bytes(data)):
            # It is not asked whether it wants any: that of a client always does.
            wanted = self.translator.wants_bytes
            with self._failing():
                self.translator.from_gateway(frame)
            self._take_output()
            if not wanted:
                self._waiting.cancel()
            if len(self._output) > _SEND:
                await self._flush()
        await self._flush()

    async def wait_send_all_might_not_block(self) -> None:
        """As the client's stream has it."""
        await self.inner.wait_send_all_might_not_block()

    async def send_answers(self) -> None:
        """Send what the translator answers by itself, until cancelled or the client is gone."""
        while not self._is_over:
            await self._has_output.wait()
            self._has_output = trio.Event()
            try:
                await self._flush()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._is_over = True
                self._waiting.cancel()

    def _take_output(self) -> None:
        with self._failing():
            data = self.translator.bytes_for_peer()
            has_frames = self.translator.has_frames
        if data:
            self._output += data
            self._unsent += len(data)
            self._has_output.set()
        if has_frames:
            self._waiting.cancel()

    async def _flush(self) -> None:
        async with self._sending:
            await self._flush_locked()

    async def _flush_locked(self) -> None:
        if self._unsent != len(self._output):
            raise trio.BrokenResourceError("a frame was cut")
        while self._output:
            data = bytes(self._output)
            self._output.clear()
            # Whoever is cancelled in here leaves half a frame: it stays unsent, and nothing follows it.
            await self.inner.send_all(data)
            self._unsent -= len(data)
            self._waiting.cancel()

    # The end.

    async def send_eof(self) -> None:
        """The broker says nothing more; what the translator says last goes before."""
        with self._failing():
            self.translator.gateway_ended()
        self._take_output()
        async with self._sending:
            await self._flush_locked()
            await self.inner.send_eof()

    async def aclose(self) -> None:
        """Close the client's stream."""
        await self.inner.aclose()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """A translator's own fault ends the connection of this one client."""
        try:
            yield
        except Exception as error:
            log.exception("a translator has failed")
            raise trio.BrokenResourceError("a translator has failed") from error


def _split(frames: bytes) -> Iterator[bytes]:
    """One frame after the other."""
    start = 0
    while start < len(frames):
        stop: int = start + FRAME_HEAD.unpack_from(frames, start)[2] + FRAME_OVERHEAD
        yield frames[start:stop]
        start = stop
