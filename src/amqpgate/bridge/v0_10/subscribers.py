"""Who has subscribed to which queue in one connection, with credit or without.

A subscription without credit has no consumer with a broker of 0-9-1, for that would get messages. To 0-10 it
is one all the same: a queue that has it is in use, and nobody else may have that for its own. What other
connections have without credit is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from attrs import define, field

from amqpgate.bridge.v0_10.steps import Part, Wait
from amqpgate.bridge.v0_10.subscription import Subscription
from amqpgate.bridge.v0_10.topology import KnownTopology
from amqpgate.errors import ProtocolViolation

#: Subscriptions that are asked whether they have a consumer. Beyond that a queue may get one too many, and
#: fewer are counted.
MOST_LOOKED_AT: Final = 64


@define(eq=False)
class Subscribers:
    """See the module."""

    topology: KnownTopology
    #: With what wakes the session of each, so that it has a consumer.
    _by_queue: dict[str, dict[Subscription, Callable[[Subscription], None]]] = field(factory=dict, init=False)
    #: Of sessions that do nothing more.
    _retired: set[Subscription] = field(factory=set, init=False)
    _is_waited_for: bool = field(default=False, init=False)

    def join(self, subscription: Subscription, wake: Callable[[Subscription], None]) -> None:
        """One more; ``wake`` is called if it is to have a consumer.

        Violation 405 if it, or one that is there, is exclusive.
        """
        others = self._by_queue.get(subscription.queue, {})
        # One that is exclusive is the only one.
        if others and (subscription.is_exclusive or next(iter(others)).is_exclusive):
            raise ProtocolViolation(405, f"queue {subscription.queue!r} has a subscription that is exclusive")
        self._by_queue.setdefault(subscription.queue, {})[subscription] = wake

    def leave(self, subscription: Subscription) -> bool:
        """It has ended. Whether its queue should end with it, and the broker does not know."""
        others = self._by_queue[subscription.queue]
        others.pop(subscription)
        self._retired.discard(subscription)
        subscription.stop_inheriting()
        if others:
            return False
        del self._by_queue[subscription.queue]
        is_unknown = subscription.consumer is None and not subscription.is_gone
        known = self.topology.queue(subscription.queue)
        return is_unknown and known is not None and known.ends_unused

    def retire(self, subscription: Subscription) -> None:
        """It gets no consumer any more."""
        self._retired.add(subscription)
        subscription.stop_inheriting()

    def is_shared(self, subscription: Subscription, mine: Collection[Subscription]) -> bool:
        """Whether its queue has others than ``mine``."""
        return any(other not in mine for other in self._by_queue[subscription.queue])

    def heir(self, leaving: Subscription, mine: Collection[Subscription]) -> Subscription | None:
        """Who is to have a consumer before ``leaving`` loses its own, with those of ``mine``; None if nobody
        needs one, for the queue stays or has another, or nobody can have one.
        """
        known = self.topology.queue(leaving.queue)
        if known is None or not known.ends_unused:
            return None
        others = (one for one in self._by_queue[leaving.queue] if one not in mine and one is not leaving)
        looked_at = [one for one in islice(others, MOST_LOOKED_AT) if not one.is_gone]
        if any(one.consumer is not None for one in looked_at):
            return None
        return next((one for one in looked_at if one not in self._retired), None)

    def hand_over(self, heir: Subscription) -> Part[None]:
        """Have it get a consumer in its own session, and wait for that.

        One session waits at a time, for two might wait for each other.
        """
        heir.inherit()
        self._by_queue[heir.queue][heir](heir)
        if self._is_waited_for:
            return
        self._is_waited_for = True
        try:
            yield Wait(lambda: not heir.is_heir)
        finally:
            self._is_waited_for = False

    def may_rest(self, subscription: Subscription) -> bool:
        """Whether it has a consumer and no credit, and its queue is known to outlive that."""
        known = self.topology.queue(subscription.queue)
        is_idle = subscription.consumer is not None and not subscription.credit.is_there
        return is_idle and known is not None and not known.ends_unused

    def unknown_to_broker(self, queue: str) -> int:
        """How many of a queue's subscriptions have no consumer, as far as it is looked."""
        looked_at = islice(self._by_queue.get(queue, ()), MOST_LOOKED_AT)
        return sum(one.consumer is None and not one.is_gone for one in looked_at)

    def has(self, queue: str) -> bool:
        """Whether anybody has subscribed to the queue."""
        return queue in self._by_queue
