"""What a queue loses with a subscription, or with a session, and what is done about it first.

An auto-delete queue ends with its last consumer at a broker of 0-9-1. To 0-10 it ends with its last
subscription, and one without credit counts, but has no consumer. So another subscription of the connection is
its *heir*: it gets a consumer before the last one ends. Where there is none, and the queue has an alternate
exchange, its messages go there before it ends (see ``orphans``).

What other connections have without credit is not known, so for them no queue is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.orphans import reroute
from amqpgate.bridge.v0_10.steps import Part, Steps, ask
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.wire.generated import v0_9_1 as amqp


def farewell(own_queues: Iterable[str], subscriptions: Subscriptions | None, link: BrokerLink) -> Steps:
    """The session ends, with ``own_queues``. Without ``subscriptions`` the broker has ended its consumers,
    and what it had has gone back. Violations as for `reroute`.
    """
    for queue in own_queues:
        yield from _empty(queue, None, subscriptions, link)
    mine = frozenset(() if subscriptions is None else subscriptions.consuming)
    consumers = Counter(subscription.queue for subscription in mine)
    for queue, subscription in {one.queue: one for one in mine}.items():
        known = link.topology.queue(queue)
        if known is None or not known.ends_unused:
            continue
        heir = link.subscribers.heir(subscription, mine)
        if heir is not None:
            yield from link.subscribers.hand_over(heir)
        elif not link.subscribers.is_shared(subscription, mine):
            yield from _empty(queue, consumers[queue], subscriptions, link)
    return None


def _empty(
    queue: str, consumers: int | None, subscriptions: Subscriptions | None, link: BrokerLink
) -> Part[None]:
    """What is in the queue goes to its alternate exchange, if it has one, unless it has more consumers."""
    known = link.topology.queue(queue)
    if known is None or not known.alternate_exchange:
        return
    found = yield from ask(amqp.QueueDeclare(queue=queue, passive=True))
    if isinstance(found, amqp.QueueDeclareOk) and consumers in (None, found.consumer_count):
        yield from reroute(queue, subscriptions, ends_unused=known.ends_unused)
