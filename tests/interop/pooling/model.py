"""Clients that know what they are owed: a frame that a client has not asked for is a `Stray`.

Each message has a body of its own, so that whoever gets one can tell where it belongs. The `Ledger` has all
of them, for all clients of a run: who holds which, and which are done with.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from typing import TypeVar

import attrs

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.support.talker import Gone, Talker

M = TypeVar("M", bound=Method)


class Stray(AssertionError):
    """Something reached a client that was not meant for it, or came at the wrong time."""


@attrs.define(eq=False)
class Copy:
    """One message that a client has published."""

    body: bytes
    queue: str
    #: It is there: confirmed, or what was said behind it has been answered.
    is_sure: bool = False
    #: Rolled back, or acknowledged, and the broker knows: it must not be seen (again).
    is_over: bool = False
    #: It may be there or not: its sender, or who acknowledged it, was gone too early.
    is_unsure: bool = False
    #: Who has it, unacknowledged.
    holder: Channel | None = None
    seen: bool = False


@attrs.define(eq=False)
class Ledger:
    """All messages of a run."""

    copies: dict[bytes, Copy] = attrs.field(factory=dict)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def new(self, sender: str, queue: str, size: int) -> Copy:
        """One more, whose body is about `size` bytes."""
        body = f"{sender}/{next(self._numbers)}/{queue}|".encode()
        copy = Copy(body.ljust(size, b"."), queue)
        self.copies[copy.body] = copy
        return copy

    def delivered(self, channel: Channel, queue: str, body: bytes, *, redelivered: bool) -> Copy:
        """It came from `queue` to `channel`; it must be one that may."""
        copy = self.copies.get(body)
        where = f"{body[:40]!r} at {channel}"
        if copy is None:
            raise Stray(f"nobody has sent {where}")
        if copy.queue != queue:
            raise Stray(f"{where}, which consumes {queue}")
        if copy.is_over:
            raise Stray(f"{where} was done with")
        if copy.holder is not None:
            raise Stray(f"{where} is held by {copy.holder}")
        if copy.seen and not redelivered:
            raise Stray(f"{where} is not marked as redelivered")
        copy.seen = True
        return copy


@attrs.define(eq=False)
class Channel:
    """A channel from its open-ok on, as its client knows it."""

    client: Client
    number: int
    incarnation: int
    consumers: dict[str, str] = attrs.field(factory=dict)
    #: Deliveries that are not acknowledged, by their tags, in order.
    held: dict[int, Copy] = attrs.field(factory=dict)
    last_tag: int = 0
    confirming: bool = False
    published: int = 0
    unconfirmed: dict[int, Copy] = attrs.field(factory=dict)
    #: Bodies that must return.
    returns: collections.Counter[bytes] = attrs.field(factory=collections.Counter)
    #: Said, and nothing behind it is answered yet.
    sent: list[Copy] = attrs.field(factory=list)
    acked: list[Copy] = attrs.field(factory=list)
    closing: bool = False

    def __str__(self) -> str:
        return f"{self.client.name}:{self.number}#{self.incarnation}"

    def settle(self, sent: int, acked: int) -> None:
        """The broker has come to what was said after so many of both."""
        for copy in self.sent[:sent]:
            copy.is_sure = True
        for copy in self.acked[:acked]:
            copy.is_over = True
        del self.sent[:sent], self.acked[:acked]

    def release(self) -> None:
        """It is about to close: what it holds may be with others before the answer is heard."""
        self.closing = True
        for copy in self.held.values():
            copy.holder = None
        self.held.clear()

    def over(self) -> None:
        """It is closed: what it holds goes back to the queues."""
        self.release()
        for copy in (*self.sent, *self.acked):
            copy.is_unsure = True
        self.consumers.clear()


@attrs.define(eq=False)
class Client:
    """A client that takes each frame that comes, and tells a stray one."""

    name: str
    talker: Talker
    ledger: Ledger
    channels: dict[int, Channel] = attrs.field(factory=dict)
    #: Every channel and method that was said (publishes left out) or heard, in order.
    record: list[tuple[int, Method]] = attrs.field(factory=list)
    exclusive: list[str] = attrs.field(factory=list)
    #: Consumers of channels that the broker has closed: RabbitMQ may send a delivery behind its own close.
    late: dict[int, dict[str, str]] = attrs.field(factory=dict)
    _halves: dict[int, tuple[Method, int, bytearray] | Method] = attrs.field(factory=dict)
    _incarnations: Iterator[int] = attrs.field(factory=itertools.count)

    # -- hearing -----------------------------------------------------------------------------------------

    def _next(self) -> tuple[int, Method, bytes]:
        """The next method, and its body when it has one; contents of several channels may be mixed."""
        while True:
            frame = self.talker.frame()
            half = self._halves.pop(frame.channel, None)
            if frame.type == amqp.FRAME_METHOD:
                if half is not None:
                    raise Stray(f"{self.name}: a method within a message on {frame.channel}")
                method = decode_method(frame.payload)
                self.record.append((frame.channel, method))
                if not method.CONTENT:
                    return frame.channel, method, b""
                self._halves[frame.channel] = method
            elif frame.type == amqp.FRAME_HEADER:
                if not isinstance(half, Method):
                    raise Stray(f"{self.name}: a header of no message on {frame.channel}")
                size = decode_header(frame.payload).body_size
                if not size:
                    return frame.channel, half, b""
                self._halves[frame.channel] = half, size, bytearray()
            else:
                if not isinstance(half, tuple):
                    raise Stray(f"{self.name}: a body of no message on {frame.channel}")
                method, size, body = half
                body += frame.payload
                if len(body) > size:
                    raise Stray(f"{self.name}: a body too long on {frame.channel}")
                if len(body) == size:
                    return frame.channel, method, bytes(body)
                self._halves[frame.channel] = half

    def until(self, number: int, *kinds: type[Method]) -> tuple[Method, bytes]:
        """The next method of one of these kinds on that channel; whatever is before it must be owed."""
        try:
            while True:
                heard, method, body = self._next()
                if heard == number and isinstance(method, kinds):
                    return method, body
                self._take(heard, method, body)
        except (Stray, Gone, TimeoutError):
            # Hypothesis may not be able to make it happen again.
            print(f"{self.name}, waiting for {kinds} on {number}:", *self.record[-40:], sep="\n  ")
            raise

    def _take(self, number: int, method: Method, body: bytes) -> None:
        channel = self.channels.get(number)
        if channel is None and isinstance(method, amqp.BasicDeliver) and self._is_late(number, method, body):
            return
        if channel is None:
            raise Stray(f"{self.name}: {method} on {number}, which is not open")
        if isinstance(method, amqp.BasicDeliver):
            queue = channel.consumers.get(method.consumer_tag)
            if queue is None:
                raise Stray(f"{channel}: {method} for a consumer that is not there")
            self._hold(channel, queue, method, body)
        elif isinstance(method, (amqp.BasicAck, amqp.BasicNack)):
            self._confirmed(channel, method)
        elif isinstance(method, amqp.BasicReturn):
            if not channel.returns[body]:
                raise Stray(f"{channel}: {body[:40]!r} returned")
            channel.returns[body] -= 1
        else:
            raise Stray(f"{channel}: {method}, which nobody asked for")

    def _is_late(self, number: int, method: amqp.BasicDeliver, body: bytes) -> bool:
        queue = self.late.get(number, {}).get(method.consumer_tag)
        copy = self.ledger.copies.get(body)
        return copy is not None and copy.queue == queue

    def _hold(
        self, channel: Channel, queue: str, method: amqp.BasicDeliver | amqp.BasicGetOk, body: bytes
    ) -> None:
        if method.delivery_tag != channel.last_tag + 1:
            raise Stray(f"{channel}: {method} after delivery {channel.last_tag}")
        channel.last_tag += 1
        copy = self.ledger.delivered(channel, queue, body, redelivered=method.redelivered)
        if not channel.closing:
            copy.holder = channel
            channel.held[method.delivery_tag] = copy

    def _confirmed(self, channel: Channel, method: amqp.BasicAck | amqp.BasicNack) -> None:
        tag = method.delivery_tag
        tags = [each for each in channel.unconfirmed if each <= tag] if method.multiple else [tag]
        if isinstance(method, amqp.BasicNack) or tag not in channel.unconfirmed:
            raise Stray(f"{channel}: {method} where {list(channel.unconfirmed)} wait")
        for each in tags:
            channel.unconfirmed.pop(each).is_sure = True

    # -- asking ------------------------------------------------------------------------------------------

    def _say(self, method: Method, number: int = 0) -> None:
        self.record.append((number, method))
        self.talker.say(method, number)

    def ask(self, channel: Channel, method: Method, answer: type[M]) -> M:
        """A method and its answer, which settles what was said before."""
        before = len(channel.sent), len(channel.acked)
        self._say(method, channel.number)
        heard, _ = self.until(channel.number, answer)
        channel.settle(*before)
        assert isinstance(heard, answer)
        return heard

    def sync(self, channel: Channel) -> None:
        self.ask(
            channel,
            amqp.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True),
            amqp.ExchangeDeclareOk,
        )

    def open(self, number: int) -> Channel:
        self._say(amqp.ChannelOpen(), number)
        self.until(number, amqp.ChannelOpenOk)
        self.late.pop(number, None)
        channel = Channel(self, number, next(self._incarnations))
        self.channels[number] = channel
        return channel

    def close(self, channel: Channel) -> None:
        channel.release()
        self.ask(channel, amqp.ChannelClose(200, "bye"), amqp.ChannelCloseOk)
        self._closed(channel)

    def _closed(self, channel: Channel) -> None:
        del self.channels[channel.number]
        channel.over()

    def err(self, channel: Channel, method: Method, code: int, words: str) -> None:
        """A method that closes the channel, with this code and these words in the text."""
        before = len(channel.sent), len(channel.acked)
        channel.release()
        self._say(method, channel.number)
        close, _ = self.until(channel.number, amqp.ChannelClose)
        assert isinstance(close, amqp.ChannelClose)
        if close.reply_code != code or words not in close.reply_text:
            raise Stray(f"{channel}: {close} where {code} for {words} was due")
        channel.settle(*before)
        self._say(amqp.ChannelCloseOk(), channel.number)
        self.late[channel.number] = dict(channel.consumers)
        self._closed(channel)

    def publish(self, channel: Channel, queue: str, size: int, *, mandatory: bool = False) -> Copy:
        copy = self.ledger.new(str(channel), queue, size)
        if mandatory:
            channel.returns[copy.body] += 1
        method = amqp.BasicPublish(routing_key=queue, mandatory=mandatory)
        self.talker.content(method, copy.body, channel=channel.number)
        channel.sent.append(copy)
        if channel.confirming:
            channel.published += 1
            channel.unconfirmed[channel.published] = copy
        return copy

    def get(self, channel: Channel, queue: str) -> None:
        before = len(channel.sent), len(channel.acked)
        self._say(amqp.BasicGet(queue=queue), channel.number)
        method, body = self.until(channel.number, amqp.BasicGetOk, amqp.BasicGetEmpty)
        channel.settle(*before)
        if isinstance(method, amqp.BasicGetOk):
            self._hold(channel, queue, method, body)

    def ack(self, channel: Channel, tag: int, *, multiple: bool) -> None:
        self._say(amqp.BasicAck(tag, multiple=multiple), channel.number)
        for each in self._answered(channel, tag, multiple=multiple):
            channel.acked.append(each)

    def requeue(self, channel: Channel, tag: int, *, multiple: bool) -> None:
        self._say(amqp.BasicNack(tag, multiple=multiple, requeue=True), channel.number)
        self._answered(channel, tag, multiple=multiple)

    def _answered(self, channel: Channel, tag: int, *, multiple: bool) -> list[Copy]:
        tags = [each for each in channel.held if each <= tag] if multiple else [tag]
        copies = [channel.held.pop(each) for each in tags]
        for copy in copies:
            copy.holder = None
        return copies

    # -- the end -----------------------------------------------------------------------------------------

    def vanish(self, *, reset: bool, half: tuple[Channel, str, int] | None = None) -> None:
        """Without a word, or in the middle of a message whose first `half[2]` bytes are said."""
        if half is not None:
            channel, queue, cut = half
            data = content_frames(
                channel.number,
                amqp.BasicPublish(routing_key=queue),
                amqp.BasicProperties(),
                b"half of a message" * 1000,
                4096,
            )
            self.talker.raw(data[: cut % len(data)])
        (self.talker.reset if reset else self.talker.close)()
        self._over()

    def bye(self) -> None:
        """In good order; what comes before the close-ok must be owed."""
        for channel in self.channels.values():
            channel.release()
        before = {channel: (len(channel.sent), len(channel.acked)) for channel in self.channels.values()}
        self._say(amqp.ConnectionClose(200, "bye"))
        self.until(0, amqp.ConnectionCloseOk)
        for channel, counts in before.items():
            channel.settle(*counts)
        self.talker.close()
        self._over()

    def err_all(self, channel: Channel, data: bytes, code: int, words: str) -> None:
        """Something that ends the connection, with this code and these words in the text."""
        for each in self.channels.values():
            each.release()
        self.talker.raw(data)
        close, _ = self.until(0, amqp.ConnectionClose)
        assert isinstance(close, amqp.ConnectionClose)
        if close.reply_code != code or words not in close.reply_text:
            raise Stray(f"{channel}: {close} where {code} for {words} was due")
        self._say(amqp.ConnectionCloseOk())
        self.talker.close()
        self._over()

    def _over(self) -> None:
        for channel in self.channels.values():
            channel.over()
        self.channels.clear()


def frame(method: Method, channel: int) -> bytes:
    return method_frame(channel, method)
