"""The consumers of one channel, as the control plane remembers them (`consumers`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import attrs

from amqpgate.gateway.session.channel_prefetch import ChannelPrefetch
from amqpgate.policy import Operation
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp

#: The queue that stands for direct replies (RabbitMQ's direct reply-to).
REPLIES: Final = "amq.rabbitmq.reply-to"

#: Bytes that are counted of each consumer, beside its own request.
EACH: Final = 512

#: What consumers are: with acks, without.
ACKS: Final = 1
SILENT: Final = 2


@frozen(eq=False)
class SessionConsumer:
    """One consumer that the client has asked for."""

    #: What it was asked for with. Several, where it is not known which: then all must be allowed.
    operations: tuple[Operation, ...]
    byte_count: int
    #: The broker counts what it delivers as acknowledged.
    no_ack: bool

    @property
    def has_plain_tag(self) -> bool:
        """Whether the broker ends it by its tag. RabbitMQ does not, where it is for direct replies."""
        return not any(is_for_replies(operation) for operation in self.operations)


def is_for_replies(operation: Operation) -> bool:
    return (operation.queue or "").startswith(REPLIES)


@define
class ChannelConsumers:
    """The consumers of one channel."""

    tags: dict[str, SessionConsumer] = attrs.field(factory=dict)
    #: Named by the broker, in whose answer the tag will be, in the order asked.
    asked: list[SessionConsumer] = attrs.field(factory=list)
    #: Named by the broker, and not to be answered: nobody knows the tags.
    nameless: list[SessionConsumer] = attrs.field(factory=list)
    #: Cancels that the broker has not answered, by tag, in order: True for the gateway's own whose end the
    #: client must be told, False for those that it need not be told, None for the client's own.
    cancels: dict[str, deque[bool | None]] = attrs.field(factory=dict)
    #: Of these tags, whether the consumers that are cancelled are without acks: they have deliveries until
    #: the broker answers.
    leaving: dict[str, bool] = attrs.field(factory=dict)
    #: There are more consumers, or unanswered cancels, than are remembered.
    has_more: bool = False
    #: One of those that were asked for is not allowed any more, and must be cancelled once it has a name.
    awaits_name: bool = False
    #: To be judged once the client's message that is under way has ended.
    due: bool = False
    #: Of all that were asked for: `ACKS`, `SILENT`, or both.
    kinds: int = 0
    #: The data path counts what is delivered, since it is to be acknowledged.
    acks: bool = False
    #: None: their limits are the broker's alone.
    prefetch: ChannelPrefetch | None = None

    def __iter__(self) -> Iterator[SessionConsumer]:
        yield from self.tags.values()
        yield from self.nameless
        yield from self.asked

    @property
    def count(self) -> int:
        """How many are remembered."""
        return len(self.tags) + len(self.nameless) + len(self.asked)

    @property
    def byte_count(self) -> int:
        """What is remembered, at most."""
        return sum(consumer.byte_count for consumer in self) + EACH * len(self.cancels)

    @property
    def cancels_due(self) -> int:
        """How many cancels are remembered that the broker has not answered."""
        return sum(map(len, self.cancels.values()))

    def limit_by(self, prefetch: ChannelPrefetch) -> None:
        """Their limits are kept here from now on."""
        self.prefetch = prefetch

    def cancel(self, method: amqp.BasicCancel) -> amqp.BasicCancel:
        """What the broker is told to end one."""
        return method if self.prefetch is None else self.prefetch.cancel(method)

    def add(self, consumer: SessionConsumer, tag: str, *, is_answered: bool) -> None:
        """The client asks for one more."""
        if tag:
            self.tags[tag] = consumer
        elif is_answered:
            self.asked.append(consumer)
        else:
            self.nameless.append(consumer)

    def too_many(self) -> None:
        """No more of them are remembered from now on, and none is cancelled any more by the gateway."""
        self.has_more = True

    def review_later(self) -> None:
        """They are judged once the client's message that is under way has ended."""
        self.due = True

    def reviewed(self) -> None:
        """They are judged now, or need not be."""
        self.due = False

    def cancel_named(self, *, is_one_nameless: bool) -> None:
        """Those that are not allowed are cancelled, but for one that has no name yet, if there is one."""
        self.awaits_name = is_one_nameless

    def add_kind(self, kind: int) -> None:
        """One more is asked for, with acks or without."""
        self.kinds |= kind

    def count_acks(self) -> None:
        """The data path counts what is delivered from now on."""
        self.acks = True

    def name(self, tag: str) -> None:
        """The broker has answered a consume."""
        if tag in self.tags or not self.asked:
            return
        # RabbitMQ answers in order, but for direct replies, which it answers at once.
        kinds = {is_for_replies(one) for consumer in self.asked for one in consumer.operations}
        if len(kinds) > 1:
            every = tuple([one for consumer in self.asked for one in consumer.operations])
            no_ack = any(consumer.no_ack for consumer in self.asked)
            self.asked = [SessionConsumer(every, consumer.byte_count, no_ack) for consumer in self.asked]
        self.tags[tag] = self.asked.pop(0)

    def queue_of(self, tag: str) -> str | None:
        """The queue of a consumer, by the client's name; None: it is not known which."""
        consumer = self.tags.get(tag)
        if consumer is None or len(consumer.operations) != 1:
            return None
        return consumer.operations[0].queue

    def is_acked(self, tag: str) -> bool:
        """Whether the broker counts what it sends as acknowledged. Also where that is not known."""
        consumer = self.tags.get(tag)
        if consumer is not None:
            return consumer.no_ack
        return self.leaving.get(tag, self.kinds != ACKS)

    def cancelling(self, tag: str, whose: bool | None) -> None:
        """The broker is asked to end one, and will answer; ``whose`` is a value of `cancels`."""
        consumer = self.tags.pop(tag, None)
        if consumer is not None:
            self.leaving[tag] = consumer.no_ack
        if whose is None:
            self.gone(tag)
        self.cancels.setdefault(tag, deque()).append(whose)

    def cancel_answered(self, tag: str) -> bool | None:
        """The broker has: a value of `cancels`."""
        due = self.cancels[tag]
        whose = due.popleft()
        if not due:
            del self.cancels[tag]
            self.leaving.pop(tag, None)
        return whose

    def gone(self, tag: str) -> None:
        """The consumer is no more, and the client knows."""
        self.tags.pop(tag, None)
        due = self.cancels.get(tag)
        if due is not None:
            self.cancels[tag] = deque(None if one is None else False for one in due)
