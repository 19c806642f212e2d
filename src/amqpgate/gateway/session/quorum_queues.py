"""Queues that are quorum queues though nobody asked for it: declares, as a rule on the queue's name says.

A pure function of the request and of the rules, so that all who declare a queue agree.

==========================  =================================================================================
a client declares           the broker gets
==========================  =================================================================================
a durable queue             a quorum queue, without a delivery limit unless there is one for it
``x-queue-type: classic``   likewise: on RabbitMQ 3 it was the same as to say nothing
``x-queue-mode``,           likewise; they are left out, ``x-queue-master-locator`` becomes
``x-queue-version``,        ``x-queue-leader-locator``
``x-ha-...``
auto-delete                 a classic queue; by ``autoDeleteAfter`` a quorum queue with ``x-expires``
``x-max-priority``          a classic queue; by ``maxPriority`` a quorum queue without it
``x-overflow``:             a classic queue: quorum queues take it, and do not do it
``reject-publish-dlx``
exclusive, not durable,     what it is
or without a name
==========================  =================================================================================
"""

from __future__ import annotations

from typing import Final

from amqpgate.policy.kinds.quorum import CompiledQuorum
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

TYPE: Final = "x-queue-type"
_PRIORITY: Final = "x-max-priority"
_EXPIRES: Final = "x-expires"
#: What classic queues refuse (406).
_QUORUM_ONLY: Final = frozenset(
    {
        "x-quorum-initial-group-size",
        "x-quorum-target-group-size",
        "x-delivery-limit",
        "x-dead-letter-strategy",
        "x-max-in-memory-length",
        "x-max-in-memory-bytes",
    }
)


@frozen
class TypedDeclare:
    """A declare of a queue that a rule means."""

    arguments: Table
    auto_delete: bool
    #: Whether it asks for a quorum queue, which the client did not.
    is_made_quorum: bool = False
    #: Why the queue is classic though the rule makes quorum queues; empty: it is not.
    left: str = ""


def typed(rule: CompiledQuorum, method: amqp.QueueDeclare, table: Table) -> TypedDeclare:
    """What becomes of a declare that asks for a classic queue or a quorum queue, or for no type.

    ``table`` are its arguments, without those that no queue has any more.
    """
    asked = table.get(TYPE)
    if not rule.is_quorum:
        if asked == "quorum":
            for name in _QUORUM_ONLY:
                table = table.without(name)
        is_plain = method.durable and not method.exclusive and not method.auto_delete
        if asked == "quorum" or (asked is None and is_plain):
            table = table.with_(TYPE, "classic")
        return TypedDeclare(table, method.auto_delete)
    if asked == "quorum":
        return TypedDeclare(table, method.auto_delete)
    why = _left(rule, method, table)
    if why:
        if why in (_PRIORITY, _OVERFLOW) and asked is None:
            # The default type of the virtual host may be another one.
            table = table.with_(TYPE, "classic")
        return TypedDeclare(table, method.auto_delete, left=why)
    if method.auto_delete and _EXPIRES not in table and rule.auto_delete_after is not None:
        table = table.with_(_EXPIRES, rule.auto_delete_after)
    table = table.without(_PRIORITY).with_(TYPE, "quorum")
    return TypedDeclare(table, False, is_made_quorum=True)


_OVERFLOW: Final = "x-overflow"


def _left(rule: CompiledQuorum, method: amqp.QueueDeclare, table: Table) -> str:
    """Why a queue cannot be a quorum queue; empty: it can."""
    if not method.queue:
        return "the broker names it"
    if method.exclusive:
        return "exclusive"
    if not method.durable:
        return "not durable"
    if method.auto_delete and rule.auto_delete_after is None:
        return "auto-delete"
    priority = table.get(_PRIORITY)
    if priority is not None and not (type(priority) is int and 0 < priority <= rule.max_priority):
        return _PRIORITY
    return _OVERFLOW if table.get(_OVERFLOW) == "reject-publish-dlx" else ""
