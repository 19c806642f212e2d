"""One end of an AMQP conversation, frame by frame, on a blocking socket.

A test that says what a client library would not say, or that plays the broker itself, talks with this. Every
wait ends after `timeout` seconds with an error that tells what was waited for.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Self, TypeVar

import attrs

from amqpgate.protocol.frames import Frame, FrameDecoder, method_frame
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import Table
from tests.support.dialled import dialled
from tests.support.frames import content_frames

M = TypeVar("M", bound=Method)

#: What most clients say of themselves: they want to be told why, and when they are blocked.
CAPABILITIES = Table.of(
    {
        "product": "talker",
        "capabilities": {
            "authentication_failure_close": True,
            "basic.nack": True,
            "connection.blocked": True,
            "consumer_cancel_notify": True,
            "publisher_confirms": True,
        },
    }
)

_READ = 256 * 1024


class Gone(Exception):
    """The peer closed or reset the connection while something was expected of it."""


class Unexpected(Exception):
    """The peer said something else than was expected."""


@attrs.frozen
class Message:
    """A method with content, and its content."""

    method: Method
    header: ContentHeader
    body: bytes
    #: How many body frames it came in, and the largest frame of all in bytes.
    frames: int
    largest: int


class Talker:
    """One end of a connection. `frame_max` is what `publish` keeps to."""

    def __init__(self, sock: socket.socket, *, timeout: float = 20, frame_max: int = 131072) -> None:
        self.sock = sock
        self.sock.settimeout(timeout)
        self.frame_max = frame_max
        self.decoder = FrameDecoder(0)
        #: What is spoken, and how tables are.
        self.dialect = RABBITMQ_0_9_1
        #: Heartbeats that were passed over.
        self.heartbeats = 0

    @classmethod
    def dial(
        cls,
        port: int,
        *,
        timeout: float = 20,
        first: bytes = b"",
        tls: ssl.SSLContext | None = None,
        name: str = "localhost",
        read_buffer: int | None = None,
    ) -> Self:
        """As `dialled`."""
        sock = dialled(port, timeout=timeout, first=first, tls=tls, name=name, read_buffer=read_buffer)
        return cls(sock, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket without a word."""
        self.sock.close()

    def reset(self) -> None:
        """Close the socket so that the peer sees a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()

    # -- saying ------------------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.sock.sendall(data)

    def say(self, method: Method, channel: int = 0) -> None:
        """Send a method."""
        self.raw(method_frame(channel, method, self.dialect))

    def publish(
        self,
        body: bytes,
        routing_key: str,
        *,
        exchange: str = "",
        properties: amqp.BasicProperties | None = None,
        channel: int = 1,
        mandatory: bool = False,
    ) -> None:
        """basic.publish with its content."""
        method = amqp.BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
        self.content(method, body, properties=properties, channel=channel)

    def content(
        self,
        method: Method,
        body: bytes,
        *,
        properties: Properties | None = None,
        channel: int = 1,
    ) -> None:
        """A method with its content."""
        self.raw(
            content_frames(
                channel, method, properties or amqp.BasicProperties(), body, self.frame_max, self.dialect
            )
        )

    # -- hearing -----------------------------------------------------------------------------------

    def receive(self) -> bytes:
        """Some bytes, `b""` at the end. Raises `Gone` for a reset, `TimeoutError` when nothing comes."""
        try:
            return self.sock.recv(_READ)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""
        except TimeoutError:
            raise
        except OSError as error:
            raise Gone(str(error)) from error

    def exactly(self, count: int) -> bytes:
        """Exactly so many bytes, outside of frames."""
        while (data := self.decoder.take(count)) is None:
            self._feed()
        return data

    def frame(self) -> Frame:
        """The next frame that is no heartbeat."""
        while True:
            while (frame := self.decoder.next()) is None:
                self._feed()
            if frame.type != amqp.FRAME_HEARTBEAT:
                return frame
            self.heartbeats += 1

    def _feed(self) -> None:
        data = self.receive()
        if not data:
            raise Gone("closed")
        self.decoder.feed(data)

    def hear(self) -> tuple[int, Method]:
        """The next method, and its channel."""
        frame = self.frame()
        if frame.type != amqp.FRAME_METHOD:
            raise Unexpected(f"a method was expected, not {frame.type} on {frame.channel}")
        return frame.channel, decode_method(frame.payload, self.dialect)

    def expect(self, kind: type[M], channel: int = 0) -> M:
        """The next method, which must be of this kind on this channel."""
        heard, method = self.hear()
        if heard != channel or not isinstance(method, kind):
            raise Unexpected(f"{kind.NAME} on {channel} was expected, not {method} on {heard}")
        return method

    def expect_content(self, kind: type[Method], channel: int = 1) -> Message:
        """The next method, which must be of this kind, with its content."""
        return self.content_of(self.expect(kind, channel), channel)

    def content_of(self, method: Method, channel: int = 1) -> Message:
        """The content that follows a method that has been heard."""
        first = self.frame()
        if first.type != amqp.FRAME_HEADER or first.channel != channel:
            raise Unexpected(f"a content header on {channel} was expected, not {first}")
        header = decode_header(first.payload, self.dialect)
        body = bytearray()
        frames, largest = 0, len(first.payload) + 8
        while len(body) < header.body_size:
            piece = self.frame()
            if piece.type != amqp.FRAME_BODY or piece.channel != channel:
                raise Unexpected(
                    f"a body on {channel} was expected, not type {piece.type} on {piece.channel}"
                )
            body += piece.payload
            frames += 1
            largest = max(largest, len(piece.payload) + 8)
        return Message(method, header, bytes(body), frames, largest)

    def ask(self, method: Method, answer: type[M], channel: int = 0) -> M:
        """Say a method and expect its answer."""
        self.say(method, channel)
        return self.expect(answer, channel)

    def hear_nothing(self, seconds: float) -> None:
        """Nothing but heartbeats for so long."""
        until = time.monotonic() + seconds
        before = self.sock.gettimeout()
        try:
            while (left := until - time.monotonic()) > 0:
                while (frame := self.decoder.next()) is not None:
                    if frame.type != amqp.FRAME_HEARTBEAT:
                        raise Unexpected(f"nothing was expected, not {frame}")
                    self.heartbeats += 1
                self.sock.settimeout(left)
                self._feed()
        except TimeoutError:
            pass
        finally:
            self.sock.settimeout(before)

    def fill(self, data: bytes, patience: float = 0.5) -> int:
        """Send `data` until nothing has moved for `patience` seconds; how many bytes were taken."""
        before = self.sock.gettimeout()
        self.sock.settimeout(patience)
        sent = 0
        with memoryview(data) as view:
            try:
                while sent < len(data):
                    sent += self.sock.send(view[sent : sent + _READ])
            except TimeoutError:
                pass
            finally:
                self.sock.settimeout(before)
        return sent

    def expect_end(self) -> None:
        """Nothing but heartbeats until the peer closes in good order; `Gone` for a reset."""
        while True:
            while (frame := self.decoder.next()) is not None:
                if frame.type != amqp.FRAME_HEARTBEAT:
                    raise Unexpected(f"the end was expected, not {frame}")
            data = self.receive()
            if not data:
                assert not len(self.decoder), f"the end came within a frame: {self.decoder.take_rest()!r}"
                return
            self.decoder.feed(data)

    def all(self) -> Iterator[Frame]:
        """Every frame that is no heartbeat until the peer closes or resets."""
        while True:
            try:
                yield self.frame()
            except Gone:
                return

    # -- whole conversations -------------------------------------------------------------------------

    def open(
        self,
        *,
        vhost: str = "/",
        user: str = "guest",
        password: str = "guest",
        properties: Table = CAPABILITIES,
        frame_max: int | None = None,
        heartbeat: int = 0,
        channels: int = 1,
    ) -> amqp.ConnectionTune:
        """A client's half of the handshake, up to open channels 1 to `channels`; what was offered."""
        self.raw(amqp.PROTOCOL_HEADER)
        self.expect(amqp.ConnectionStart)
        start_ok = amqp.ConnectionStartOk(
            client_properties=properties,
            mechanism="PLAIN",
            response=plain_response(user, password),
            locale="en_US",
        )
        tune = self.ask(start_ok, amqp.ConnectionTune)
        self.frame_max = frame_max or tune.frame_max
        self.say(amqp.ConnectionTuneOk(tune.channel_max, self.frame_max, heartbeat))
        self.ask(amqp.ConnectionOpen(virtual_host=vhost), amqp.ConnectionOpenOk)
        for channel in range(1, channels + 1):
            self.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
        return tune

    def accept(
        self,
        *,
        mechanisms: bytes = b"PLAIN AMQPLAIN",
        tune: amqp.ConnectionTune = amqp.ConnectionTune(2047, 131072, 0),  # noqa: B008 - frozen
    ) -> tuple[amqp.ConnectionStartOk, amqp.ConnectionTuneOk, amqp.ConnectionOpen]:
        """A broker's half of the handshake, up to open-ok; what the client said."""
        self.greet(mechanisms=mechanisms)
        start_ok = self.expect(amqp.ConnectionStartOk)
        tune_ok = self.ask(tune, amqp.ConnectionTuneOk)
        self.frame_max = tune_ok.frame_max
        open_ = self.expect(amqp.ConnectionOpen)
        self.say(amqp.ConnectionOpenOk())
        return start_ok, tune_ok, open_

    def greet(
        self, *, mechanisms: bytes = b"PLAIN AMQPLAIN", properties: Table | None = None
    ) -> amqp.ConnectionStart:
        """A broker's first words, after the protocol header has come; what they were."""
        header = self.exactly(8)
        assert header == amqp.PROTOCOL_HEADER, header
        start = amqp.ConnectionStart(
            version_major=0,
            version_minor=9,
            server_properties=properties or Table.of({"product": "scripted"}),
            mechanisms=mechanisms,
            locales=b"en_US",
        )
        self.say(start)
        return start

    def bye(self) -> None:
        """connection.close and its answer, past whatever comes before it; then the socket."""
        self.say(amqp.ConnectionClose(reply_code=200, reply_text="bye"))
        for frame in self.all():
            if frame.type == amqp.FRAME_METHOD and isinstance(
                decode_method(frame.payload), amqp.ConnectionCloseOk
            ):
                self.close()
                return
        raise Gone("no close-ok")


def relayed(client: Talker, broker: Talker, method: Method, answer: Method, channel: int = 0) -> None:
    """A method passes to the broker, and then its answer to the client."""
    client.say(method, channel)
    broker.expect(type(method), channel)
    broker.say(answer, channel)
    client.expect(type(answer), channel)
