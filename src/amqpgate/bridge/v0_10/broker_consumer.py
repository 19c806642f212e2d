"""One subscription at a 0-10 broker, and the credit that it is given."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_9_1 import BasicDeliver
from amqpgate.wire.generated.v0_10 import AcceptMode, AcquireMode, CreditUnit, FlowMode
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import Map

#: Messages that a consumer without prefetch may have unacknowledged.
MOST_OUT: Final = 65_535
#: No limit (domain "sequence-no", rule of message.flow: "unlimited").
UNLIMITED: Final = 0xFFFF_FFFF


@define(eq=False)
class CreditedConsumer:
    """One subscription to ``queue``; ``limit`` is how many of its messages may be unacknowledged, None for
    any number. ``is_get``: it is no consumer of the client's, and there for basic.get.
    """

    tag: str
    queue: str
    limit: int | None
    is_explicit: bool = True
    is_get: bool = False
    #: Messages that are not settled.
    out: int = field(default=0, init=False)
    #: Messages that were settled, and for which no new ones were granted.
    settled: int = field(default=0, init=False)
    #: How each basic.deliver to it begins, up to the delivery tag.
    delivers: bytes = field(init=False)

    def __attrs_post_init__(self) -> None:
        tag = self.tag.encode("utf-8", "surrogateescape")
        self.delivers = b"".join((BasicDeliver.INDEX.to_bytes(4, "big"), bytes((len(tag),)), tag))

    @property
    def destination(self) -> bytes:
        """What the broker knows it by."""
        return self.tag.encode()

    @property
    def owed(self) -> int:
        """How many messages are to be granted. Without a prefetch count they are not counted one by one."""
        if self.limit == MOST_OUT and self.settled < MOST_OUT // 2:
            return 0
        return self.settled

    def granted(self) -> None:
        """They are."""
        self.settled = 0

    def delivered(self) -> None:
        """One more is to be acknowledged."""
        self.out += 1

    def settle(self) -> None:
        """One of them is."""
        self.out -= 1
        self.settled += 1


def subscribe(
    consumer: CreditedConsumer, *, exclusive: bool = False, arguments: Map | None = None
) -> Command:
    """message.subscribe."""
    return amqp10.MessageSubscribe(
        queue=consumer.queue.encode(),
        destination=consumer.destination,
        accept_mode=AcceptMode.EXPLICIT if consumer.is_explicit else AcceptMode.NONE,
        acquire_mode=AcquireMode.PRE_ACQUIRED,
        exclusive=exclusive,
        arguments=arguments,
    )


def credit_mode(consumer: CreditedConsumer) -> Command:
    """message.set-flow-mode."""
    return amqp10.MessageSetFlowMode(consumer.destination, FlowMode.CREDIT)


def grant(consumer: CreditedConsumer, count: int) -> list[Command]:
    """message.flow for so many messages, of any size."""
    return [
        amqp10.MessageFlow(consumer.destination, CreditUnit.BYTE, UNLIMITED),
        amqp10.MessageFlow(consumer.destination, CreditUnit.MESSAGE, count),
    ]
