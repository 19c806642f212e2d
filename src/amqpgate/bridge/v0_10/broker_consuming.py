"""What is delivered on one channel: subscriptions, credit, acknowledgements, basic.get.

basic.consume
    message.subscribe with the consumer tag as destination; consume-ok once the broker has taken it; then
    credit in mode "credit": as many messages as the prefetch count says, `MOST_OUT` without one, or no end of
    them where nothing is acknowledged. For each message that is settled one more is granted, once a turn. (In
    mode "window" the broker would count by session.completed; sets of ids that are complete fall apart where
    a client acknowledges here and there.)
basic.get
    A subscription of its own: credit for one message and message.flush, which is complete once the broker has
    sent it or has none. How many are left queue.query tells. Then it is cancelled, for others would find the
    queue in use, and whoever deletes it would end this session, too; but of a queue that is auto-delete it
    stays, as that would be deleted with its last subscription.
acknowledgements
    message.accept, release and reject, collected for a turn. In a transaction that is rolled back what was
    acknowledged is as unacknowledged as before; release and reject are not part of it.

Memory
    An entry for each message that is to be acknowledged, `MOST_UNSETTLED` at most: a broker that sends more
    was granted less. `MOST_GETS` subscriptions of basic.get.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from struct import Struct
from typing import Final, NamedTuple

from amqpgate.bridge.v0_10.arguments import subscribe_arguments
from amqpgate.bridge.v0_10.broker_consumer import (
    MOST_OUT,
    UNLIMITED,
    CreditedConsumer,
    credit_mode,
    grant,
    subscribe,
)
from amqpgate.bridge.v0_10.broker_link import ChannelLink, Steps, Transferred
from amqpgate.bridge.v0_10.properties import to_canonical
from amqpgate.bridge.v0_10.quick_header import QuickHeader
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import CreditUnit
from amqpgate.wire.v0_10.codec import decode_header
from amqpgate.wire.v0_10.sequences import SequenceSet, ids_of
from amqpgate.wire.v0_10.structs import Command

_TAG: Final = Struct(">Q?B")
#: Messages of one channel that wait to be acknowledged.
MOST_UNSETTLED: Final = 1_048_576
#: Queues that a channel may get from at a time, each with a subscription.
MOST_GETS: Final = 32
#: Ranges of ids that one command says.
_MOST_RANGES: Final = 256
#: Ids that are made one set at a time, which holds fewer ranges than a set may have.
_MOST_IDS: Final = 4096


class _Unsettled(NamedTuple):
    command_id: int
    consumer: CreditedConsumer


class ChannelConsuming:
    """See the module."""

    __slots__ = (
        "_accepted",
        "_consumers",
        "_got",
        "_in_transaction",
        "_is_flowing",
        "_is_transactional",
        "_last_name",
        "_last_tag",
        "_link",
        "_prefetch",
        "_refused",
        "_unsettled",
    )

    def __init__(self, link: ChannelLink) -> None:
        self._link = link
        self._prefetch = 0
        #: By destination, those of gets as well.
        self._consumers: dict[bytes, CreditedConsumer] = {}
        self._is_flowing = True
        self._last_tag = self._last_name = 0
        #: What is to be acknowledged, by delivery tag, ascending.
        self._unsettled: dict[int, _Unsettled] = {}
        #: Ids that are acknowledged, for the next message.accept.
        self._accepted: list[int] = []
        #: Commands about messages that cannot be told to the client.
        self._refused: list[Command] = []
        self._is_transactional = False
        #: What was acknowledged in the transaction.
        self._in_transaction: dict[int, _Unsettled] = {}
        #: What came for basic.get.
        self._got: Transferred | None = None

    # Subscriptions.

    def qos(self, method: amqp.BasicQos) -> amqp.BasicQosOk:
        """For the consumers that come; ``global`` makes no difference."""
        if method.prefetch_size:
            raise ProtocolViolation(540, f"prefetch_size!=0 ({method.prefetch_size})")
        self._prefetch = method.prefetch_count
        return amqp.BasicQosOk()

    def consume(self, method: amqp.BasicConsume, queue: str) -> Steps:
        """basic.consume of ``queue``."""
        limit = None if method.no_ack else (self._prefetch or MOST_OUT)
        tag = method.consumer_tag or self._new_name("amq.ctag")
        consumer = CreditedConsumer(tag, queue, limit, is_explicit=not method.no_ack)
        if consumer.destination in self._consumers:
            raise ProtocolViolation(530, f"attempt to reuse consumer tag '{consumer.tag}'")
        command = subscribe(consumer, exclusive=method.exclusive, arguments=subscribe_arguments(method))
        yield command, credit_mode(consumer)
        self._consumers[consumer.destination] = consumer
        if self._is_flowing:
            for command in grant(consumer, UNLIMITED if limit is None else limit):
                self._link.send(command)
        return amqp.BasicConsumeOk(consumer.tag)

    def cancel(self, method: amqp.BasicCancel) -> Steps:
        """basic.cancel. What was delivered may still be acknowledged; a tag that is not known is no error,
        as with RabbitMQ."""
        consumer = self._consumers.get(method.consumer_tag.encode())
        if consumer is not None and not consumer.is_get:
            yield (amqp10.MessageCancel(consumer.destination),)
            self._consumers.pop(consumer.destination, None)
        return amqp.BasicCancelOk(method.consumer_tag)

    def flow(self, method: amqp.ChannelFlow) -> Steps:
        """channel.flow: credit is taken away from all consumers, or given back."""
        self._is_flowing = method.active
        consumers = [consumer for consumer in self._consumers.values() if not consumer.is_get]
        if consumers and not method.active:
            yield [amqp10.MessageStop(consumer.destination) for consumer in consumers]
        if consumers and method.active:
            commands: list[Command] = []
            for consumer in consumers:
                room = UNLIMITED if consumer.limit is None else max(0, consumer.limit - consumer.out)
                consumer.granted()
                # What a broker granted before is not known to be gone: it is taken away first.
                commands += [amqp10.MessageStop(consumer.destination), *grant(consumer, room)]
            yield commands
        return amqp.ChannelFlowOk(method.active)

    def get(self, method: amqp.BasicGet, queue: str) -> Steps:
        """basic.get from ``queue``."""
        consumer = self._getter(queue, is_explicit=not method.no_ack)
        commands: list[Command] = []
        if consumer is None:
            gets = [one for one in self._consumers.values() if one.is_get]
            if len(gets) >= MOST_GETS:
                commands.append(amqp10.MessageCancel(gets[0].destination))
                del self._consumers[gets[0].destination]
            name = self._new_name("amqpgate.get")
            consumer = CreditedConsumer(name, queue, None, is_explicit=not method.no_ack, is_get=True)
            self._consumers[consumer.destination] = consumer
            commands += [subscribe(consumer), credit_mode(consumer)]
        flush = amqp10.MessageFlush(consumer.destination)
        results = yield [*commands, *grant(consumer, 1), flush, amqp10.QueueQuery(queue.encode())]
        known = results[-1]
        if not (isinstance(known, amqp10.QueueQueryResult) and known.auto_delete):
            del self._consumers[consumer.destination]
            self._link.send(amqp10.MessageCancel(consumer.destination))
        message, self._got = self._got, None
        if message is None:
            return amqp.BasicGetEmpty()
        count = known.message_count if isinstance(known, amqp10.QueueQueryResult) else None
        delivery, properties = _parts(message)
        tag = self._next_tag(message, consumer)
        got = amqp.BasicGetOk(tag, delivery.redelivered, *_route(delivery), count or 0)
        self._tell(message, got, properties, tag)
        return None

    def consumes(self, queue: str) -> bool:
        """Whether the client has a consumer there."""
        return any(one.queue == queue and not one.is_get for one in self._consumers.values())

    def forget(self, queue: str) -> tuple[list[Command], list[amqp.BasicCancel]]:
        """Commands that end the subscriptions to ``queue``, which is to be deleted: the broker ends a session
        that has one then. And what a client that hears cancels is to be told of its consumers.
        """
        ended = [one for one in self._consumers.values() if one.queue == queue]
        for consumer in ended:
            del self._consumers[consumer.destination]
        told = [one for one in ended if self._link.abilities.hears_cancels and not one.is_get]
        return (
            [amqp10.MessageCancel(consumer.destination) for consumer in ended],
            [amqp.BasicCancel(consumer.tag, no_wait=True) for consumer in told],
        )

    def _getter(self, queue: str, *, is_explicit: bool) -> CreditedConsumer | None:
        for consumer in self._consumers.values():
            if consumer.is_get and consumer.queue == queue and consumer.is_explicit is is_explicit:
                return consumer
        return None

    def _new_name(self, prefix: str) -> str:
        self._last_name += 1
        return f"{prefix}-{self._link.session.name.decode()}-{self._last_name}"

    # Messages.

    def transferred(self, message: Transferred) -> None:
        """A message has come. It is rejected if the client cannot be told of it, and released if nobody
        consumes it (any more). Violation 506 if there are too many.
        """
        consumer = self._consumers.get(message.destination)
        if consumer is None:
            self._put_back(amqp10.MessageRelease(_one(message)))
        elif consumer.is_get:
            if self._got is not None:
                raise ProtocolViolation(503, "two messages where one was asked for")
            self._got = message
        elif message.quick is not None:
            self._deliver(message, message.quick, consumer)
        else:
            delivery, properties = _parts(message)
            tag = self._next_tag(message, consumer)
            deliver = amqp.BasicDeliver(consumer.tag, tag, delivery.redelivered, *_route(delivery))
            self._tell(message, deliver, properties, tag)

    def _deliver(self, message: Transferred, quick: QuickHeader, consumer: CreditedConsumer) -> None:
        tag = self._next_tag(message, consumer)
        key, exchange = quick.routing_key, quick.exchange
        method = b"".join(
            (
                consumer.delivers,
                _TAG.pack(tag, quick.redelivered, len(exchange)),
                exchange,
                bytes((len(key),)),
                key,
            )
        )
        if not self._link.say_form(method, quick.payload, message.body):
            self._cannot_tell(message, tag)

    def _tell(
        self,
        message: Transferred,
        method: amqp.BasicDeliver | amqp.BasicGetOk,
        properties: amqp.BasicProperties,
        tag: int,
    ) -> None:
        try:
            self._link.say_message(method, properties, message.body)
        except (ProtocolViolation, ValueError):
            self._cannot_tell(message, tag)
            if isinstance(method, amqp.BasicGetOk):
                self._link.say(amqp.BasicGetEmpty())

    def _cannot_tell(self, message: Transferred, tag: int) -> None:
        delivery = self._unsettled.pop(tag, None)
        if delivery is not None:
            delivery.consumer.settle()
        self._put_back(amqp10.MessageReject(_one(message), text=b"no frame of AMQP 0-9-1 takes it"))

    def _put_back(self, command: Command) -> None:
        self._refused.append(command)
        self._link.is_due()

    def _next_tag(self, message: Transferred, consumer: CreditedConsumer) -> int:
        self._last_tag += 1
        if consumer.is_explicit:
            if len(self._unsettled) >= MOST_UNSETTLED:
                raise ProtocolViolation(506, f"more than {MOST_UNSETTLED} messages are unacknowledged")
            self._unsettled[self._last_tag] = _Unsettled(message.command_id, consumer)
            consumer.delivered()
        return self._last_tag

    # Acknowledgements.

    def ack(self, method: amqp.BasicAck) -> None:
        """basic.ack. Violation 406 for a tag that is not known."""
        for tag, delivery in self._take(method.delivery_tag, multiple=method.multiple):
            self._accepted.append(delivery.command_id)
            if self._is_transactional:
                self._in_transaction[tag] = delivery
            else:
                delivery.consumer.settle()
        self._link.is_due()

    def refuse(self, tag: int, *, multiple: bool, requeue: bool) -> None:
        """basic.nack and basic.reject. Violation 406 for a tag that is not known."""
        self._give_back([delivery for _, delivery in self._take(tag, multiple=multiple)], requeue=requeue)

    def recover(self, *, requeue: bool) -> None:
        """basic.recover: all goes back to its queue. 540 without ``requeue``, as RabbitMQ has it."""
        if not requeue:
            raise ProtocolViolation(540, "requeue=false")
        taken = list(self._unsettled.values())
        self._unsettled.clear()
        self._give_back(taken, requeue=True)

    def _give_back(self, deliveries: Iterable[_Unsettled], *, requeue: bool) -> None:
        ids = []
        for delivery in deliveries:
            ids.append(delivery.command_id)
            delivery.consumer.settle()
        for transfers in _sets(ids):
            self._link.send(
                amqp10.MessageRelease(transfers, set_redelivered=True)
                if requeue
                else amqp10.MessageReject(transfers, code=amqp10.RejectCode.UNSPECIFIED)
            )
        self._link.is_due()

    def _take(self, tag: int, *, multiple: bool) -> list[tuple[int, _Unsettled]]:
        unsettled = self._unsettled
        if multiple and not tag:
            taken = list(unsettled.items())
            unsettled.clear()
            return taken
        if tag not in unsettled:
            raise ProtocolViolation(406, f"unknown delivery tag {tag}")
        if not multiple:
            return [(tag, unsettled.pop(tag))]
        taken = list(takewhile(lambda item: item[0] <= tag, unsettled.items()))
        for one, _ in taken:
            del unsettled[one]
        return taken

    def flush(self) -> None:
        """Before bytes leave: what was acknowledged, and new credit."""
        accepted, self._accepted = self._accepted, []
        for transfers in _sets(accepted):
            self._link.send(amqp10.MessageAccept(transfers))
        refused, self._refused = self._refused, []
        for command in refused:
            self._link.send(command)
        if not self._is_flowing:
            return
        for consumer in self._consumers.values():
            owed = consumer.owed
            if owed and consumer.limit is not None:
                consumer.granted()
                self._link.send(amqp10.MessageFlow(consumer.destination, CreditUnit.MESSAGE, owed))

    # Transactions.

    def transaction(self, *, is_rolled_back: bool = False) -> None:
        """A transaction begins, the one before it having been committed, or rolled back."""
        self._is_transactional = True
        ended, self._in_transaction = self._in_transaction, {}
        if is_rolled_back:
            self._unsettled = dict(sorted((self._unsettled | ended).items()))
            return
        for delivery in ended.values():
            delivery.consumer.settle()
        self._link.is_due()


def _sets(ids: list[int]) -> list[SequenceSet]:
    """The ids as sets that are small enough for a command."""
    return [
        SequenceSet(ranges[first : first + _MOST_RANGES])
        for start in range(0, len(ids), _MOST_IDS)
        for ranges in (ids_of(ids[start : start + _MOST_IDS]).ranges,)
        for first in range(0, len(ranges), _MOST_RANGES)
    ]


def _one(message: Transferred) -> SequenceSet:
    return SequenceSet(((message.command_id, message.command_id),))


def _parts(message: Transferred) -> tuple[amqp10.DeliveryProperties, amqp.BasicProperties]:
    delivery = content = None
    structs = message.structs if message.quick is None else decode_header(message.header)
    for struct in structs:
        if isinstance(struct, amqp10.DeliveryProperties):
            delivery = struct
        elif isinstance(struct, amqp10.MessageProperties):
            content = struct
    return delivery or amqp10.DeliveryProperties(), to_canonical(delivery, content, lenient=True)


def _route(delivery: amqp10.DeliveryProperties) -> tuple[str, str]:
    """Exchange and routing key."""
    exchange, key = delivery.exchange or b"", delivery.routing_key or b""
    return exchange.decode("utf-8", "surrogateescape"), key.decode("utf-8", "surrogateescape")
