"""The consumers that a session has on channel "main", by their tags.

Tags are numbers, for a destination may be any bytes. A letter is before each: a quorum queue of RabbitMQ
takes basic.get for a consumer whose tag is the text of the delivery tag, and where it has a consumer of that
tag it answers that it is empty.
"""

from __future__ import annotations

from attrs import define, field

from amqpgate.bridge.v0_10.channels import ChannelUse
from amqpgate.bridge.v0_10.deliveries import Consumer
from amqpgate.bridge.v0_10.steps import Call, Part, Steps
from amqpgate.bridge.v0_10.subscription import Subscription
from amqpgate.wire.generated import v0_9_1 as amqp


@define(eq=False)
class SessionConsumers:
    """See the module."""

    _by_tag: dict[str, tuple[Subscription, Consumer]] = field(factory=dict, init=False)
    #: How many there were.
    _count: int = field(default=0, init=False)

    def at(self, tag: str) -> tuple[Subscription, Consumer] | tuple[None, None]:
        """Who gets what comes with that tag; nobody if it has ended."""
        return self._by_tag.get(tag, (None, None))

    def lose(self, tag: str) -> Subscription | None:
        """The broker has ended it, for its queue was deleted. Whose it was."""
        subscription, consumer = self._by_tag.pop(tag, (None, None))
        if subscription is not None and consumer is not None:
            subscription.lose(consumer)
        return subscription

    def begin(self, subscription: Subscription, *, awaits: bool = False) -> Steps:
        """A consumer, in place of the one that there is; ``awaits``: as `end` of that."""
        last = subscription.consumer
        self._count += 1
        consumer = Consumer(f"c{self._count}", subscription.prefetch())
        yield Call(ChannelUse.MAIN, amqp.BasicQos(prefetch_count=consumer.prefetch))
        self._by_tag[consumer.tag] = subscription, consumer
        # The last one ends only now: a queue without consumers may be deleted.
        yield Call(ChannelUse.MAIN, subscription.consume(consumer))
        subscription.stop_inheriting()
        if last is not None:
            yield from self.end(last, awaits=awaits)
        return None

    def end(self, consumer: Consumer, *, awaits: bool = False) -> Part[None]:
        """``awaits``: what the broker had taken from the queue by then, which may come behind its answer."""
        yield Call(ChannelUse.MAIN, amqp.BasicCancel(consumer.tag))
        if awaits:
            yield Call(ChannelUse.MAIN, amqp.BasicQos(prefetch_count=consumer.prefetch))
        self._by_tag.pop(consumer.tag, None)
