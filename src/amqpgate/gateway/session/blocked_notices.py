"""Telling a client that its messages wait: RabbitMQ's connection.blocked and connection.unblocked.

The broker has reasons of its own to block a connection. The client is told that it is blocked while either
the broker or the gateway says so.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What the client reads.
REASON = "rate limit reached"

#: Looks in a row (`watch`) that must agree before the client is told something else than before: one who is
#: at the limit alternates between waiting and not.
LOOKS = 2

#: What a broker says of it.
Blocking: TypeAlias = amqp.ConnectionBlocked | amqp.ConnectionUnblocked
BLOCKING: Final = (amqp.ConnectionBlocked, amqp.ConnectionUnblocked)


@frozen(weakref_slot=False)
class BlockedNotice:
    """What one client has been told. What happens makes another one of it."""

    #: Whether the broker has blocked the connection.
    is_by_broker: bool = False
    #: Whether the gateway has said that the connection is blocked.
    is_given: bool = False
    #: Looks in a row that found the contrary.
    looks: int = 0

    def heard(self, method: Blocking) -> BlockedNotice:
        """The broker blocks the connection, or does not any more. The client need not hear that while the
        gateway's own notice `is_given`: it knows, or it would be contradicted."""
        return attrs.evolve(self, is_by_broker=isinstance(method, amqp.ConnectionBlocked))

    def looked(self, *, waits: bool) -> tuple[BlockedNotice, Method | None]:
        """The client's messages wait now, or not; and what it must be told, if anything."""
        if waits == self.is_given:
            return (attrs.evolve(self, looks=0) if self.looks else self), None
        if self.looks + 1 < LOOKS:
            return attrs.evolve(self, looks=self.looks + 1), None
        after = BlockedNotice(self.is_by_broker, waits)
        if self.is_by_broker:
            return after, None
        return after, amqp.ConnectionBlocked(REASON) if waits else amqp.ConnectionUnblocked()


#: Of every session, until something blocks it.
NOT_BLOCKED: Final = BlockedNotice()
