"""Queues: messages in order, and consumers in turn.

A message keeps its position for as long as it is in the queue or delivered without an ack: one that is
requeued goes back to where it was, before all that were published after it.

Consumers take turns. One that cannot take a message (prefetch reached, client does not read) steps out
of the round until its channel says that it can again, and then stands at the end of it. Consumers of a
higher ``x-priority`` go first as long as they can take any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Protocol

from attrs import define, field

from amqpgate.broker.messages import BrokerMessage, Memory
from amqpgate.wire.tables import EMPTY_TABLE, Table


class QueueSubscriber(Protocol):
    """What a queue asks of the channel that consumes from it."""

    def may_receive(self, consumer: BrokerConsumer) -> bool:
        """Whether the consumer can take one more message now."""

    def deliver(self, consumer: BrokerConsumer, entry: Entry) -> None:
        """Take one message."""

    def held_back(self, queue: BrokerQueue) -> None:
        """A consumer of the channel could not take a message; call ``queue.unblock`` when it can."""

    def lost(self, tags: list[str]) -> None:
        """The queue of these consumers is gone."""


@define(eq=False)
class BrokerConsumer:
    """One consumer of one queue."""

    subscriber: QueueSubscriber
    tag: str
    queue: BrokerQueue
    no_ack: bool = False
    exclusive: bool = False
    #: Messages without an ack that it may have at once; 0 is no limit.
    prefetch: int = 0
    priority: int = 0
    #: Messages without an ack that it has.
    unsettled: int = 0

    @property
    def has_credit(self) -> bool:
        """Whether its own prefetch lets it have one more."""
        return self.no_ack or not self.prefetch or self.unsettled < self.prefetch


@define(order=True)
class Entry:
    """A message in a queue, or delivered from it; entries are compared by position."""

    position: int
    message: BrokerMessage = field(order=False)
    redelivered: bool = field(default=False, order=False)


@define(eq=False)
class BrokerQueue:
    """One queue. ``owner`` is the connection that it is exclusive to."""

    name: str
    memory: Memory
    durable: bool = False
    auto_delete: bool = False
    owner: object | None = None
    arguments: Table = EMPTY_TABLE
    is_deleted: bool = False
    _next_position: int = 0
    #: Never delivered.
    _fresh: deque[Entry] = field(factory=deque)
    #: Back again, a heap; all of these come before all fresh ones.
    _returned: list[Entry] = field(factory=list)
    #: By falling priority: who is in the round.
    _round: dict[int, deque[BrokerConsumer]] = field(factory=dict)
    _blocked: list[BrokerConsumer] = field(factory=list)

    def __len__(self) -> int:
        """How many messages are ready."""
        return len(self._fresh) + len(self._returned)

    # Messages.

    def publish(self, message: BrokerMessage) -> None:
        """Add a message at the end."""
        self.memory.hold(message)
        self._fresh.append(Entry(self._next_position, message))
        self._next_position += 1

    def take(self) -> Entry | None:
        """The first message, which its taker must ``requeue`` or ``drop``."""
        if self._returned:
            return heappop(self._returned)
        return self._fresh.popleft() if self._fresh else None

    def requeue(self, entry: Entry) -> None:
        """Put a message back to its place (or nowhere, if the queue has been deleted)."""
        if self.is_deleted:
            self.drop(entry)
            return
        entry.redelivered = True
        heappush(self._returned, entry)

    def drop(self, entry: Entry) -> None:
        """A message that was taken is done with."""
        self.memory.release(entry.message)

    def purge(self) -> int:
        """Drop all messages that are ready; how many there were."""
        count = len(self)
        for entry in (*self._returned, *self._fresh):
            self.memory.release(entry.message)
        self._returned.clear()
        self._fresh.clear()
        return count

    # Consumers.

    @property
    def consumers(self) -> list[BrokerConsumer]:
        """All consumers, in the round or not."""
        return [*self._in_round(), *self._blocked]

    @property
    def is_unused(self) -> bool:
        """Whether there are no consumers."""
        return not self._blocked and not any(self._round.values())

    @property
    def has_exclusive_consumer(self) -> bool:
        """Whether a consumer wants it for itself."""
        return any(consumer.exclusive for consumer in self.consumers)

    def add(self, consumer: BrokerConsumer) -> None:
        """A new consumer joins the end of the round."""
        if consumer.priority not in self._round:
            self._round[consumer.priority] = deque()
            self._round = dict(sorted(self._round.items(), reverse=True))
        self._round[consumer.priority].append(consumer)

    def remove(self, consumer: BrokerConsumer) -> None:
        """A consumer leaves."""
        if consumer in self._blocked:
            self._blocked.remove(consumer)
            return
        round_ = self._round[consumer.priority]
        round_.remove(consumer)
        if not round_:
            del self._round[consumer.priority]

    def unblock(self, subscriber: QueueSubscriber) -> bool:
        """Let the channel's consumers that have credit join the round again; False if some still wait."""
        waiting: list[BrokerConsumer] = []
        done = True
        for consumer in self._blocked:
            if consumer.subscriber is not subscriber:
                waiting.append(consumer)
            elif consumer.has_credit:
                self.add(consumer)
            else:
                waiting.append(consumer)
                done = False
        self._blocked = waiting
        return done

    def run(self) -> None:
        """Deliver as much as there is, and as the consumers can take."""
        while len(self):
            consumer = self._next_consumer()
            if consumer is None:
                return
            entry = self.take()
            assert entry is not None
            consumer.subscriber.deliver(consumer, entry)

    def delete(self) -> int:
        """Drop everything and tell the consumers; how many messages were ready."""
        self.is_deleted = True
        tags: dict[QueueSubscriber, list[str]] = {}
        for consumer in self.consumers:
            tags.setdefault(consumer.subscriber, []).append(consumer.tag)
        self._round.clear()
        self._blocked.clear()
        for subscriber, lost in tags.items():
            subscriber.lost(sorted(lost))
        return self.purge()

    def _in_round(self) -> Iterator[BrokerConsumer]:
        for round_ in self._round.values():
            yield from round_

    def _next_consumer(self) -> BrokerConsumer | None:
        for priority, round_ in list(self._round.items()):
            while round_:
                consumer = round_.popleft()
                if consumer.subscriber.may_receive(consumer):
                    round_.append(consumer)
                    return consumer
                self._blocked.append(consumer)
                consumer.subscriber.held_back(self)
            del self._round[priority]
        return None
