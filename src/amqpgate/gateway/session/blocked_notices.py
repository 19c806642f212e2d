"""Telling a client that its messages wait: RabbitMQ's connection.blocked and connection.unblocked.

The broker has reasons of its own to block a connection. The client is told that it is blocked while either
the broker or the gateway says so.
"""

from __future__ import annotations

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What the client reads.
REASON = "rate limit reached"

#: Looks in a row (`watch`) that must agree before the client is told something else than before: one who is
#: at the limit alternates between waiting and not.
LOOKS = 2


@attrs.define(eq=False, weakref_slot=False)
class BlockedNotice:
    """What one client has been told."""

    #: Whether the client understands such notices: it announced the capability connection.blocked.
    is_understood: bool = False
    #: Whether the broker has blocked the connection.
    _by_broker: bool = attrs.field(default=False, init=False)
    #: Whether the gateway has.
    _by_us: bool = attrs.field(default=False, init=False)
    #: Looks in a row that found the contrary.
    _looks: int = attrs.field(default=0, init=False)

    @property
    def is_given(self) -> bool:
        """Whether the gateway has said that the connection is blocked."""
        return self._by_us

    @property
    def is_by_broker(self) -> bool:
        """Whether the broker has blocked the connection."""
        return self._by_broker

    def passes(self, method: Method) -> bool:
        """Whether a method of the broker goes on: not if it says what the client knows, or contradicts us."""
        if isinstance(method, amqp.ConnectionBlocked):
            self._by_broker = True
        elif isinstance(method, amqp.ConnectionUnblocked):
            self._by_broker = False
        else:
            return True
        return not self._by_us

    def look(self, *, waits: bool) -> Method | None:
        """The client's messages wait now, or not; what it must be told, if anything."""
        if waits == self._by_us or not self.is_understood:
            self._looks = 0
            return None
        self._looks += 1
        if self._looks < LOOKS:
            return None
        self._looks = 0
        self._by_us = waits
        if self._by_broker:
            return None
        return amqp.ConnectionBlocked(REASON) if waits else amqp.ConnectionUnblocked()
