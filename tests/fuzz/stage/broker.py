"""A broker that answers in good order, and raises for whatever a gateway may not send it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import Frame, FrameDecoder, method_frame
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.fuzz.known import tolerates
from tests.support.frames import content_frames

#: What is answered to methods that ask for no more than that.
_ANSWERS: dict[type[Method], Method] = {
    amqp.ChannelFlow: amqp.ChannelFlowOk(True),
    amqp.ExchangeDeclare: amqp.ExchangeDeclareOk(),
    amqp.ExchangeDelete: amqp.ExchangeDeleteOk(),
    amqp.ExchangeBind: amqp.ExchangeBindOk(),
    amqp.ExchangeUnbind: amqp.ExchangeUnbindOk(),
    amqp.QueueBind: amqp.QueueBindOk(),
    amqp.QueueUnbind: amqp.QueueUnbindOk(),
    amqp.QueuePurge: amqp.QueuePurgeOk(0),
    amqp.QueueDelete: amqp.QueueDeleteOk(0),
    amqp.BasicQos: amqp.BasicQosOk(),
    amqp.BasicRecover: amqp.BasicRecoverOk(),
    amqp.TxSelect: amqp.TxSelectOk(),
    amqp.TxCommit: amqp.TxCommitOk(),
    amqp.TxRollback: amqp.TxRollbackOk(),
    amqp.ConnectionUpdateSecret: amqp.ConnectionUpdateSecretOk(),
    amqp.AccessRequest: amqp.AccessRequestOk(1),
}
#: To this exchange, a publish closes the channel.
MISSING = "yy"


@attrs.define(eq=False)
class Channel:
    """One that is open, or whose close has not been answered."""

    is_closing: bool = False
    publish: amqp.BasicPublish | None = None
    header: ContentHeader | None = None
    body: bytes = b""
    confirms: bool = False
    published: int = 0
    delivered: int = 0


@attrs.frozen
class Message:
    """A publish that has come whole."""

    exchange: str
    routing_key: str
    body: bytes
    properties: amqp.BasicProperties | None


@attrs.define(eq=False)
class Link:
    """One connection of the gateway's."""

    sock: socket.socket
    #: Whether a content header or an ack must be whole inside: else that is for the broker to find out. Of
    #: a broker with shared links, only those are strict: a client's own connection is its own affair.
    is_strict: bool
    may_pass: Callable[[Method, amqp.BasicProperties | None], bool]
    decoder: FrameDecoder = attrs.field(factory=lambda: FrameDecoder(0))
    #: What comes next: header, start-ok, tune-ok, open, frames, nothing.
    stage: str = "header"
    channels: dict[int, Channel] = attrs.field(factory=dict)
    messages: list[tuple[int, Message]] = attrs.field(factory=list)
    #: Bytes that are sent instead of the answer to what comes next.
    spoils: list[bytes] = attrs.field(factory=list)
    is_open: bool = True
    #: Channels that the other side has closed and not opened again.
    closed: set[int] = attrs.field(factory=set)
    #: It says what it does not know of: answers to that are nothing to it.
    is_hostile: bool = False

    def read(self) -> bool:
        """Take what has come; whether there was anything."""
        moved = False
        while self.is_open:
            try:
                data = self.sock.recv(1 << 18)
            except BlockingIOError:
                return moved
            except OSError:
                data = b""
            moved = True
            if not data:
                self.close()
                break
            self.decoder.feed(data)
            self._take()
        return moved

    def close(self) -> None:
        """Hang up."""
        self.is_open = False
        self.sock.close()

    def send(self, data: bytes) -> None:
        """As far as there is room: nobody here sends more than that."""
        with contextlib.suppress(OSError):
            self.sock.send(data)

    def say(self, channel: int, *methods: Method) -> None:
        """Answers; or what the target wants said instead."""
        if self.spoils:
            self.send(self.spoils.pop())
            return
        self.send(b"".join(method_frame(channel, method) for method in methods))

    def _take(self) -> None:
        while self.is_open:
            if self.stage == "header":
                header = self.decoder.take(8)
                if header is None:
                    return
                assert header[:4] == b"AMQP", header
                self.stage = "start-ok"
                self.say(0, amqp.ConnectionStart(0, 9, Table.of({"product": "RabbitMQ"}), b"PLAIN", b"en_US"))
                continue
            frame = self.decoder.next()
            if frame is None:
                return
            self._frame(frame)

    def _frame(self, frame: Frame) -> None:
        close_ok = method_frame(0, amqp.ConnectionCloseOk())[7:-1]
        if self.stage == "closing" and frame.payload != close_ok:
            return
        if frame.type == amqp.FRAME_HEARTBEAT:
            assert not frame.channel
            assert not frame.payload
        elif frame.type != amqp.FRAME_METHOD:
            self._content(frame)
        else:
            self._method(frame)

    def _method(self, frame: Frame) -> None:
        number, payload = frame.channel, bytes(frame.payload)
        index = int.from_bytes(payload[:4], "big")
        acks = (amqp.BasicAck.INDEX, amqp.BasicNack.INDEX, amqp.BasicReject.INDEX)
        if index in acks and not self.is_strict and number not in self.closed:
            assert number in self.channels, "an ack on a channel that is not open"
            return
        try:
            method = decode_method(payload)
        except ProtocolViolation:
            # It may have said that it is a broker of 0-8, whose methods have other numbers.
            assert self.is_hostile
            return
        if not number:
            self._connection(method)
            return
        if self.stage == "nothing" and not self.is_strict:
            # What a client says behind its own connection.close, RabbitMQ discards.
            return
        assert self.stage == "frames", (self.stage, method)
        channel = self.channels.get(number)
        if isinstance(method, amqp.ChannelOpen):
            assert channel is None, f"channel {number} is opened twice"
            self.channels[number] = Channel()
            self.closed.discard(number)
            self.say(number, amqp.ChannelOpenOk())
            return
        if isinstance(method, amqp.ChannelCloseOk):
            if not self.is_hostile:
                assert channel is not None, "close-ok for a channel that is not open"
                assert channel.is_closing, "close-ok that nobody asked for"
            self.channels.pop(number, None)
            return
        if channel is None and number in self.closed:
            self._behind_close(number)
            return
        assert channel is not None, f"{method} on channel {number}, which is not open"
        assert channel.publish is None, f"{method} within a message"
        if isinstance(method, amqp.ChannelClose):
            # Where both ends close at once RabbitMQ answers, and still waits for its own answer.
            if not channel.is_closing:
                self.closed.add(number)
                del self.channels[number]
            self.say(number, amqp.ChannelCloseOk())
        elif not channel.is_closing:
            self._on_channel(number, channel, method)

    def _behind_close(self, number: int) -> None:
        """RabbitMQ ends the connection for frames behind a close of their channel. That is the client's doing
        where the connection is its own; a link is everybody's."""
        assert not self.is_strict or tolerates("pooled-closes"), f"frames behind the close of {number}"
        self.say(0, amqp.ConnectionClose(504, "CHANNEL_ERROR - expected 'channel.open'"))
        self.stage = "closing"

    def _connection(self, method: Method) -> None:
        match method:
            case amqp.ConnectionStartOk():
                assert self.stage == "start-ok", self.stage
                self.stage = "tune-ok"
                ours = method.client_properties.to_python().get("amqpgate")
                self.is_strict = self.is_strict and isinstance(ours, dict) and ours.get("session") == ""
                self.say(0, amqp.ConnectionTune(2047, 131072, 0))
            case amqp.ConnectionTuneOk():
                assert self.stage == "tune-ok", self.stage
                self.stage = "open"
            case amqp.ConnectionOpen():
                assert self.stage == "open", self.stage
                self.stage = "frames"
                self.say(0, amqp.ConnectionOpenOk())
            case amqp.ConnectionClose():
                assert self.stage != "nothing" or not self.is_strict
                self.stage = "nothing"
                self.say(0, amqp.ConnectionCloseOk())
            case amqp.ConnectionCloseOk():
                self.stage = "nothing"
            case amqp.ConnectionUpdateSecret():
                self.say(0, amqp.ConnectionUpdateSecretOk())
            case _:
                raise AssertionError(f"{method} on channel 0")

    def _on_channel(self, number: int, channel: Channel, method: Method) -> None:
        match method:
            case amqp.BasicPublish():
                channel.publish = method
                return
            case amqp.BasicAck() | amqp.BasicNack() | amqp.BasicReject() | amqp.ChannelFlowOk():
                return
        assert self.may_pass(method, None), method
        match method:
            case amqp.ConfirmSelect():
                channel.confirms = True
                answers: tuple[Method, ...] = () if method.no_wait else (amqp.ConfirmSelectOk(),)
            case amqp.QueueDeclare():
                ok = amqp.QueueDeclareOk(method.queue or "amq.gen-q", 0, 0)
                answers = () if method.no_wait else (ok,)
            case amqp.BasicConsume():
                answers = () if method.no_wait else (amqp.BasicConsumeOk(method.consumer_tag or "made"),)
            case amqp.BasicCancel():
                answers = () if method.no_wait else (amqp.BasicCancelOk(method.consumer_tag),)
            case amqp.BasicGet():
                channel.delivered += 1
                got = amqp.BasicGetOk(channel.delivered, False, "x", "k", 0)
                self.send(content_frames(number, got, amqp.BasicProperties(), b"body", 4096))
                return
            case amqp.BasicRecoverAsync() | amqp.BasicCredit():
                return
            case _:
                answer = _ANSWERS.get(type(method))
                assert answer is not None, f"{method} is not a client's"
                answers = () if getattr(method, "no_wait", False) else (answer,)
        if answers:
            self.say(number, *answers)

    def _content(self, frame: Frame) -> None:
        if self.stage == "nothing" and not self.is_strict:
            # Likewise.
            return
        channel = self.channels.get(frame.channel)
        if channel is None and frame.channel in self.closed:
            self._behind_close(frame.channel)
            return
        assert channel is not None, f"content on channel {frame.channel}, which is not open"
        if channel.is_closing:
            return
        assert channel.publish is not None, "content without a method"
        if frame.type == amqp.FRAME_HEADER:
            assert channel.header is None, "two headers"
            channel.header = self._header(bytes(frame.payload))
        else:
            assert channel.header is not None, "a body without a header"
            channel.body += frame.payload
        assert len(channel.body) <= channel.header.body_size, "more body than was declared"
        if len(channel.body) == channel.header.body_size:
            self._published(frame.channel, channel)

    def _header(self, payload: bytes) -> ContentHeader:
        if self.is_strict:
            return decode_header(payload)
        try:
            return decode_header(payload)
        except Exception:
            size = int.from_bytes(payload[4:12], "big")
            return ContentHeader(60, size, amqp.BasicProperties(message_id="unreadable"))

    def _published(self, number: int, channel: Channel) -> None:
        assert channel.publish is not None
        assert channel.header is not None
        properties = channel.header.properties
        assert isinstance(properties, amqp.BasicProperties)
        assert self.may_pass(channel.publish, properties), (channel.publish, properties)
        method = channel.publish
        self.messages.append((number, Message(method.exchange, method.routing_key, channel.body, properties)))
        channel.publish, channel.header, channel.body = None, None, b""
        channel.published += 1
        if method.exchange == MISSING:
            channel.is_closing = True
            why = "NOT_FOUND - no exchange 'yy' in vhost '/'"
            self.say(number, amqp.ChannelClose(404, why, 60, 40))
        elif channel.confirms:
            self.say(number, amqp.BasicAck(channel.published))


