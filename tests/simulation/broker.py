"""The model broker: queues, deliveries, confirms, written small and apart from the embedded one.

It says only what RabbitMQ would say, and takes from the gateway only what RabbitMQ would take: all else is a
`Violation`, for its clients are honest.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol, TypeAlias

from amqpgate.wire.generated.v0_10 import MessageProperties
from tests.simulation.broker_end import BrokerEnd
from tests.simulation.broker_end_0_10 import BrokerEnd010
from tests.simulation.clock import Clock
from tests.simulation.entries import Delivery, Message
from tests.simulation.held import Channel, Consumer, Waiting
from tests.simulation.ledger import Ledger

End: TypeAlias = BrokerEnd | BrokerEnd010


class Surroundings(Protocol):
    """What it asks of its world."""

    clock: Clock
    ledger: Ledger

    def tell(self, text: str) -> None: ...


class Broker:
    """One node."""

    def __init__(
        self, world: Surroundings, name: str, seed: str, prefix: str = "", version: str = "0-9-1"
    ) -> None:
        """``prefix`` stands before the names of queues, for clients that do not know of it."""
        self.version = version
        self.world, self.name, self.random = world, name, Random(seed)
        self.prefix = prefix
        self.queues: dict[str, deque[Waiting]] = {}
        self.consumers: dict[str, deque[tuple[End, Channel, Consumer]]] = {}
        self.ends: dict[End, None] = {}
        #: Seconds from a message to its confirm, about.
        self.slowness = 0.005
        self.nacking = 0.0
        self.consumed = 0
        #: By the numbers of messages: their properties as they came, where that is more than the ledger has.
        self.stored: dict[int, MessageProperties] = {}

    def accept(self) -> End:
        end = BrokerEnd010(self) if self.version == "0-10" else BrokerEnd(self)
        self.ends[end] = None
        return end

    def die(self) -> None:
        """Its process ends: connections break, what is in queues stays."""
        for end in list(self.ends):
            if end.connection is not None:
                end.connection.reset()
            self.lost(end)

    def lost(self, end: End) -> None:
        """A connection is over: what it held is in its queues again."""
        if self.ends.pop(end, self) is None:
            for channel in list(end.channels.values()):
                self.close(end, channel)

    def close(self, end: End, channel: Channel) -> None:
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
        self.world.ledger.given_back(delivery)
        queue = self.prefix + delivery.queue
        self.queues[queue].appendleft(Waiting(delivery.message, True))
        self.serve(queue)

    def cancel(self, end: End, channel: Channel, consumer: Consumer) -> None:
        consumer.is_over = True
        self.consumers[consumer.queue].remove((end, channel, consumer))

    def has_queue_for(self, message: Message) -> bool:
        """Whether there is one."""
        return self.prefix + message.key.rpartition(".")[2] in self.queues

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
            if consumer.is_full:
                idle += 1
                continue
            idle = 0
            self._deliver(end, channel, consumer)

    def serve_one(self, end: End, channel: Channel, consumer: Consumer) -> None:
        """Deliver now what a consumer may have."""
        while self.queues[consumer.queue] and not consumer.is_full:
            self._deliver(end, channel, consumer)

    def _deliver(self, end: End, channel: Channel, consumer: Consumer) -> None:
        one = self.queues[consumer.queue].popleft()
        channel.tag += 1
        delivery = self.world.ledger.deliver(
            one.message,
            consumer.queue.removeprefix(self.prefix),
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
        end.deliver(channel, consumer, delivery)
