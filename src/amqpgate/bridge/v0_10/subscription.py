"""One subscription: its credit, its consumer, and what waits for credit.

::

    broker ── prefetch ──▶ held ── credit ──▶ client
                            │
                            └─ too many bytes ─▶ shed ── back to the queue once there is credit for it

What the broker has sent beyond the credit is held, and goes out first when there is credit again. What is
more than may be held is shed: its body is forgotten, but the broker thinks that it is with us. It goes back
to the queue, and comes again, when all that was held is sent and there is credit. What comes after something
that was shed is shed as well, so the order is kept.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from amqpgate.bridge.v0_10.credit import INFINITE, Credit
from amqpgate.bridge.v0_10.deliveries import Consumer, HeldTransfer
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import AcceptMode, AcquireMode
from amqpgate.wire.tables import Table

#: The most that a broker may send ahead of a credit that has a limit, and of one that has none. The more, the
#: faster, and the less is left for other consumers. A client of qpidd's gets 5000 and has to accept then.
MOST_PREFETCH: Final = 256
MOST_PREFETCH_UNLIMITED: Final = 2000
_PREFETCH_UNLIMITED: Final = 1000


class Subscription:
    """See the module. ``command`` is what it was made by, ``queue`` and ``arguments`` are as in 0-9-1."""

    __slots__ = (
        "arguments",
        "command",
        "consumer",
        "credit",
        "held",
        "is_ahead",
        "is_gone",
        "is_heir",
        "queue",
        "shed",
        "takes_gets",
        "transfer",
    )

    def __init__(self, command: amqp10.MessageSubscribe, queue: str, arguments: Table) -> None:
        self.command = command
        self.queue = queue
        self.arguments = arguments
        #: The command of all its transfers.
        self.transfer = amqp10.MessageTransfer(
            destination=command.destination,
            accept_mode=AcceptMode.EXPLICIT if self.is_explicit else AcceptMode.NONE,
            acquire_mode=AcquireMode.PRE_ACQUIRED,
        ).encode()
        self.credit = Credit()
        #: None before there was credit.
        self.consumer: Consumer | None = None
        #: Whether the queue takes basic.get; None: not known yet.
        self.takes_gets: bool | None = None
        #: The queue was deleted.
        self.is_gone = False
        #: It is to have a consumer without credit, too: see ``parting``.
        self.is_heir = False
        #: It had a consumer before it had credit: what comes back to the queue since then may be older.
        self.is_ahead = False
        self.held: deque[HeldTransfer] = deque()
        #: Without their bodies.
        self.shed: deque[HeldTransfer] = deque()

    @property
    def name(self) -> bytes:
        """The destination."""
        return self.command.destination or b""

    @property
    def is_exclusive(self) -> bool:
        """Whether nobody else may subscribe to the queue."""
        return self.command.exclusive

    @property
    def is_explicit(self) -> bool:
        """Whether the client accepts what it gets; so it is if nothing is said."""
        return self.command.accept_mode != AcceptMode.NONE

    @property
    def needs_consumer(self) -> bool:
        """Whether there is credit, and nothing will come: there is no consumer, or it has all that it gets
        until the client settles some of it. An heir has no credit.

        A second exclusive consumer is impossible; the first one gets enough.
        """
        if self.is_gone or self.held or self.shed:
            return False
        consumer = self.consumer
        if consumer is not None and consumer.unsettled < consumer.prefetch:
            return False
        if not self.credit.is_there:
            return self.is_heir and consumer is None
        return consumer is None or (consumer.is_full and not self.command.exclusive)

    def prefetch(self) -> int:
        """What the next consumer gets: what there is credit for, and as much as the last one; twice as much
        if that is full, for its messages are still with the client.
        """
        if self.command.exclusive:
            # Nobody else wants them.
            return MOST_PREFETCH_UNLIMITED
        if self.is_heir:
            return 1
        messages = self.credit.messages
        last = 0
        if self.consumer is not None:
            last = self.consumer.prefetch * (1 + self.consumer.is_full)
        if messages == INFINITE and self.credit.bytes == INFINITE:
            return min(max(_PREFETCH_UNLIMITED, last), MOST_PREFETCH_UNLIMITED)
        return min(max(messages, last, 1), MOST_PREFETCH)

    def consume(self, consumer: Consumer) -> amqp.BasicConsume:
        """The method that makes this its consumer, once basic.qos has told of the prefetch."""
        self.consumer = consumer
        self.is_ahead = self.is_heir
        return amqp.BasicConsume(
            queue=self.queue,
            consumer_tag=consumer.tag,
            exclusive=self.command.exclusive,
            arguments=self.arguments,
        )

    def lose(self, consumer: Consumer) -> None:
        """The broker has ended a consumer."""
        if consumer is self.consumer:
            self.consumer = None
            self.is_gone = True

    def inherit(self) -> None:
        """Its queue would end with another one's consumer."""
        self.is_heir = True

    def stop_inheriting(self) -> None:
        """It has a consumer, or will have none."""
        self.is_heir = False

    def catch_up(self) -> None:
        """It has credit, and is as any other."""
        self.is_ahead = False

    def learn(self, *, takes_gets: bool) -> None:
        """What the queue is is known now."""
        self.takes_gets = takes_gets

    def rest(self) -> None:
        """Its consumer was ended, until there is credit again."""
        self.consumer = None

    def may_send(self, delivery: HeldTransfer) -> bool:
        """Whether there is credit for it."""
        if not self.credit.counts_bytes:
            return self.credit.messages > 0
        return self.credit.fits(delivery.size)

    def take_all(self) -> list[HeldTransfer]:
        """All that was not sent, in order; it is not here any more."""
        taken = [*self.held, *self.shed]
        self.held.clear()
        self.shed.clear()
        return taken