@attrs.define(eq=False)
class Broker:
    """Listens, and has the links."""

    is_strict: bool
    may_pass: Callable[[Method, amqp.BasicProperties | None], bool]
    sock: socket.socket = attrs.field(factory=lambda: socket.create_server(("127.0.0.1", 0)))
    links: list[Link] = attrs.field(factory=list)
    #: What new links say instead of their answers.
    spoils: list[bytes] = attrs.field(factory=list)
    is_hostile: bool = False

    def __attrs_post_init__(self) -> None:
        self.sock.setblocking(False)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.sock.getsockname()[1]
        return port

    def step(self) -> bool:
        """Take what has come, on every link; whether there was anything."""
        moved = False
        with contextlib.suppress(BlockingIOError):
            sock, _ = self.sock.accept()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(sock, self.is_strict, self.may_pass, spoils=self.spoils, is_hostile=self.is_hostile)
            self.links.append(link)
            moved = True
        for link in self.links:
            moved |= link.is_open and link.read()
        return moved

    def close(self) -> None:
        """Hang up on everybody."""
        self.sock.close()
        for link in self.links:
            link.sock.close()

    def living(self) -> Iterator[tuple[Link, int]]:
        """Links with channels, and each channel."""
        for link in self.links:
            if link.is_open and link.stage == "frames":
                for number in sorted(link.channels):
                    yield link, number
