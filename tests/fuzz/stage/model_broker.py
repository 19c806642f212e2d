"""A broker of 0-9-1 in memory for a translator alone: queues, channels, confirms, transactions, prefetch.

It raises for whatever a client may not send it, as RabbitMQ would close the channel or the connection. What
it has to say waits in ``out`` until the target hands it over; confirms and deliveries are made when it is
told to, so that they come as late as one likes. Each message is known by the number that its body begins
with.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

import attrs

from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    Frame,
    FrameDecoder,
    method_frame,
)
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames

FRAME_MAX = 4096
CHANNEL_MAX = 9
#: To this exchange a publish closes the channel.
MISSING = "missing"

_ANSWERS: dict[type[Method], Method] = {
    amqp.ExchangeDelete: amqp.ExchangeDeleteOk(),
    amqp.QueueUnbind: amqp.QueueUnbindOk(),
    amqp.TxSelect: amqp.TxSelectOk(),
    amqp.ConfirmSelect: amqp.ConfirmSelectOk(),
}
_SETTLING = (amqp.BasicAck, amqp.BasicNack, amqp.BasicReject)
#: What gives a message back, or is done with it.
_REFUSING = (amqp.BasicNack, amqp.BasicReject)


@attrs.define(eq=False)
class Stored:
    """A message in a queue; ``place`` is kept when it goes back."""

    uid: int
    place: int
    body: bytes
    redelivered: bool = False


@attrs.define(eq=False)
class Queue:
    messages: list[Stored] = attrs.field(factory=list)
    next_place: int = 0
    has_exclusive: bool = False

    def put(self, uid: int, body: bytes) -> None:
        self.messages.append(Stored(uid, self.next_place, body))
        self.next_place += 1

    def back(self, stored: Stored) -> None:
        stored.redelivered = True
        self.messages.append(stored)
        self.messages.sort(key=lambda one: one.place)


@attrs.define(eq=False)
class Consumer:
    channel: Channel
    tag: str
    queue: str
    prefetch: int
    unacked: int = 0


@attrs.define(eq=False)
class Channel:
    number: int
    #: The broker has closed it, and waits for close-ok.
    is_closing: bool = False
    is_transactional: bool = False
    has_confirms: bool = False
    prefetch: int = 0
    published: int = 0
    delivered: int = 0
    consumers: dict[str, Consumer] = attrs.field(factory=dict)
    unacked: dict[int, tuple[Stored, str, Consumer | None]] = attrs.field(factory=dict)
    #: In a transaction: what was settled, and what was published.
    settled: list[tuple[Method, int, tuple[Stored, str, Consumer | None]]] = attrs.field(factory=list)
    waiting: list[tuple[str, str, int, bytes]] = attrs.field(factory=list)
    unconfirmed: list[tuple[int, int]] = attrs.field(factory=list)
    #: A message that is coming: what publishes it, bytes that miss, bytes that came.
    publish: amqp.BasicPublish | None = None
    missing: int = -1
    body: bytes = b""


@attrs.define(eq=False)
class ModelBroker:
    """See the module. ``out`` are whole frames with what is known of them once they are handed over."""

    out: deque[tuple[bytes, tuple[str, list[int], bool] | None]] = attrs.field(factory=deque)
    channels: dict[int, Channel] = attrs.field(factory=dict)
    queues: dict[str, Queue] = attrs.field(factory=dict)
    exchanges: set[str] = attrs.field(factory=lambda: {"amq.direct", "amq.fanout"})
    bindings: set[tuple[str, str, str]] = attrs.field(factory=set)
    #: How often each message came from the client, in their order.
    received: list[int] = attrs.field(factory=list)
    #: What the client said of each message that was delivered: acked, rejected.
    acked: list[int] = attrs.field(factory=list)
    rejected: list[int] = attrs.field(factory=list)
    #: Those that the client gave back, other than by closing the channel.
    returned: list[int] = attrs.field(factory=list)
    #: Names of queues that were deleted at some time.
    deleted: set[str] = attrs.field(factory=set)
    #: Messages that a queue had when it was deleted or purged, or that no queue got.
    dropped: Counter[int] = attrs.field(factory=Counter)
    #: Code of the refusal that the next question gets instead of its answer.
    refusal: int = 0
    #: The client says what makes no sense: bodies may not be what they were.
    is_wild: bool = False
    is_open: bool = False
    is_closed: bool = False
    decoder: FrameDecoder = attrs.field(factory=lambda: FrameDecoder(0))

    def say(self, channel: int, *methods: Method) -> None:
        for method in methods:
            self.out.append((method_frame(channel, method), None))

    # -- what comes --------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        self.decoder.feed(data)
        while (frame := self.decoder.next()) is not None:
            assert len(frame.payload) + 8 <= FRAME_MAX, "a frame that is too large"
            assert not self.is_closed or frame.channel or frame.type != FRAME_METHOD, "said after close"
            if frame.type == FRAME_HEARTBEAT:
                continue
            if frame.type == FRAME_METHOD:
                method = decode_method(frame.payload)
                if frame.channel:
                    self._on_channel(frame.channel, method)
                else:
                    self._on_connection(method)
            else:
                self._content(frame)

    def _on_connection(self, method: Method) -> None:
        match method:
            case amqp.ConnectionStartOk():
                self.say(0, amqp.ConnectionTune(CHANNEL_MAX, FRAME_MAX, 60))
            case amqp.ConnectionTuneOk(channel_max=channel_max, frame_max=frame_max):
                assert (channel_max, frame_max) == (CHANNEL_MAX, FRAME_MAX)
            case amqp.ConnectionOpen():
                self.is_open = True
                self.say(0, amqp.ConnectionOpenOk())
            case amqp.ConnectionClose():
                self.is_closed = True
                self.say(0, amqp.ConnectionCloseOk())
            case amqp.ConnectionCloseOk():
                self.is_closed = True
            case _:
                raise AssertionError(method)

    def _on_channel(self, number: int, method: Method) -> None:
        assert self.is_open
        assert number <= CHANNEL_MAX
        channel = self.channels.get(number)
        if isinstance(method, amqp.ChannelOpen):
            assert channel is None, f"channel {number} is opened twice"
            self.channels[number] = Channel(number)
            self.say(number, amqp.ChannelOpenOk())
            return
        assert channel is not None, f"{method} on channel {number}, which is not open"
        assert channel.publish is None, f"{method} within a message"
        if isinstance(method, amqp.ChannelCloseOk):
            assert channel.is_closing
            del self.channels[number]
        elif isinstance(method, amqp.ChannelClose):
            if not channel.is_closing:
                self._give_up(channel)
                del self.channels[number]
            self.say(number, amqp.ChannelCloseOk())
        elif not channel.is_closing:
            if self.refusal and not isinstance(method, (*_SETTLING, amqp.BasicPublish, amqp.ChannelFlowOk)):
                self.close(channel, self.refusal, method)
                self.refusal = 0
            else:
                self._do(channel, method)

    def close(self, channel: Channel, code: int, method: Method | None = None) -> None:
        """Refuse something, or close the channel for no reason."""
        ids = (0, 0) if method is None else (method.CLASS_ID, method.METHOD_ID)
        self._give_up(channel)
        channel.is_closing = True
        self.say(channel.number, amqp.ChannelClose(code, "refused", *ids))

    def _give_up(self, channel: Channel) -> None:
        """The end of a channel: what is not settled goes back."""
        for _, _, one in channel.settled:
            self._back(one)
        for one in channel.unacked.values():
            self._back(one)
        channel.settled.clear()
        channel.unacked.clear()
        channel.consumers.clear()
        channel.publish = None

    def _back(self, one: tuple[Stored, str, Consumer | None]) -> None:
        stored, queue, consumer = one
        if consumer is not None:
            consumer.unacked -= 1
        if queue in self.queues:
            self.queues[queue].back(stored)
        else:
            self.dropped[stored.uid] += 1

    def _do(self, channel: Channel, method: Method) -> None:
        number = channel.number
        if type(method) in _ANSWERS:
            if isinstance(method, amqp.TxSelect):
                assert not channel.has_confirms
                channel.is_transactional = True
            if isinstance(method, amqp.ConfirmSelect):
                assert not channel.is_transactional
                channel.has_confirms = True
            self.say(number, _ANSWERS[type(method)])
            return
        match method:
            case amqp.QueueDeclare(queue=name, passive=passive, exclusive=exclusive):
                assert name
                if passive and name not in self.queues:
                    self.close(channel, 404, method)
                    return
                queue = self.queues.setdefault(name, Queue())
                queue.has_exclusive |= exclusive
                self.say(number, amqp.QueueDeclareOk(name, len(queue.messages), 0))
            case amqp.QueueDelete(queue=name, no_wait=no_wait):
                self.delete(name)
                if not no_wait:
                    self.say(number, amqp.QueueDeleteOk(0))
            case amqp.QueuePurge(queue=name):
                if name not in self.queues:
                    self.close(channel, 404, method)
                    return
                self.dropped.update(one.uid for one in self.queues[name].messages)
                self.queues[name].messages.clear()
                self.say(number, amqp.QueuePurgeOk(0))
            case amqp.QueueBind(queue=queue, exchange=exchange, routing_key=key):
                if queue not in self.queues or exchange not in self.exchanges:
                    self.close(channel, 404, method)
                    return
                self.bindings.add((exchange, key, queue))
                self.say(number, amqp.QueueBindOk())
            case amqp.ExchangeDeclare(exchange=name, passive=passive):
                if name not in self.exchanges:
                    if passive:
                        self.close(channel, 404, method)
                        return
                    self.exchanges.add(name)
                self.say(number, amqp.ExchangeDeclareOk())
            case amqp.BasicQos(prefetch_count=count):
                channel.prefetch = count
                self.say(number, amqp.BasicQosOk())
            case amqp.BasicConsume(queue=queue, consumer_tag=tag, exclusive=exclusive, no_ack=no_ack):
                assert not no_ack
                assert tag not in channel.consumers
                if queue not in self.queues:
                    self.close(channel, 404, method)
                    return
                if exclusive and any(one.queue == queue for one in self._consumers()):
                    self.close(channel, 403, method)
                    return
                channel.consumers[tag] = Consumer(channel, tag, queue, channel.prefetch)
                self.say(number, amqp.BasicConsumeOk(tag))
            case amqp.BasicCancel(consumer_tag=tag):
                channel.consumers.pop(tag, None)
                self.say(number, amqp.BasicCancelOk(tag))
            case amqp.BasicGet(queue=queue, no_ack=no_ack):
                assert not no_ack
                if queue not in self.queues:
                    self.close(channel, 404, method)
                elif not self.queues[queue].messages:
                    self.say(number, amqp.BasicGetEmpty())
                else:
                    self._deliver(channel, queue, None)
            case amqp.BasicAck() | amqp.BasicNack() | amqp.BasicReject():
                self._settle(channel, method)
            case amqp.TxCommit():
                assert channel.is_transactional
                for settling, _, one in channel.settled:
                    self._settled(settling, one)
                channel.settled.clear()
                for exchange, key, uid, body in channel.waiting:
                    self._route(exchange, key, uid, body)
                channel.waiting.clear()
                self.say(number, amqp.TxCommitOk())
            case amqp.TxRollback():
                assert channel.is_transactional
                for _, tag, one in channel.settled:
                    channel.unacked[tag] = one
                channel.unacked = dict(sorted(channel.unacked.items()))
                channel.settled.clear()
                self.dropped.update(uid for _, _, uid, _ in channel.waiting)
                channel.waiting.clear()
                self.say(number, amqp.TxRollbackOk())
            case amqp.BasicPublish():
                assert channel.has_confirms or channel.is_transactional
                channel.publish, channel.missing, channel.body = method, -1, b""
            case amqp.ChannelFlowOk():
                pass
            case _:
                raise AssertionError(method)

    def _content(self, frame: Frame) -> None:
        channel = self.channels.get(frame.channel)
        assert channel is not None, "content on a channel that is not open"
        if channel.is_closing:
            return
        assert channel.publish is not None, "content without a method"
        if frame.type == FRAME_HEADER:
            assert channel.missing < 0
            channel.missing = decode_header(frame.payload).body_size
        else:
            assert frame.type == FRAME_BODY
            assert 0 < len(frame.payload) <= channel.missing
            channel.body += frame.payload
            channel.missing -= len(frame.payload)
        if not channel.missing:
            self._published(channel, channel.publish, channel.body)

    def _published(self, channel: Channel, publish: amqp.BasicPublish, body: bytes) -> None:
        channel.publish = None
        if publish.exchange and publish.exchange not in self.exchanges:
            self.close(channel, 404, publish)
            return
        uid = int.from_bytes(body[:4])
        assert self.is_wild or uid not in self.received, "published twice"
        self.received.append(uid)
        if channel.is_transactional:
            channel.waiting.append((publish.exchange, publish.routing_key, uid, body))
            return
        channel.published += 1
        channel.unconfirmed.append((channel.published, uid))
        self._route(publish.exchange, publish.routing_key, uid, body)

    def _route(self, exchange: str, key: str, uid: int, body: bytes) -> None:
        if exchange:
            names = {queue for at, by, queue in self.bindings if (at, by) == (exchange, key)}
        else:
            names = {key}
        found = [self.queues[name] for name in sorted(names) if name in self.queues]
        for queue in found[:1]:
            queue.put(uid, body)
        if not found:
            self.dropped[uid] += 1

    def _settle(self, channel: Channel, method: amqp.BasicAck | amqp.BasicNack | amqp.BasicReject) -> None:
        tags = [method.delivery_tag]
        assert not isinstance(method, amqp.BasicNack) or (method.requeue and not method.multiple)
        assert method.delivery_tag in channel.unacked, f"unknown delivery tag: {method}"
        if isinstance(method, _REFUSING) and method.requeue:
            self.returned.append(channel.unacked[method.delivery_tag][0].uid)
        if isinstance(method, amqp.BasicAck) and method.multiple:
            tags = [tag for tag in channel.unacked if tag <= method.delivery_tag]
        for tag in tags:
            one = channel.unacked.pop(tag)
            if channel.is_transactional:
                channel.settled.append((method, tag, one))
            else:
                self._settled(method, one)

    def _settled(self, method: Method, one: tuple[Stored, str, Consumer | None]) -> None:
        if isinstance(method, _REFUSING) and method.requeue:
            self._back(one)
            return
        if one[2] is not None:
            one[2].unacked -= 1
        (self.acked if isinstance(method, amqp.BasicAck) else self.rejected).append(one[0].uid)

    def forgotten(self, heard: Counter[int], delivered: Counter[int]) -> list[int]:
        """Messages that a client keeps, though it has not heard of them and has no consumer for them. What it
        gives back in a transaction waits for its end.
        """
        return [
            stored.uid
            for channel in self.channels.values()
            for stored, queue, consumer in channel.unacked.values()
            if heard[stored.uid] < delivered[stored.uid]
            and queue not in self.deleted
            and not channel.is_transactional
            and consumer is not None
            and consumer.tag not in channel.consumers
        ]

    # -- what the target has it do -------------------------------------------------------------------

    def _consumers(self) -> Iterator[Consumer]:
        for channel in self.channels.values():
            yield from channel.consumers.values()

    def delete(self, name: str) -> None:
        """A queue goes, and its consumers are told."""
        queue = self.queues.pop(name, None)
        if queue is None:
            return
        self.deleted.add(name)
        self.dropped.update(one.uid for one in queue.messages)
        self.bindings = {one for one in self.bindings if one[2] != name}
        for consumer in list(self._consumers()):
            if consumer.queue == name:
                del consumer.channel.consumers[consumer.tag]
                self.say(consumer.channel.number, amqp.BasicCancel(consumer.tag))

    def dispatch(self, most: int) -> bool:
        """Send at most so many messages to consumers that have room; whether there was one."""
        sent = 0
        for consumer in list(self._consumers()):
            while (
                sent < most
                and self.queues[consumer.queue].messages
                and (not consumer.prefetch or consumer.unacked < consumer.prefetch)
            ):
                self._deliver(consumer.channel, consumer.queue, consumer)
                sent += 1
        return sent > 0

    def _deliver(self, channel: Channel, queue: str, consumer: Consumer | None) -> None:
        stored = self.queues[queue].messages.pop(0)
        channel.delivered += 1
        tag = channel.delivered
        channel.unacked[tag] = stored, queue, consumer
        method: Method
        if consumer is None:
            method = amqp.BasicGetOk(tag, stored.redelivered, "", queue, 0)
        else:
            consumer.unacked += 1
            method = amqp.BasicDeliver(consumer.tag, tag, stored.redelivered, "", queue)
        frames = content_frames(channel.number, method, amqp.BasicProperties(), stored.body, FRAME_MAX)
        self.out.append((frames, ("delivered", [stored.uid], stored.redelivered)))

    def confirm(self, channel: Channel, index: int, *, multiple: bool, refuses: bool = False) -> None:
        """Confirm one publish, or all up to it."""
        tag, _ = channel.unconfirmed[index]
        meant = channel.unconfirmed[: index + 1] if multiple else [channel.unconfirmed[index]]
        for one in meant:
            channel.unconfirmed.remove(one)
        method = amqp.BasicNack(tag, multiple) if refuses else amqp.BasicAck(tag, multiple)
        what = "nacked" if refuses else "acked"
        self.out.append((method_frame(channel.number, method), (what, [uid for _, uid in meant], False)))
