"""Deliveries of the broker's that are not settled: by their tags, and by the ids of transfers.

Each has two names. To the broker it is its delivery tag on channel "main"; to the client it is the id of its
transfer, if it was sent. A client may name two thousand million ids in eight bytes: what is done takes time
by the ranges that it names and the ids that it has, and each id it has is taken once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from attrs import define

from amqpgate.bridge.v0_10.channels import BridgedChannel
from amqpgate.bridge.v0_10.forms import TransferForms
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet, serial_add

T = TypeVar("T")
Settlement: TypeAlias = amqp.BasicAck | amqp.BasicNack | amqp.BasicReject


@define(eq=False)
class Consumer:
    """A consumer of the broker's. It gets ``prefetch`` messages at most that are not settled."""

    tag: str
    prefetch: int
    unsettled: int = 0
    #: Messages that it has got in all.
    received: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the broker sends it nothing more."""
        return self.unsettled >= self.prefetch

    @property
    def is_fresh(self) -> bool:
        """Whether all its room is known to the queue: none of it was made by settlements."""
        return self.received == self.unsettled

    def delivered(self) -> None:
        """It got a message."""
        self.unsettled += 1
        self.received += 1

    def settled(self) -> None:
        """One of its messages is settled."""
        self.unsettled -= 1


@define(eq=False)
class HeldTransfer:
    """A message of a queue's, as it will be sent to the client; ``consumer`` is None if it was got."""

    tag: int
    queue: str
    consumer: Consumer | None
    #: The header segment of the transfer.
    header: bytes
    body: bytes
    #: Bytes of both.
    size: int

    def forget_content(self) -> None:
        """Nothing but its names is needed any more, and its size."""
        self.header = self.body = b""


def delivery_of(
    method: Method,
    header: bytes,
    body: bytes,
    queue: str,
    consumer: Consumer | None,
    forms: TransferForms,
    *,
    is_for_jms: bool = False,
) -> HeldTransfer:
    """What basic.deliver or basic.get-ok brings; ``header`` is the payload of the header frame. Message
    properties that say nothing are left out, as qpidd does, but ``is_for_jms``.
    """
    assert isinstance(method, amqp.BasicDeliver | amqp.BasicGetOk)
    size = len(body)
    segment = forms.form(
        header,
        method.routing_key,
        exchange=method.exchange,
        redelivered=method.redelivered,
        milliseconds=is_for_jms,
        is_brief=not is_for_jms,
    ).header(size)
    return HeldTransfer(method.delivery_tag, queue, consumer, segment, body, len(segment) + size)


