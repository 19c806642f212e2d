"""The receiving half of a channel: consumers, deliveries without an ack, prefetch.

Section 1.8 of AMQP 0-9-1, class basic, with RabbitMQ's consumer priorities, consumer cancel notifications
and per-consumer prefetch. ``no_local`` is ignored, as RabbitMQ ignores it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import define, field, frozen

from amqpgate.broker.agenda import Agenda
from amqpgate.broker.arguments import check_consumer_arguments, priority_of
from amqpgate.broker.limiter import Limiter
from amqpgate.broker.messages import BrokerMessage
from amqpgate.broker.peers import Peer
from amqpgate.broker.queues import BrokerConsumer, BrokerQueue, Entry
from amqpgate.broker.replies import Replies, ReplyConsumer
from amqpgate.broker.vhost import REPLY_TO, VirtualHost, server_made_name
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp


class DeliveryOutcome(Enum):
    """What becomes of a message that was delivered."""

    #: Acked, or rejected for good (there is no dead lettering): gone.
    DONE = "done"
    #: Back to its place in the queue.
    REQUEUED = "requeued"


@frozen(eq=False)
class Delivery:
    """A message that waits for its ack; without consumer if it was fetched with basic.get."""

    tag: int
    queue: BrokerQueue
    entry: Entry
    consumer: BrokerConsumer | None


@define(eq=False, repr=False)
class Consuming:
    """One channel's consumers and deliveries."""

    number: int
    peer: Peer
    vhost: VirtualHost
    agenda: Agenda
    replies: Replies
    is_closed: bool = False
    reply_consumer: ReplyConsumer | None = None
    limiter: Limiter = field(factory=Limiter)
    #: By delivery tag, which is in the order of delivery.
    unacked: dict[int, Delivery] = field(factory=dict)
    _consumers: dict[str, BrokerConsumer] = field(factory=dict)
    #: Prefetch of consumers to come.
    _prefetch: int = 0
    _next_tag: int = 1
    #: Queues in which a consumer of ours waits until it may receive again.
    _held_back_in: dict[BrokerQueue, None] = field(factory=dict)

    # What the client asks for.

    def qos(self, method: amqp.BasicQos) -> None:
        """basic.qos: per consumer (those to come), or for the channel. 540 for a prefetch_size."""
        if method.prefetch_size:
            raise ProtocolViolation(540, f"prefetch_size!=0 ({method.prefetch_size})")
        if method.global_:
            self.limiter.set(method.prefetch_count, len(self.unacked))
        else:
            self._prefetch = method.prefetch_count
            # RabbitMQ: the one kind of limit takes the place of the other.
            self.limiter.set(0, 0)
        self.peer.send(self.number, amqp.BasicQosOk())
        self.resume()

    def consume(self, method: amqp.BasicConsume, name: str) -> None:
        """basic.consume on the queue ``name``. 403 (exclusive use), 404, 405, 406, 530 (tag in use)."""
        if name == REPLY_TO:
            self._consume_replies(method)
            return
        self._check_tag(method.consumer_tag)
        queue = self.vhost.queue(name, self.peer)
        where = self.vhost.describe("queue", name)
        check_consumer_arguments(method.arguments, where)
        if queue.has_exclusive_consumer or (method.exclusive and not queue.is_unused):
            raise ProtocolViolation(403, f"{where} in exclusive use")
        consumer = BrokerConsumer(
            subscriber=self,
            tag=method.consumer_tag or server_made_name("amq.ctag"),
            queue=queue,
            no_ack=method.no_ack,
            exclusive=method.exclusive,
            prefetch=self._prefetch,
            priority=priority_of(method.arguments),
        )
        self._consumers[consumer.tag] = consumer
        queue.add(consumer)
        if not method.no_wait:
            self.peer.send(self.number, amqp.BasicConsumeOk(consumer.tag))
        self.agenda.run(queue)

    def _consume_replies(self, method: amqp.BasicConsume) -> None:
        self._check_tag(method.consumer_tag)
        if not method.no_ack:
            raise ProtocolViolation(406, "reply consumer cannot acknowledge")
        if self.reply_consumer is not None:
            raise ProtocolViolation(406, "reply consumer already set")
        tag = method.consumer_tag or server_made_name("amq.ctag")
        self.reply_consumer = ReplyConsumer(tag)
        self.replies.add(self.reply_consumer.name, self._reply)
        if not method.no_wait:
            self.peer.send(self.number, amqp.BasicConsumeOk(tag))

    def _check_tag(self, tag: str) -> None:
        if tag in self._consumers:
            raise ProtocolViolation(530, f"attempt to reuse consumer tag '{tag}'")

    def cancel(self, method: amqp.BasicCancel) -> None:
        """basic.cancel; a tag that nobody has is fine."""
        tag = method.consumer_tag
        if not method.no_wait:
            self.peer.send(self.number, amqp.BasicCancelOk(tag))
        if self.reply_consumer is not None and self.reply_consumer.tag == tag:
            self._drop_reply_consumer()
            return
        consumer = self._consumers.pop(tag, None)
        if consumer is not None:
            consumer.queue.remove(consumer)
            self._drop_if_done(consumer.queue)

    def get(self, method: amqp.BasicGet, name: str) -> None:
        """basic.get from the queue ``name``. 404, 405."""
        queue = self.vhost.queue(name, self.peer)
        entry = queue.take()
        if entry is None:
            self.peer.send(self.number, amqp.BasicGetEmpty())
            return
        tag = self._record(queue, entry, None, method.no_ack)
        message = entry.message
        self.peer.send_content(
            self.number,
            amqp.BasicGetOk(tag, entry.redelivered, message.exchange, message.routing_key, len(queue)),
            message.properties,
            message.body,
        )

    def collect(self, tag: int, multiple: bool) -> list[Delivery]:
        """Take the deliveries that an ack, nack or reject is about. 406 if there is no such tag."""
        if multiple and tag == 0:
            tags = list(self.unacked)
        elif tag not in self.unacked:
            raise ProtocolViolation(406, f"unknown delivery tag {tag}")
        elif not multiple:
            tags = [tag]
        else:
            tags = []
            for waiting in self.unacked:
                if waiting > tag:
                    break
                tags.append(waiting)
        return [self.unacked.pop(waiting) for waiting in tags]

    def settle(self, deliveries: Iterable[Delivery], outcome: DeliveryOutcome) -> None:
        """Do with the messages as asked, and let consumers go on that may."""
        to_consumers = 0
        for delivery in deliveries:
            queue = delivery.queue
            if delivery.consumer is not None:
                delivery.consumer.unsettled -= 1
                to_consumers += 1
            if outcome is DeliveryOutcome.REQUEUED and not queue.is_deleted:
                queue.requeue(delivery.entry)
                self.agenda.run(queue)
            else:
                queue.drop(delivery.entry)
        self.limiter.settled(to_consumers)
        self.resume()

    def recover(self, requeue: bool) -> None:
        """basic.recover: requeue all that has no ack. 540 for ``requeue`` false."""
        if not requeue:
            raise ProtocolViolation(540, "requeue=false")
        self.settle(self.collect(0, multiple=True), DeliveryOutcome.REQUEUED)

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """tx.rollback: acks that were not to be."""
        for delivery in deliveries:
            self.unacked[delivery.tag] = delivery
        self.unacked = dict(sorted(self.unacked.items()))

    # What queues do.

    def may_receive(self, consumer: BrokerConsumer) -> bool:
        return consumer.has_credit and not self._is_stopped

    def deliver(self, consumer: BrokerConsumer, entry: Entry) -> None:
        tag = self._record(consumer.queue, entry, consumer, consumer.no_ack)
        message = entry.message
        self.peer.send_content(
            self.number,
            amqp.BasicDeliver(consumer.tag, tag, entry.redelivered, message.exchange, message.routing_key),
            message.properties,
            message.body,
        )

    def held_back(self, queue: BrokerQueue) -> None:
        self._held_back_in[queue] = None

    def lost(self, tags: list[str]) -> None:
        for tag in tags:
            self._consumers.pop(tag, None)
        self.agenda.later(lambda: self._notify(tags))

    def _notify(self, tags: list[str]) -> None:
        if self.peer.wants_cancel and not self.is_closed:
            for tag in tags:
                self.peer.send(self.number, amqp.BasicCancel(tag, no_wait=True))

    def _reply(self, message: BrokerMessage) -> None:
        """A message for the reply consumer. It has no delivery tag of its own, and nobody waits for it."""
        if self.reply_consumer is None or self.is_closed or self.peer.is_overloaded:
            return
        self.peer.send_content(
            self.number,
            amqp.BasicDeliver(
                self.reply_consumer.tag, self._next_tag, False, message.exchange, message.routing_key
            ),
            message.properties,
            message.body,
        )

    def resume(self) -> None:
        """Consumers that had to wait may go on, if nothing stops the channel."""
        if self._is_stopped:
            return
        for queue in list(self._held_back_in):
            if queue.unblock(self):
                del self._held_back_in[queue]
            self.agenda.run(queue)

    def close(self) -> None:
        """The channel is gone: consumers leave, messages without an ack go back."""
        self.is_closed = True
        self._drop_reply_consumer()
        queues = {consumer.queue: None for consumer in self._consumers.values()}
        for consumer in self._consumers.values():
            consumer.queue.remove(consumer)
        self._consumers.clear()
        for queue in queues:
            self._drop_if_done(queue)
        self.settle(self.collect(0, multiple=True), DeliveryOutcome.REQUEUED)

    @property
    def _is_stopped(self) -> bool:
        return self.is_closed or self.limiter.is_reached or self.peer.is_congested

    def _record(self, queue: BrokerQueue, entry: Entry, consumer: BrokerConsumer | None, no_ack: bool) -> int:
        tag = self._next_tag
        self._next_tag += 1
        if no_ack:
            queue.drop(entry)
        else:
            self.unacked[tag] = Delivery(tag, queue, entry, consumer)
            if consumer is not None:
                consumer.unsettled += 1
                self.limiter.delivered()
        return tag

    def _drop_reply_consumer(self) -> None:
        if self.reply_consumer is not None:
            self.replies.discard(self.reply_consumer.name)
            self.reply_consumer = None

    def _drop_if_done(self, queue: BrokerQueue) -> None:
        if queue.auto_delete and queue.is_unused:
            self.vhost.drop_queue(queue)
