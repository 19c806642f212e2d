"""One channel of the scripted broker: consumers, publishes, settlements, transactions."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from amqpgate.conformance.client.line import ClientLine
from amqpgate.conformance.client.outbox import FULL
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.client.store import MOST_BYTES, BrokerStore, HeldMessage, HeldQueue
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.method import Method


class ChannelRefusal(Exception):
    """Ends the channel."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@attrs.define(eq=False)
class ServedConsumer:
    """A reader of a queue."""

    channel: ServedChannel
    tag: str
    queue: HeldQueue
    no_ack: bool
    prefetch: int
    unsettled: int = 0

    @property
    def has_room(self) -> bool:
        """Neither its prefetch nor its client's socket is full."""
        if self.channel.line.outbox.size > FULL or not self.channel.is_active:
            return False
        return self.no_ack or not self.prefetch or self.unsettled < self.prefetch

    def take(self, queue: HeldQueue, message: HeldMessage) -> None:
        """Deliver a message."""
        self.channel.deliver(self, message)


@attrs.define(eq=False)
class UnsettledDelivery:
    """A delivery that waits for its ack."""

    queue: HeldQueue
    message: HeldMessage
    consumer: ServedConsumer | None


@attrs.define(eq=False)
class PublishUnderWay:
    """A publish whose content is not whole yet."""

    method: v0_9_1.BasicPublish
    header: ContentHeader | None = None
    body: bytearray = attrs.field(factory=bytearray)

    @property
    def is_whole(self) -> bool:
        """Whether all of it is here."""
        return self.header is not None and len(self.body) >= self.header.body_size


@attrs.define(eq=False)
class ServedChannel:
    """One, from open to close."""

    number: int
    line: ClientLine
    scenario: Scenario
    store: BrokerStore
    last_tag: int
    is_active: bool = True
    prefetch: int = 0
    consumers: dict[str, ServedConsumer] = attrs.field(factory=dict)
    unsettled: dict[int, UnsettledDelivery] = attrs.field(factory=dict)
    #: Publishes so far; None: without confirms.
    confirmed: int | None = None
    #: What the commit of a transaction will do; None: there is none.
    transaction: list[Callable[[], None]] | None = None
    under_way: PublishUnderWay | None = None

    def say(self, *said: Method) -> None:
        """On this channel."""
        self.line.say(self.number, *said)

    # -- out -------------------------------------------------------------------------------------------------

    def deliver(self, consumer: ServedConsumer, message: HeldMessage) -> None:
        """To a consumer."""
        tag = self._tag(consumer.queue, message, consumer, no_ack=consumer.no_ack)
        said = self.line.method(
            "BasicDeliver",
            consumer_tag=consumer.tag,
            delivery_tag=tag,
            redelivered=message.is_redelivered,
            exchange=message.exchange,
            routing_key=message.routing_key,
        )
        self._send(said, message)

    def get(self, queue: HeldQueue, *, no_ack: bool) -> None:
        """Answer basic.get with a message."""
        message = queue.next()
        tag = self._tag(queue, message, None, no_ack=no_ack)
        said = self.line.method(
            "BasicGetOk",
            delivery_tag=tag,
            redelivered=message.is_redelivered,
            exchange=message.exchange,
            routing_key=message.routing_key,
            message_count=len(queue.messages),
        )
        self._send(said, message)

    def _tag(
        self, queue: HeldQueue, message: HeldMessage, consumer: ServedConsumer | None, *, no_ack: bool
    ) -> int:
        self.last_tag += 1
        if not no_ack:
            self.unsettled[self.last_tag] = UnsettledDelivery(queue, message, consumer)
            if consumer is not None:
                consumer.unsettled += 1
        watched = self.line.watch.channels.get(self.number)
        if watched is not None:
            watched.delivered(self.last_tag, no_ack=no_ack)
        return self.last_tag

    def _send(self, said: Method, message: HeldMessage) -> None:
        said, properties, body = self.scenario.delivers(said, message.properties, message.body)
        frames = self.line.content(self.number, said, properties, body)
        self.line.outbox.put(self.number, *self.scenario.frames(self.line, self.number, frames))

    # -- in --------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """The publish under way is whole."""
        assert self.under_way is not None
        assert self.under_way.header is not None
        said, header, body = self.under_way.method, self.under_way.header, bytes(self.under_way.body)
        self.under_way = None
        if said.exchange not in self.store.exchanges:
            raise ChannelRefusal(404, f"NOT_FOUND - no exchange '{said.exchange}'")
        if self.store.is_full:
            raise ChannelRefusal(506, f"RESOURCE_ERROR - {MOST_BYTES} bytes wait in queues")
        if self.transaction is not None:
            self.transaction.append(lambda: self._publish(said, header, body))
            return
        self._publish(said, header, body)
        if self.confirmed is not None:
            self.confirmed += 1
            self.say(*self.scenario.confirms(self.line, self.number, self.confirmed))

    def _publish(self, said: v0_9_1.BasicPublish, header: ContentHeader, body: bytes) -> None:
        queues = self.store.route(said.exchange, said.routing_key, header.properties)
        if not queues and said.mandatory:
            self.give_back(said, header, body)
        for queue in queues:
            queue.put(HeldMessage(said.exchange, said.routing_key, header.properties, body))
            queue.deliver()

    def give_back(self, said: v0_9_1.BasicPublish, header: ContentHeader, body: bytes) -> None:
        """basic.return."""
        returned = self.line.method(
            "BasicReturn",
            reply_code=312,
            reply_text="NO_ROUTE",
            exchange=said.exchange,
            routing_key=said.routing_key,
        )
        frames = self.line.content(self.number, returned, header.properties, body)
        self.line.outbox.put(self.number, *self.scenario.returns(self.line, self.number, frames))

    def settle(self, tag: int, *, multiple: bool, requeue: bool) -> None:
        """Of one delivery, or of all up to it."""
        if self.transaction is not None:
            self.transaction.append(lambda: self._settle(tag, multiple=multiple, requeue=requeue))
            return
        self._settle(tag, multiple=multiple, requeue=requeue)

    def _settle(self, tag: int, *, multiple: bool, requeue: bool) -> None:
        tags = [one for one in self.unsettled if not tag or one <= tag] if multiple else [tag]
        if not (multiple and not tag) and tag not in self.unsettled:
            raise ChannelRefusal(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")
        queues = {}
        for one in reversed(tags):
            found = self.unsettled.pop(one)
            queues[id(found.queue)] = found.queue
            if found.consumer is not None:
                found.consumer.unsettled -= 1
                queues[id(found.consumer.queue)] = found.consumer.queue
            if requeue:
                found.queue.put_back(found.message)
        for queue in queues.values():
            queue.deliver()

    def requeue_all(self) -> None:
        """basic.recover, and the end of the channel."""
        self._settle(0, multiple=True, requeue=True)

    def cancel(self, tag: str) -> bool:
        """Whether there was such a consumer."""
        consumer = self.consumers.pop(tag, None)
        if consumer is None:
            return False
        consumer.queue.readers.remove(consumer)
        return True

    def close(self) -> None:
        """Its consumers end, and what is not settled goes back."""
        for tag in list(self.consumers):
            self.cancel(tag)
        self.transaction = None
        self.requeue_all()
