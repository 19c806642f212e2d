"""The sending half of a channel: publish, returns, confirms; and transactions, which bind both halves."""

from __future__ import annotations

import re
from typing import Final

from attrs import define, evolve, field, frozen

from amqpgate.broker.agenda import Agenda
from amqpgate.broker.arguments import expiry_error
from amqpgate.broker.consuming import Consuming, Delivery, DeliveryOutcome
from amqpgate.broker.messages import BrokerMessage, make_message
from amqpgate.broker.peers import Peer
from amqpgate.broker.queues import BrokerQueue
from amqpgate.broker.vhost import REPLY_TO, VirtualHost
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp

_NO_ROUTE: Final = 312
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


@frozen(eq=False)
class Routed:
    """A message and the names of the queues that it goes to."""

    message: BrokerMessage
    queues: list[str]
    mandatory: bool


@define(eq=False, repr=False)
class Transaction:
    """What is to happen at tx.commit: publishes first, then acks and rejects."""

    publishes: list[Routed] = field(factory=list)
    settlements: list[tuple[list[Delivery], DeliveryOutcome]] = field(factory=list)


@define(eq=False, repr=False)
class BrokerPublishing:
    """One channel's publishes."""

    number: int
    peer: Peer
    vhost: VirtualHost
    agenda: Agenda
    consuming: Consuming
    confirms: bool = False
    transaction: Transaction | None = None
    #: Publishes since confirm.select: the number that the next confirm carries.
    _published: int = 0

    def publish(self, method: amqp.BasicPublish, properties: amqp.BasicProperties, body: bytes) -> None:
        """basic.publish with its content.

        403 (internal exchange), 404 (exchange), 406 (properties; no room and no confirms), 540 (immediate).
        """
        if method.immediate:
            raise ProtocolViolation(540, "immediate=true")
        exchange = self.vhost.exchange(method.exchange)
        if exchange.internal:
            where = self.vhost.describe("exchange", exchange.name)
            raise ProtocolViolation(403, f"cannot publish to internal {where}")
        properties = self._with_own_reply_to(properties)
        self._check_user(properties)
        _check_expiration(properties)
        message = make_message(method.exchange, method.routing_key, properties, body)
        routed = Routed(message, self.vhost.route(exchange, message), method.mandatory)
        if self.confirms:
            self._published += 1
        memory = self.vhost.memory
        is_kept = self.transaction is not None or bool(self._found(routed))
        if is_kept and not memory.has_room_for(message):
            if not self.confirms:
                raise memory.refusal
            self.peer.send(self.number, amqp.BasicNack(self._published))
        elif self.transaction is not None:
            memory.hold(message)
            self.transaction.publishes.append(routed)
        else:
            self._deliver(routed)
            if self.confirms:
                self.peer.send(self.number, amqp.BasicAck(self._published))

    def _deliver(self, routed: Routed) -> None:
        found = self._found(routed)
        for queue in found:
            queue.publish(routed.message)
            self.agenda.run(queue)
        if routed.mandatory and not found:
            message = routed.message
            self.peer.send_content(
                self.number,
                amqp.BasicReturn(_NO_ROUTE, "NO_ROUTE", message.exchange, message.routing_key),
                message.properties,
                message.body,
            )

    def _found(self, routed: Routed) -> list[BrokerQueue]:
        return [self.vhost.queues[name] for name in routed.queues if name in self.vhost.queues]

    def _with_own_reply_to(self, properties: amqp.BasicProperties) -> amqp.BasicProperties:
        if properties.reply_to != REPLY_TO:
            return properties
        consumer = self.consuming.reply_consumer
        if consumer is None:
            raise ProtocolViolation(406, "fast reply consumer does not exist")
        return evolve(properties, reply_to=consumer.name)

    def _check_user(self, properties: amqp.BasicProperties) -> None:
        if properties.user_id is not None and properties.user_id != self.peer.user:
            raise ProtocolViolation(
                406,
                f"user_id property set to '{properties.user_id}' but authenticated user was"
                f" '{self.peer.user}'",
            )

    # Confirm and transaction mode exclude each other.

    def select_confirms(self, method: amqp.ConfirmSelect) -> None:
        """confirm.select; 406 in transaction mode."""
        if self.transaction is not None:
            raise ProtocolViolation(406, "cannot switch from tx to confirm mode")
        self.confirms = True
        if not method.no_wait:
            self.peer.send(self.number, amqp.ConfirmSelectOk())

    def select_transactions(self) -> None:
        """tx.select; 406 in confirm mode."""
        if self.confirms:
            raise ProtocolViolation(406, "cannot switch from confirm to tx mode")
        if self.transaction is None:
            self.transaction = Transaction()
        self.peer.send(self.number, amqp.TxSelectOk())

    def settle(self, deliveries: list[Delivery], outcome: DeliveryOutcome) -> None:
        """An ack, nack or reject: now, or at the commit."""
        if self.transaction is None:
            self.consuming.settle(deliveries, outcome)
        else:
            self.transaction.settlements.append((deliveries, outcome))

    def commit(self) -> None:
        """tx.commit; 406 outside of transaction mode."""
        done = self._begin_anew()
        for routed in done.publishes:
            self._deliver(routed)
            self.vhost.memory.release(routed.message)
        for deliveries, outcome in done.settlements:
            self.consuming.settle(deliveries, outcome)
        self.peer.send(self.number, amqp.TxCommitOk())

    def rollback(self) -> None:
        """tx.rollback; 406 outside of transaction mode. What was acked has to be acked again."""
        self._undo(self._begin_anew())
        self.peer.send(self.number, amqp.TxRollbackOk())

    def close(self) -> None:
        """The channel is gone, and an open transaction with it."""
        if self.transaction is not None:
            self._undo(self.transaction)

    def _begin_anew(self) -> Transaction:
        if self.transaction is None:
            raise ProtocolViolation(406, "channel is not transactional")
        old, self.transaction = self.transaction, Transaction()
        return old

    def _undo(self, transaction: Transaction) -> None:
        for routed in transaction.publishes:
            self.vhost.memory.release(routed.message)
        for deliveries, _outcome in transaction.settlements:
            self.consuming.put_back(deliveries)


def _check_expiration(properties: amqp.BasicProperties) -> None:
    """Messages do not expire here, but an expiration that RabbitMQ refuses is refused."""
    text = properties.expiration
    if text is None:
        return
    number = _INTEGER.match(text)
    if number is None:
        wrong: str | None = "no_integer"
    elif number.end() < len(text):
        wrong = f'{{leftover_string,"{text[number.end() :]}"}}'
    else:
        wrong = expiry_error(int(number[0]))
    if wrong is not None:
        raise ProtocolViolation(406, f"invalid expiration '{text}': {wrong}")
