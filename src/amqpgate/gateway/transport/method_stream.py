"""One socket during set-up and tear-down, while a coroutine talks on it: whole methods in and out.

Its methods are those of the canonical model, whatever version the peer speaks. An
established session leaves this for the data path; nothing here runs per message.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from typing import Final

from amqpgate.bridge import NATIVE, Interpreter, Translator, relayed
from amqpgate.datapath.engine import BufferedSocket, HandedOverSocket, Socket
from amqpgate.datapath.tls import has_ended, is_tls, wants_read, wants_write, would_block
from amqpgate.errors import AmqpgateError
from amqpgate.gateway.transport import repeated
from amqpgate.gateway.transport.connecting import keep_alive
from amqpgate.gateway.transport.translated_socket import TranslatedSocket
from amqpgate.gateway.transport.waiting import checkpoint, wait_readable, wait_writable
from amqpgate.protocol.frames import Frame, FrameDecoder, encode_frame
from amqpgate.protocol.handshake import Tune
from amqpgate.protocol.header import HEADER_MAGIC, HEADER_SIZE
from amqpgate.protocol.methods import Role
from amqpgate.protocol.violations import unexpected_frame, unknown_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

_READ = 16 * 1024
#: Reads of one peer for which nothing has to be waited for, before others have their turn.
MOST_READS = 8
_CLOSED = "connection closed"
#: Of peers that speak otherwise than most do.
_NOTHING: Final[dict[bytes, tuple[Method, bytes]]] = {}


class StreamClosedError(AmqpgateError):
    """The socket reached its end or broke while something was expected of it."""


class MethodStream:
    """A non-blocking socket, with a frame decoder and the peer's interpreter; or a translated one.

    ``frame_max`` (bytes) bounds what one frame may make us keep; ``peer`` is who is at the other end.
    ``received`` is what somebody else has received before, or why nothing more comes.
    """

    def __init__(
        self,
        sock: Socket,
        *,
        frame_max: int,
        peer: Role,
        interpreter: Interpreter | None = None,
        received: bytes | OSError = b"",
    ) -> None:
        self.sock = sock
        self.translated = sock if isinstance(sock, TranslatedSocket) else None
        #: What the peer is connected to: ``sock``, or what is behind its translator.
        self.inner = sock.inner if isinstance(sock, BufferedSocket) else sock
        if self.inner.gettimeout() != 0:
            self.inner.setblocking(False)
        self.decoder = FrameDecoder(frame_max)
        self.peer = peer
        #: Another one takes its place when the peer's version is known.
        self.interpreter = interpreter or NATIVE
        #: Reads in a row for which nothing had to be waited for.
        self._at_once = 0
        #: It was told something since it was read: what comes is its answer, and not there yet.
        self._is_asked = False
        self._received = received

    def speak(self, interpreter: Interpreter) -> None:
        """The peer speaks this version from now on."""
        self.interpreter = interpreter

    def translate(self, translator: Translator) -> None:
        """The peer's frames are not AMQP 0-9-1's: from now on ``translator`` makes them so.

        What the peer has sent behind its protocol header, and was received with it, goes there first.
        """
        rest, received = self.decoder.take_rest(), self._received
        if not isinstance(received, OSError):
            rest, self._received = rest + received, b""
        self.sock = self.translated = TranslatedSocket(self.inner, translator, rest)

    def relay_to(self, broker: MethodStream) -> int | None:
        """Pass on as it came what both peers say from now on: before open-ok, which the broker has said.

        The largest canonical frame, in bytes; None where they do not speak the same protocol, or 0-9-1.
        """
        ours, theirs = self.translated, broker.translated
        if ours is None or theirs is None or self.interpreter is not broker.interpreter:
            return None
        found = relayed(ours.translator, theirs.translator, self.interpreter)
        if found is None:
            return None
        ours.relay_to(theirs, found)
        return found.frame_max

    @property
    def is_tls(self) -> bool:
        return is_tls(self.inner)

    async def start_tls(self, context: ssl.SSLContext, *, server_side: bool, name: str | None = None) -> None:
        """Do the TLS handshake. Bytes received before it must have been consumed exactly.

        Somebody else may have begun it. Raises ``ssl.SSLError`` or ``OSError``; deadlines are the caller's.
        """
        if isinstance(self._received, OSError):
            raise self._received
        wrapped = self.inner
        if not isinstance(wrapped, ssl.SSLSocket):
            wrapped = context.wrap_socket(
                self.inner,
                server_side=server_side,
                server_hostname=name,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,
            )
            self.sock = self.inner = wrapped
        while True:
            try:
                wrapped.do_handshake()
            except ssl.SSLWantReadError:
                await wait_readable(wrapped)
            except ssl.SSLWantWriteError:
                await wait_writable(wrapped)
            else:
                return

    async def receive(self, limit: int = _READ) -> bytes:
        """Some bytes; ``b""`` at the end of the stream.

        Raises ``StreamClosedError`` when it is broken, and a translator's ``ProtocolViolation``. A peer that
        never stops sending takes nobody's turn, and does not outlive a deadline.
        """
        if self._received:
            return self._take_received(limit)
        if self._at_once >= MOST_READS:
            self._at_once = 0
            await checkpoint()
        self._at_once += 1
        source = self.inner if self.translated is None else self.translated
        if self._is_asked:
            self._is_asked = False
            if not (isinstance(source, TranslatedSocket) or is_tls(source)):
                self._at_once = 0
                await wait_readable(source)
        while True:
            try:
                return source.recv(limit)
            except BlockingIOError:
                self._at_once = 0
                if self.translated is None:
                    await wait_readable(self.inner)
                else:
                    await _until_more(self.translated)
            except wants_read():
                self._at_once = 0
                await wait_readable(self.inner)
            except wants_write():
                self._at_once = 0
                await wait_writable(self.inner)
            except has_ended():
                return b""
            except OSError as error:
                raise StreamClosedError(str(error)) from error

    def _take_received(self, limit: int) -> bytes:
        received = self._received
        if isinstance(received, OSError):
            raise StreamClosedError(str(received)) from received
        self._received = received[limit:]
        return received[:limit]

    async def receive_exactly(self, count: int) -> bytes:
        """Exactly ``count`` bytes, or ``StreamClosedError``."""
        data = b""
        while len(data) < count:
            piece = await self.receive(count - len(data))
            if not piece:
                raise StreamClosedError("closed before it said what was expected")
            data += piece
        return data

    async def send(self, data: bytes) -> None:
        """Send all of it. Raises ``StreamClosedError`` when the connection is broken."""
        if self.translated is not None:
            await _send_all(self.translated, data)
            return
        self._is_asked = True
        rest: bytes | memoryview = data
        while rest:
            try:
                sent = self.inner.send(rest if len(rest) <= _READ else memoryview(rest)[:_READ])
                if sent == len(rest):
                    return
                rest = memoryview(rest)[sent:]
            except wants_read():
                await wait_readable(self.inner)
            except would_block():
                await wait_writable(self.inner)
            except OSError as error:
                raise StreamClosedError(str(error)) from error

    def frame_of(self, method: Method, channel: int = 0) -> bytes:
        """The method frame that tells the peer. Raises ``UnsupportedInVersion``."""
        return encode_frame(amqp.FRAME_METHOD, channel, self.interpreter.from_canonical(method))

    def frame_with(self, cls: type[Method], *values: object) -> bytes:
        """As `frame_of`, on channel 0, of the method that has these values. They are hashable, and most
        connections have the same."""
        if self.interpreter is NATIVE:
            return repeated.frame_of(cls, *values)
        return self.frame_of(cls(*values))

    async def send_method(self, method: Method, channel: int = 0) -> None:
        await self.send(encode_frame(amqp.FRAME_METHOD, channel, self.interpreter.from_canonical(method)))

    async def next_frame(self) -> Frame:
        """The next whole frame. Raises ``ProtocolViolation`` (501) and ``StreamClosedError``."""
        while (frame := self.decoder.next()) is None:
            await self._feed()
        return frame

    async def next_method(self) -> Method:
        """The next method on channel 0; heartbeats are passed over.

        Anything else during set-up is a ``ProtocolViolation`` (501, 505).
        """
        decoder, heard = self.decoder, repeated.HEARD if self.interpreter is NATIVE else _NOTHING
        while True:
            if decoder.has_more:
                data = decoder.untouched()
                known = heard.get(data)
            else:
                data = await self.receive()
                if not data:
                    raise StreamClosedError(_CLOSED)
                known = heard.get(data)
                if known is None:
                    decoder.feed(data)
            if known is not None:
                method, rest = known
                decoder.begin(rest)
                return method
            while (frame := decoder.next()) is None:
                await self._feed()
                data = b""
            if frame.channel:
                raise unexpected_frame(*frame)
            if frame.type == amqp.FRAME_METHOD:
                method = self.interpreter.to_canonical(frame.payload, self.peer)
                if data and heard is repeated.HEARD:
                    repeated.keep(data, method, frame.payload)
                return method
            if frame.type != amqp.FRAME_HEARTBEAT:
                raise unexpected_frame(*frame)
            if frame.payload:
                raise unknown_frame(*frame)

    async def next_header(self) -> bytes | None:
        """The protocol header that comes next, or None where it is a frame."""
        if not self.decoder.has_more:
            await self._feed()
        if self.decoder.peek() != HEADER_MAGIC[0]:
            return None
        while (header := self.decoder.take(HEADER_SIZE)) is None:
            await self._feed()
        return header

    async def _feed(self) -> None:
        data = await self.receive()
        if not data:
            raise StreamClosedError(_CLOSED)
        self.decoder.feed(data)

    async def linger(self) -> None:
        """Say that nothing more comes, and read on until the peer has closed, too.

        A socket that is closed with unread bytes sends a reset, which can destroy what the peer
        has not read yet. Bounded by the caller's deadline.
        """
        if self.translated is not None:
            # What is still received is not translated any more.
            translated = self.translated
            self.sock, self.translated = self.inner, None
            translated.end()
            with contextlib.suppress(StreamClosedError):
                await _send_all(translated, b"")
        with contextlib.suppress(OSError, ValueError):
            if is_tls(self.inner):
                self.inner.unwrap()  # sends close_notify; the peer's own is not waited for
        with contextlib.suppress(OSError):
            self.inner.shutdown(socket.SHUT_WR)
        with contextlib.suppress(StreamClosedError):
            while await self.receive():
                pass

    def close(self) -> None:
        """Close at once. Idempotent."""
        self.sock.close()


async def _until_more(sock: TranslatedSocket) -> None:
    """Wait until more may come out of it. What it has to send by itself goes on meanwhile.

    Raises ``StreamClosedError`` where the translator waits for the gateway, which waits for it.
    """
    if sock.pending():
        # A turn was too short for a whole frame.
        await checkpoint()
    elif not sock.unsent:
        if sock.is_full:
            raise StreamClosedError("more was to be said before the peer is heard")
        await wait_readable(sock)
    elif sock.is_full:
        await wait_writable(sock)
    else:
        with contextlib.closing(select.epoll()) as either:
            either.register(sock, select.EPOLLIN | select.EPOLLOUT)
            await wait_readable(either)


async def _send_all(sock: TranslatedSocket, frames: bytes) -> None:
    """Send whole frames, whether its translator wants them or not, and what it has to send by itself."""
    rest = memoryview(frames)
    try:
        while True:
            sock.flush()
            if sock.unsent:
                await wait_writable(sock)
            elif rest:
                rest = rest[sock.send(rest, insists=True) :]
                await checkpoint()
            else:
                return
    except OSError as error:
        raise StreamClosedError(str(error)) from error


def hand_over(stream: MethodStream, tune: Tune) -> HandedOverSocket:
    """The socket as the data path takes it, with what was received after the last frame."""
    if not tune.heartbeat:
        keep_alive(stream.inner)
    return HandedOverSocket(stream.sock, tune.frame_max, float(tune.heartbeat), stream.decoder.take_rest())
