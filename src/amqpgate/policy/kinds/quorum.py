"""What a compatibility policy says of quorum queues, for one session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpgate.policy.engine.matching import Matcher, Values
from amqpgate.policy.kinds.quorum_document import QuorumQueueRule
from amqpgate.values import frozen


@frozen
class CompiledQuorum:
    """One rule."""

    queue: Matcher | None
    is_quorum: bool
    #: Milliseconds; None: auto-delete queues stay classic.
    auto_delete_after: int | None
    max_priority: int


def compiled_quorum(rules: Iterable[QuorumQueueRule], values: Values) -> Iterator[CompiledQuorum]:
    """Those that can mean a queue of the session: in a pattern its variables are replaced."""
    for rule in rules:
        matcher = None if rule.queue is None else rule.queue.compile(values)
        if rule.queue is None or matcher is not None:
            after = rule.auto_delete_after
            yield CompiledQuorum(
                matcher,
                rule.become == "quorum",
                None if after is None else round(after * 1000),
                rule.max_priority or 0,
            )


def quorum_for(rules: Iterable[CompiledQuorum], queue: str) -> CompiledQuorum | None:
    """The first that means a queue, by the broker's name."""
    for one in rules:
        if one.queue is None or one.queue.matches(queue):
            return one
    return None
