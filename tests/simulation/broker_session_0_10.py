"""One session of AMQP 0-10 at the model broker: publishes, subscriptions with their credit, transactions."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import attrs

from amqpgate.protocol.v0_10.events import IncomingBody, IncomingCommand, IncomingHeader
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import encode_struct32
from amqpgate.wire.v0_10.sequences import SequenceSet, ids_of
from amqpgate.wire.v0_10.structs import Command, Struct, Unknown
from tests.simulation.entries import Delivery, Message, Source
from tests.simulation.held import Channel, Consumer
from tests.simulation.ledger import Violation
from tests.simulation.messages_0_10 import content_of, numbered

if TYPE_CHECKING:
    from tests.simulation.broker_end_0_10 import BrokerEnd010

_INFINITE = 0xFFFFFFFF
_EXPLICIT = 0
_CREDIT, _WINDOW = 0, 1
_MESSAGES = 0
_UNROUTABLE = 1
_NOT_FOUND = 404


@attrs.define(eq=False)
class Subscription(Consumer):
    """Of a session."""

    credit: int = 0
    has_window: bool = False

    @property
    def is_full(self) -> bool:
        return not self.credit

    def grant(self, count: int) -> None:
        """So many more, or no end of them."""
        endless = _INFINITE in (count, self.credit)
        self.credit = _INFINITE if endless else self.credit + count

    def take(self) -> None:
        """One is sent."""
        if self.credit != _INFINITE:
            self.credit -= 1


class BrokerSession010(Channel):
    """See the module."""

    def __init__(self, end: BrokerEnd010, number: int, session: AttachedSession) -> None:
        super().__init__(number)
        self.end, self.broker, self.ledger = end, end.broker, end.broker.world.ledger
        self.session = session
        #: The transfer that comes: its command, what came of it.
        self._coming: tuple[IncomingCommand, tuple[Struct | Unknown, ...], list[bytes]] | None = None
        #: By the ids of our transfers: their tags; and those of windows, until they are complete.
        self._tags: dict[int, int] = {}
        self._windows: dict[int, Subscription] = {}

    # -- what comes --------------------------------------------------------------------------------

    def commanded(self, event: IncomingCommand) -> None:
        """A command."""
        command = event.command
        if isinstance(command, amqp.MessageTransfer):
            self._coming = event, (), []
            if not event.has_content:
                raise Violation(f"{self.end.name} got a message without a header")
            return
        result = self._do(command)
        if result is not None:
            self.session.send(
                amqp.ExecutionResult(command_id=event.command_id, value=encode_struct32(result))
            )
        if not isinstance(command, amqp.ExecutionSync):
            self.session.finish(event.command_id)

    def header(self, event: IncomingHeader) -> None:
        """What stands before a message."""
        assert self._coming is not None
        self._coming = self._coming[0], event.structs, []
        if not event.has_body:
            self._came()

    def body(self, event: IncomingBody) -> None:
        """A piece of a message."""
        assert self._coming is not None
        self._coming[2].append(event.chunk)
        if event.is_last:
            self._came()

    def _do(self, command: Command) -> Struct | None:
        """Do it; its result, if it has one."""
        broker = self.broker
        match command:
            case amqp.QueueDeclare(queue=name):
                broker.queues.setdefault(_text(name), deque())
                broker.consumers.setdefault(_text(name), deque())
            case amqp.QueueQuery(queue=name):
                waiting = broker.queues.get(_text(name))
                if waiting is None:
                    return amqp.QueueQueryResult()
                return amqp.QueueQueryResult(
                    queue=name,
                    durable=True,
                    message_count=len(waiting),
                    subscriber_count=len(broker.consumers[_text(name)]),
                )
            case amqp.ExchangeQuery():
                return amqp.ExchangeQueryResult(type=b"topic", durable=True)
            case amqp.ExchangeBound():
                return amqp.ExchangeBoundResult()
            case amqp.MessageSubscribe():
                self._subscribe(command)
            case amqp.MessageSetFlowMode(destination=name, flow_mode=mode):
                self._subscription(name).has_window = mode == _WINDOW
            case amqp.MessageFlow(destination=name, unit=unit, value=value):
                if (unit or 0) == _MESSAGES:
                    self._subscription(name).grant(value or 0)
                    broker.serve(self._subscription(name).queue)
            case amqp.MessageStop(destination=name):
                self._subscription(name).credit = 0
            case amqp.MessageFlush(destination=name):
                consumer = self._subscription(name)
                broker.serve_one(self.end, self, consumer)
                consumer.credit = 0
            case amqp.MessageCancel(destination=name):
                consumer = self._subscription(name)
                del self.consumers[consumer.tag]
                broker.cancel(self.end, self, consumer)
            case amqp.MessageAccept(transfers=transfers):
                self._settle(transfers, "ack")
            case amqp.MessageRelease(transfers=transfers):
                self._settle(transfers, "requeue")
            case amqp.MessageReject(transfers=transfers):
                self._settle(transfers, "discard")
            case amqp.TxSelect():
                self.publishes = self.publishes or []
            case amqp.TxCommit() | amqp.TxRollback():
                self._end_transaction(is_commit=isinstance(command, amqp.TxCommit))
            case amqp.ExecutionSync():
                pass
            case _:
                raise Violation(f"{self.end.name} heard {command}")
        return None

    def completed(self, commands: SequenceSet) -> None:
        """What was sent is complete: windows move."""
        for lower, upper in commands.ranges:
            for number in range(lower, upper + 1):
                consumer = self._windows.pop(number, None)
                if consumer is not None and not consumer.is_over:
                    consumer.grant(1)
                    self.broker.serve(consumer.queue)

    # -- publishes ---------------------------------------------------------------------------------

    def _came(self) -> None:
        """A message is whole."""
        assert self._coming is not None
        (event, structs, chunks), self._coming = self._coming, None
        transfer = event.command
        assert isinstance(transfer, amqp.MessageTransfer)
        properties, content = content_of(structs, b"".join(chunks))
        exchange, key = _text(transfer.destination), _text(properties.routing_key)
        message = self.ledger.arrive(self.broker.name, exchange, key, content)
        self.broker.stored[message.number] = next(
            one for one in structs if isinstance(one, amqp.MessageProperties)
        )
        if not self.broker.has_queue_for(message) and not properties.discard_unroutable:
            message.returned = message.mandatory
            # Who has not asked for it does not hear of it.
            if (transfer.accept_mode or 0) == _EXPLICIT:
                self.session.send(amqp.MessageReject(transfers=ids_of([event.command_id]), code=_UNROUTABLE))
        elif self.publishes is None:
            self.broker.route(message)
        if self.publishes is not None:
            self.publishes.append(message)
        broker = self.broker
        self.unconfirmed[event.command_id] = message
        broker.world.clock.after(
            broker.random.expovariate(1 / broker.slowness), lambda: self._confirm(event.command_id)
        )

    def _confirm(self, number: int) -> None:
        """A transfer is complete."""
        message = self.unconfirmed.pop(number, None)
        if message is None or self.end.is_over or self.end.channels.get(self.number) is not self:
            return
        message.confirmed = "ack"
        self.session.finish(number, tell=self.broker.random.random() < 0.5)
        self.end.flush()

    # -- transactions ------------------------------------------------------------------------------

    def _end_transaction(self, *, is_commit: bool) -> None:
        if self.publishes is None:
            raise Violation(f"{self.end.name} heard of a transaction that nobody has begun")
        messages: list[Message] = self.publishes
        self.publishes = []
        self.ledger.transacted(self.end.name, messages, [], is_commit=is_commit)
        for message in messages:
            if is_commit and not message.returned:
                self.broker.route(message)

    # -- deliveries --------------------------------------------------------------------------------

    def _subscription(self, name: bytes | None) -> Subscription:
        consumer = self.consumers.get(_text(name))
        if not isinstance(consumer, Subscription):
            raise Violation(f"{self.end.name} heard of {name!r}, which is no subscription")
        return consumer

    def _subscribe(self, command: amqp.MessageSubscribe) -> None:
        queue, tag = _text(command.queue), _text(command.destination)
        if queue not in self.broker.queues:
            raise Violation(f"{self.end.name} heard of {queue!r}, which is no queue")
        if tag in self.consumers:
            raise Violation(f"{self.end.name} heard of another subscription {tag!r}")
        source = Source(f"{self.end.name} session {self.number} subscription {tag}", tag, self.delivered)
        consumer = Subscription(tag, queue, (command.accept_mode or 0) != _EXPLICIT, 0, source)
        self.consumers[tag] = consumer
        self.broker.consumers[queue].append((self.end, self, consumer))

    def deliver(self, consumer: Consumer, delivery: Delivery) -> None:
        """Send a message to a subscription."""
        assert isinstance(consumer, Subscription)
        consumer.take()
        content = self.ledger.content_of(delivery)
        delivered = amqp.DeliveryProperties(
            delivery_mode=content.properties.delivery_mode,
            redelivered=delivery.redelivered,
            exchange=self.ledger.exchange_of(delivery.message).encode(),
            routing_key=delivery.message.key.encode(),
        )
        message = numbered(self.broker.stored[delivery.message.number], delivery.number)
        transfer = amqp.MessageTransfer(
            destination=consumer.tag.encode(), accept_mode=int(consumer.no_ack), acquire_mode=0
        )
        number = self.session.send(transfer, [delivered, message], content.body)
        self._tags[number] = self.tag
        if consumer.has_window:
            self._windows[number] = consumer

    def _settle(self, transfers: SequenceSet | None, answer: str) -> None:
        back: list[Delivery] = []
        for lower, upper in transfers.ranges if transfers is not None else ():
            for number in range(lower, upper + 1):
                tag = self._tags.pop(number, None)
                if tag is None or tag not in self.held:
                    raise Violation(f"{self.end.name} heard {answer} of transfer {number}, which is not held")
                delivery, consumer = self.held.pop(tag)
                self.ledger.settle(delivery, answer, self.end.name)
                if consumer is not None:
                    consumer.held -= 1
                if answer == "requeue":
                    back.append(delivery)
                else:
                    self.broker.consumed += 1
        for delivery in reversed(back):
            self.broker.put_back(delivery)


def _text(name: bytes | None) -> str:
    return (name or b"").decode()
