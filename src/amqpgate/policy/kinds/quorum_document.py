"""The frozen types of what a compatibility policy says of quorum queues: which queues become some unasked."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from amqpgate.policy.engine.conditions import Match
from amqpgate.values import frozen
from amqpgate.yamldoc import Seconds, between, doc

#: The longest time that RabbitMQ takes for `x-expires`: 32 bits of milliseconds, in seconds.
LONGEST_EXPIRY: Final = (2**32 - 1) // 1000
#: The largest `x-max-priority` (RabbitMQ: priority queues).
MOST_PRIORITY: Final = 255


@frozen(kw_only=True)
class QuorumQueueRule:
    """Of which type some queues are, whatever type their clients ask for."""

    queue: Match | None = attrs.field(
        default=None, metadata=doc("the queue, as the broker calls it", default="any")
    )
    become: Literal["quorum", "classic"] = attrs.field(
        default="quorum",
        metadata=doc(
            "`quorum`: durable queues become quorum queues, but for those that a quorum queue cannot be; "
            "`classic`: they stay classic, or become so"
        ),
    )
    auto_delete_after: Seconds | None = attrs.field(
        default=None,
        validator=between(0.001, LONGEST_EXPIRY),
        metadata=doc(
            "auto-delete queues become quorum queues that are deleted when nobody has used them for so long",
            default="they stay classic",
        ),
    )
    max_priority: int | None = attrs.field(
        default=None,
        validator=between(1, MOST_PRIORITY),
        metadata=doc(
            "queues with an `x-max-priority` up to this become quorum queues without it: RabbitMQ 4.3 has "
            "priorities in each, RabbitMQ 4.0 two",
            default="they stay classic",
        ),
    )