class ById(Generic[T]):
    """Something for each of at most ``most`` ids of transfers, which are added in their order."""

    __slots__ = ("_ids", "_most", "_values")

    def __init__(self, most: int) -> None:
        self._most = most
        # As many ranges as ids, if it comes to the worst.
        self._ids = RangeSet(most)
        self._values: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be added."""
        return len(self._values) >= self._most

    def add(self, number: int, value: T) -> None:
        """One more."""
        self._ids.add(number)
        self._values[number] = value

    def take(self, ids: SequenceSet | None) -> list[T]:
        """Those of these ids, in their order; they are not here any more."""
        taken: list[T] = []
        for lower, upper in self._ids.intersect(ids or SequenceSet()).ranges:
            self._ids.discard(lower, upper)
            count = ((upper - lower) & 0xFFFF_FFFF) + 1
            taken += [self._values.pop(serial_add(lower, ahead)) for ahead in range(count)]
        return taken

    def take_where(self, is_meant: Callable[[T], bool]) -> list[T]:
        """Those that are meant, in their order; they are not here any more."""
        numbers = [number for number, value in self._values.items() if is_meant(value)]
        for number in numbers:
            self._ids.discard(number, number)
        return [self._values.pop(number) for number in numbers]


class Settling:
    """What the broker is told about its deliveries on ``main``.

    In transactions a settlement counts with the next commit, and is forgotten by a rollback. So those that no
    client has asked for wait until one ends.

    What nobody has failed at goes back by basic.nack where the broker ``has_nacks``: a quorum queue of
    RabbitMQ 4.3 counts what is rejected as a failure of its consumer, and drops a message after 20 of them.
    """

    __slots__ = ("_has_nacks", "_has_told", "_is_transactional", "_main", "_own", "_unsettled")

    def __init__(self, main: BridgedChannel, *, has_nacks: bool = False) -> None:
        self._main = main
        self._has_nacks = has_nacks
        #: By delivery tags, ascending, for that is how they come. Nothing else is quick at both its ends.
        self._unsettled: OrderedDict[int, Consumer | None] = OrderedDict()
        self._is_transactional = False
        #: Methods that wait for the end of the transaction.
        self._own: list[Settlement] = []
        self._has_told = False

    def take_told(self) -> bool:
        """Whether the broker was told of any settlement since this was asked last."""
        told, self._has_told = self._has_told, False
        return told

    def delivered(self, delivery: HeldTransfer) -> None:
        """The broker has sent it."""
        self._unsettled[delivery.tag] = delivery.consumer
        if delivery.consumer is not None:
            delivery.consumer.delivered()

    # What the client says.

    def accept(self, deliveries: Iterable[HeldTransfer]) -> None:
        """They are done with. Those that are the oldest of all are told at once."""
        tags = sorted(delivery.tag for delivery in deliveries)
        oldest = 0
        for tag, other in zip(tags, self._unsettled, strict=False):
            if tag != other:
                break
            oldest += 1
        if oldest > 1:
            self._has_told = True
            self._main.send(amqp.BasicAck(tags[oldest - 1], multiple=True))
            for tag in tags[:oldest]:
                self._forget(tag)
            del tags[:oldest]
        for tag in tags:
            self._send(amqp.BasicAck(tag))

    def reject(self, deliveries: Iterable[HeldTransfer]) -> None:
        """They are dead."""
        for tag in sorted(delivery.tag for delivery in deliveries):
            self._send(amqp.BasicReject(tag, requeue=False))

    def release(
        self, deliveries: Iterable[HeldTransfer], unseen: Iterable[HeldTransfer], *, failed: bool
    ) -> None:
        """They go back, with what the client has not seen; ``failed``: it could do nothing with them. The
        broker gives what goes back to whoever has room, at once: so the oldest comes first.
        """
        tried = {delivery.tag for delivery in deliveries}
        for tag in sorted(tried | {delivery.tag for delivery in unseen}):
            is_failure = failed and tag in tried
            self._send(amqp.BasicReject(tag, requeue=True) if is_failure else self._back(tag))

    # What nobody has asked for.

    @property
    def is_immediate(self) -> bool:
        """Whether it counts at once."""
        return not self._is_transactional

    def accept_sent(self, delivery: HeldTransfer) -> None:
        """It was sent to a client that accepts nothing."""
        self._send_own(amqp.BasicAck(delivery.tag))

    def give_back(self, deliveries: Iterable[HeldTransfer]) -> None:
        """They were not sent to the client, and go back, the oldest first."""
        for tag in sorted(delivery.tag for delivery in deliveries):
            self._send_own(self._back(tag))

    def begin_transactions(self) -> None:
        """From now on there is a transaction always."""
        self._is_transactional = True

    @property
    def waiting(self) -> int:
        """How many wait for the end of the transaction."""
        return len(self._own)

    def settle_own(self) -> bool:
        """The transaction ends: tell what has waited for it. Whether there was anything."""
        own, self._own = self._own, []
        for method in own:
            self._send(method)
        return bool(own)

    def _back(self, tag: int) -> Settlement:
        return amqp.BasicNack(tag, requeue=True) if self._has_nacks else amqp.BasicReject(tag, requeue=True)

    def _send_own(self, method: Settlement) -> None:
        if self._is_transactional:
            self._own.append(method)
        else:
            self._send(method)

    def _send(self, method: Settlement) -> None:
        self._has_told = True
        self._main.send(method)
        self._forget(method.delivery_tag)

    def _forget(self, tag: int) -> None:
        consumer = self._unsettled.pop(tag)
        if consumer is not None:
            consumer.settled()
