"""What is known of one channel of a session that shares a link."""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Methods after which a channel can still be closed without asking the broker.
_TRACELESS: Final = frozenset({amqp.ChannelOpen.INDEX, amqp.ConfirmSelect.INDEX, amqp.ChannelClose.INDEX})


@attrs.define(weakref_slot=False)
class Seat:
    """One channel of the session."""

    #: Its number on the link.
    number: int
    #: The broker had opened it before, and it does not confirm.
    is_spare: bool
    #: The broker has opened it, and the client knows.
    is_open: bool = False
    #: Methods have passed of which the broker's work may not be done yet.
    is_used: bool = False
    #: The method that the broker was asked last: what it closes the link for, if it does.
    asked: int = 0
    #: basic.qos that the broker has not answered: whether the client waits for it.
    limits_due: deque[bool] | None = None
    #: queue.declare and queue.delete that the broker has not answered: those of exclusive queues; the names.
    declares_due: deque[amqp.QueueDeclare | None] | None = None
    deletes_due: deque[str] | None = None
    #: What the client wants for each consumer, and for the channel (RabbitMQ: global).
    each: amqp.BasicQos | None = None
    all: amqp.BasicQos | None = None

    @property
    def has_prefetch(self) -> bool:
        """Whether the broker sends only so much that is not acknowledged."""
        return any(limit is not None and limit.prefetch_count > 0 for limit in (self.each, self.all))

    def passes(self, method: Method) -> None:
        """The client's method goes to the broker."""
        self.asked = method.INDEX
        self.is_used = self.is_used or method.INDEX not in _TRACELESS
