"""A connection to a broker with one channel, on which messages are confirmed.

One thread, one socket, one thing after the other, each with an end.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.logs import on_one_line
from amqpgate.protocol.frames import (
    FRAME_HEADER,
    FRAME_METHOD,
    FrameDecoder,
    body_frames,
    encode_frame,
    method_frame,
)
from amqpgate.protocol.handshake import negotiate, too_small
from amqpgate.protocol.login import exchange as login_exchange
from amqpgate.protocol.sasl import Credentials, offered_by
from amqpgate.telemetry.http_request import NotTakenError
from amqpgate.values import define, frozen
from amqpgate.wire.codec import ContentHeader, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

M = TypeVar("M", bound=Method)

_HEADER: Final = b"AMQP\x00\x00\x09\x01"
_CHANNEL: Final = 1
#: Bytes of a frame, at most; and before the broker has said what it takes: a start has its properties.
_FRAME_MAX: Final = 128 * 1024
_READ: Final = 64 * 1024


@frozen
class Settled:
    """What a broker has said of some messages."""

    #: Places of those that it has confirmed.
    confirmed: frozenset[int]
    #: How many of these no queue has.
    returned: int
    #: Why no more is known; empty: all is.
    broken: str = ""


@define(eq=False)
class ConfirmedPublisher:
    """Raises `NotTakenError` where it breaks. It is of no use then."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    #: Seconds for the login, and for all the confirms of what is published together.
    timeout: float
    _socket: socket.socket | None = attrs.field(default=None, init=False)
    _decoder: FrameDecoder = attrs.field(factory=lambda: FrameDecoder(_FRAME_MAX), init=False)
    _frame_max: int = attrs.field(default=_FRAME_MAX, init=False)
    #: The number of the last message, as confirms have it.
    _last: int = attrs.field(default=0, init=False)
    #: When it has to be over, by the monotonic clock.
    _until: float = attrs.field(default=0.0, init=False)

    def open(self, login: Credentials, vhost: str, name: str, exchange: str) -> None:
        """Log in, and see that the exchange is there. ``name`` is what the broker lists."""
        self._until = time.monotonic() + self.timeout
        with self._told():
            raw = socket.create_connection((self.host, self.port), self.timeout)
            self._socket = raw
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.tls is not None:
                self._socket = self.tls.wrap_socket(raw, server_hostname=self.host)
            self._put(_HEADER)
            start = self._expect(amqp.ConnectionStart)
            said = login_exchange(offered_by(start.mechanisms), login)
            about = Table.of(
                {
                    "product": "amqpgate",
                    "connection_name": name,
                    "capabilities": {"publisher_confirms": True, "authentication_failure_close": True},
                }
            )
            self._say(0, amqp.ConnectionStartOk(about, said.mechanism, said.first(), "en_US"))
            method = self._method()
            while isinstance(method, amqp.ConnectionSecure):
                self._say(0, amqp.ConnectionSecureOk(said.answer(method.challenge)))
                method = self._method()
            tune = _as(method, amqp.ConnectionTune)
            said.finish()
            if (small := too_small(tune.frame_max)) is not None:
                raise NotTakenError(small)
            self._frame_max = negotiate(tune.frame_max, _FRAME_MAX)
            # Nothing is said while there are no records, so there are no heartbeats.
            self._say(0, amqp.ConnectionTuneOk(negotiate(tune.channel_max, _CHANNEL), self._frame_max, 0))
            self._say(0, amqp.ConnectionOpen(vhost))
            self._expect(amqp.ConnectionOpenOk)
            self._say(_CHANNEL, amqp.ChannelOpen())
            self._expect(amqp.ChannelOpenOk)
            self._say(_CHANNEL, amqp.ExchangeDeclare(exchange=exchange, passive=True))
            self._expect(amqp.ExchangeDeclareOk)
            self._say(_CHANNEL, amqp.ConfirmSelect())
            self._expect(amqp.ConfirmSelectOk)

    def publish(self, exchange: str, messages: Sequence[tuple[str, amqp.BasicProperties, bytes]]) -> Settled:
        """Publish messages, each with its routing key, and wait until the broker has settled them."""
        self._until = time.monotonic() + self.timeout
        first, confirmed, returned = self._last + 1, set[int](), 0
        open_: set[int] = set(range(len(messages)))
        self._last += len(messages)
        try:
            with self._told():
                self._put(b"".join(self._frames(exchange, *message) for message in messages))
                while open_:
                    method = self._method()
                    if isinstance(method, amqp.BasicReturn):
                        returned += 1
                    elif isinstance(method, amqp.BasicAck | amqp.BasicNack):
                        at = method.delivery_tag - first
                        some = {one for one in open_ if one <= at} if method.multiple else open_ & {at}
                        open_ -= some
                        if isinstance(method, amqp.BasicAck):
                            confirmed |= some
        except NotTakenError as error:
            return Settled(frozenset(confirmed), returned, str(error))
        return Settled(frozenset(confirmed), returned)

    def close(self) -> None:
        """In good order, where that takes no time."""
        if self._socket is None:
            return
        with contextlib.suppress(OSError):
            self._socket.settimeout(0.5)
            self._socket.sendall(method_frame(0, amqp.ConnectionClose(200, "the end", 0, 0)))
            self._socket.recv(_READ)
        with contextlib.suppress(OSError):
            self._socket.close()
        self._socket = None

    def _frames(self, exchange: str, key: str, about: amqp.BasicProperties, body: bytes) -> bytes:
        publish = amqp.BasicPublish(exchange=exchange, routing_key=key, mandatory=True)
        header = encode_header(ContentHeader(publish.CLASS_ID, len(body), about))
        return b"".join(
            (
                method_frame(_CHANNEL, publish),
                encode_frame(FRAME_HEADER, _CHANNEL, header),
                *body_frames(_CHANNEL, body, self._frame_max),
            )
        )

    def _say(self, channel: int, method: Method) -> None:
        self._put(method_frame(channel, method))

    def _expect(self, wanted: type[M]) -> M:
        return _as(self._method(), wanted)

    def _method(self) -> Method:
        """The next method; contents of what comes back are passed over. A close is raised."""
        while True:
            frame = self._decoder.next()
            if frame is None:
                self._decoder.feed(self._get())
                continue
            if frame.type != FRAME_METHOD:
                continue
            method = decode_method(frame.payload)
            if isinstance(method, amqp.ConnectionClose | amqp.ChannelClose):
                text = on_one_line(method.reply_text[:200])
                raise NotTakenError(f"it says {method.NAME} {method.reply_code} {text}")
            return method

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _put(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.settimeout(self._left())
        self._socket.sendall(data)

    def _get(self) -> bytes:
        assert self._socket is not None
        self._socket.settimeout(self._left())
        data = self._socket.recv(_READ)
        if not data:
            raise ConnectionResetError("it has closed the connection")
        return data

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What breaks inside is told as one line."""
        try:
            yield
        except TimeoutError:
            raise NotTakenError(f"no answer within {self.timeout:g} s") from None
        except (OSError, AmqpgateError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NotTakenError(on_one_line(str(why)[:300])) from None


def _as(method: Method, wanted: type[M]) -> M:
    if not isinstance(method, wanted):
        raise NotTakenError(f"it says {method.NAME} where {wanted.NAME} is due")
    return method
