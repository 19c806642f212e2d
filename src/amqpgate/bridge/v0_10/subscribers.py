"""Who has subscribed to which queue in one connection, with credit or without.

A subscription without credit has no consumer with a broker of 0-9-1, for that would get messages. To 0-10 it
is one all the same: a queue that has it is in use, and nobody else may have that for its own. What other
connections have without credit is not known here.
"""

from __future__ import annotations

from attrs import define, field

from amqpgate.bridge.v0_10.subscription import Subscription
from amqpgate.bridge.v0_10.topology import KnownTopology
from amqpgate.errors import ProtocolViolation


@define(eq=False)
class Subscribers:
    """See the module."""

    topology: KnownTopology
    _by_queue: dict[str, dict[Subscription, None]] = field(factory=dict, init=False)

    def join(self, subscription: Subscription) -> None:
        """One more. Violation 405 if it, or one that is there, is exclusive."""
        others = self._by_queue.get(subscription.queue, {})
        if others and (subscription.is_exclusive or any(other.is_exclusive for other in others)):
            raise ProtocolViolation(405, f"queue {subscription.queue!r} has a subscription that is exclusive")
        self._by_queue.setdefault(subscription.queue, {})[subscription] = None

    def leave(self, subscription: Subscription) -> bool:
        """It has ended. Whether its queue should end with it, and the broker does not know."""
        others = self._by_queue[subscription.queue]
        others.pop(subscription)
        if others:
            return False
        del self._by_queue[subscription.queue]
        is_unknown = subscription.consumer is None and not subscription.is_gone
        known = self.topology.queue(subscription.queue)
        return is_unknown and known is not None and known.ends_unused

    def may_rest(self, subscription: Subscription) -> bool:
        """Whether it has a consumer and no credit, and its queue is known to outlive that."""
        known = self.topology.queue(subscription.queue)
        is_idle = subscription.consumer is not None and not subscription.credit.is_there
        return is_idle and known is not None and not known.ends_unused

    def has(self, queue: str) -> bool:
        """Whether anybody has subscribed to the queue."""
        return queue in self._by_queue
