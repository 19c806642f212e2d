"""The model broker: queues, deliveries, confirms, written small and apart from the embedded one.

It says only what RabbitMQ would say, and takes from the gateway only what RabbitMQ would take: all else is a
`Violation`, for its clients are honest.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.simulation.broker_end import BrokerEnd
from tests.simulation.clock import Clock
from tests.simulation.entries import Delivery, Message
from tests.simulation.held import Channel, Consumer, Waiting
from tests.simulation.ledger import Ledger


class Surroundings(Protocol):
    """What it asks of its world."""

    clock: Clock
    ledger: Ledger

    def tell(self, text: str) -> None: ...


class Broker:
    """One node."""

    def __init__(self, world: Surroundings, name: str, seed: str, prefix: str = "") -> None:
        """``prefix`` stands before the names of queues, for clients that do not know of it."""
        self.world, self.name, self.random = world, name, Random(seed)
        self.prefix = prefix
        self.queues: dict[str, deque[Waiting]] = {}
        self.consumers: dict[str, deque[tuple[BrokerEnd, Channel, Consumer]]] = {}
        self.ends: dict[BrokerEnd, None] = {}
        #: Seconds from a message to its confirm, about.
        self.slowness = 0.005
        self.nacking = 0.0
        self.consumed = 0

    def accept(self) -> BrokerEnd:
        end = BrokerEnd(self)
        self.ends[end] = None
        return end

    def die(self) -> None:
        """Its process ends: connections break, what is in queues stays."""
        for end in list(self.ends):
            if end.connection is not None:
                end.connection.reset()
            self.lost(end)

    def lost(self, end: BrokerEnd) -> None:
        """A connection is over: what it held is in its queues again."""
        if self.ends.pop(end, self) is None:
            for channel in list(end.channels.values()):
                self.close(end, channel)

    def close(self, end: BrokerEnd, channel: Channel) -> None:
        """A channel is over."""
        for consumer in channel.consumers.values():
            self.cancel(end, channel, consumer)
        channel.consumers.clear()
        back = {tag: delivery for tag, (delivery, _) in channel.held.items()}
        back |= {tag: delivery for tag, delivery, _, _ in channel.answers}
        channel.held.clear()
        channel.answers.clear()
        for _tag, delivery in sorted(back.items(), reverse=True):
            self.put_back(delivery)

    def put_back(self, delivery: Delivery) -> None:
        self.world.ledger.over(delivery)
        queue = self.prefix + delivery.queue
        self.queues[queue].appendleft(Waiting(delivery.message, True))
        self.serve(queue)

    def cancel(self, end: BrokerEnd, channel: Channel, consumer: Consumer) -> None:
        consumer.is_over = True
        self.consumers[consumer.queue].remove((end, channel, consumer))

    def route(self, message: Message) -> bool:
        """Whether there is a queue for it."""
        queue = self.prefix + message.key.rpartition(".")[2]
        if queue not in self.queues:
            return False
        self.queues[queue].append(Waiting(message))
        self.serve(queue)
        return True

    def serve(self, queue: str) -> None:
        """Deliver what can be delivered, soon."""
        if self.consumers.get(queue):
            self.world.clock.after(0.0002, lambda: self._serve(queue))

    def _serve(self, queue: str) -> None:
        waiting, consumers = self.queues[queue], self.consumers[queue]
        idle = 0
        while waiting and consumers and idle < len(consumers):
            end, channel, consumer = consumers[0]
            consumers.rotate(-1)
            if consumer.prefetch and consumer.held >= consumer.prefetch:
                idle += 1
                continue
            idle = 0
            one = waiting.popleft()
            channel.tag += 1
            delivery = self.world.ledger.deliver(
                one.message,
                queue.removeprefix(self.prefix),
                consumer.source,
                channel.tag,
                redelivered=one.redelivered,
                no_ack=consumer.no_ack,
            )
            if consumer.no_ack:
                self.consumed += 1
            else:
                consumer.held += 1
                channel.held[channel.tag] = delivery, consumer
            end.send_content(
                channel.number,
                amqp.BasicDeliver(
                    consumer.tag,
                    channel.tag,
                    one.redelivered,
                    self.world.ledger.exchange_of(one.message),
                    one.message.key,
                ),
                self.world.ledger.content_of(delivery),
            )
