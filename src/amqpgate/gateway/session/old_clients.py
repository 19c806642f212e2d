"""What RabbitMQ refuses old clients, and their standard does not: done where it comes to the same.

==============================================  ============================================================
the client                                      the broker hears
==============================================  ============================================================
declares an exchange that every broker has      the same with that exchange's own properties: a server ignores
                                                durable and auto-delete of what exists (exchange.declare)
declares again an exclusive queue of its own    the same with the properties that the queue has, likewise
basic.recover without requeue, where all that   basic.recover with it, which is the same: nobody else can get
it has is of exclusive queues, or consumers     the messages
tx.rollback (Qpid's), where it has no message   tx.rollback, then basic.recover: Qpid delivers again what was
that it has not acknowledged                    acknowledged in a transaction
==============================================  ============================================================

==============================================  ============================================================
the broker closes the channel                   Qpid's client hears
==============================================  ============================================================
exchange.declare with another type, or of a     connection.close 530
reserved name
a queue without a name, where none is declared  connection.close 530, as its standard has it
==============================================  ============================================================

Clients that know RabbitMQ hear RabbitMQ's codes.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.bridge import Crossing
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

#: Exchanges that every broker has, all durable in RabbitMQ (AMQP 0-8, exchange.declare.type).
_PREDECLARED: Final = frozenset({"amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"})

#: Exclusive queues that are known as a session's own. Of one with more, the rest count as others'.
MOST_QUEUES: Final = 1024

#: RabbitMQ's words for what Qpid ends a connection for, by code and method.
_HARSHER: Final = {
    (406, amqp.ExchangeDeclare.INDEX): "inequivalent arg 'type'",
    (403, amqp.ExchangeDeclare.INDEX): "reserved prefix",
    (404, amqp.BasicConsume.INDEX): "no previously declared queue",
    (404, amqp.BasicGet.INDEX): "no previously declared queue",
    (404, amqp.QueueBind.INDEX): "no previously declared queue",
    (404, amqp.QueuePurge.INDEX): "no previously declared queue",
    (404, amqp.QueueDelete.INDEX): "no previously declared queue",
}


@define(eq=False)
class OldClients:
    """Of one session."""

    crossing: Crossing
    channels: SessionChannels
    #: Exclusive queues that the client has declared, as it did.
    _queues: dict[str, amqp.QueueDeclare] = attrs.field(factory=dict, init=False)
    #: Channels whose rollback is followed by a recover.
    _redelivering: set[int] = attrs.field(factory=set, init=False)

    @property
    def is_qpids(self) -> bool:
        """Whether the client is Qpid's, and its broker is not."""
        return self.crossing.is_patient and self.crossing.client.is_qpids

    def asks(self, number: int, method: Method) -> None:
        """The client's method is about to pass."""
        match method:
            case amqp.QueueDelete(queue=queue):
                self._queues.pop(queue, None)
            case amqp.BasicCancel():
                # The last consumer of a queue may take it along, and then its name is anybody's.
                self._queues.clear()
            case amqp.TxRollback() if self.is_qpids and self.channels.table.unacked(number) == 0:
                self._redelivering.add(number)

    def instead(self, number: int, method: Method) -> tuple[Method, ...]:
        """What passes in the method's place, in order."""
        if not self.crossing.is_patient:
            return (method,)
        match method:
            case amqp.ExchangeDeclare(exchange=name, passive=False) if name in _PREDECLARED:
                return (
                    attrs.evolve(method, durable=True, auto_delete=False, internal=False, arguments=Table()),
                )
            case amqp.QueueDeclare(queue=queue, passive=False):
                return (self._declare(queue, method),)
            case amqp.BasicRecover(requeue=False) | amqp.BasicRecoverAsync(requeue=False) if self._is_alone(
                number
            ):
                return (attrs.evolve(method, requeue=True),)
            case amqp.TxRollback() if number in self._redelivering:
                self._redelivering.discard(number)
                return method, amqp.BasicRecoverAsync(requeue=True)
        return (method,)

    def _declare(self, queue: str, method: amqp.QueueDeclare) -> amqp.QueueDeclare:
        known = self._queues.get(queue)
        if known is not None:
            return attrs.evolve(
                method,
                durable=known.durable,
                exclusive=True,
                auto_delete=known.auto_delete,
                arguments=known.arguments,
            )
        if queue and method.exclusive and len(self._queues) < MOST_QUEUES:
            self._queues[queue] = method
        return method

    def _is_alone(self, number: int) -> bool:
        """Whether all that the channel has was delivered to consumers that share their queue with nobody."""
        channel = self.channels.states[number]
        consuming = channel.consuming
        if consuming is None or channel.gets is not None or consuming.has_more:
            return False
        if consuming.count != len(consuming.tags) or consuming.count != self.crossing.prefetch.consumers(
            number
        ):
            return False
        queues = [
            operation.queue
            for _, each in self.channels.states.made()
            for consumer in each.consuming or ()
            for operation in consumer.operations
        ]
        return all(
            operation.queue in self._queues and queues.count(operation.queue) == 1
            for consumer in consuming
            for operation in consumer.operations
        )

    def harsher(self, method: amqp.ChannelClose) -> ProtocolViolation | None:
        """What ends the connection of the client, where RabbitMQ closes its channel."""
        if method.class_id << 16 | method.method_id == amqp.QueueDeclare.INDEX:
            # What was declared is not the client's after all.
            self._queues.clear()
        if not self.is_qpids:
            return None
        words = _HARSHER.get((method.reply_code, method.class_id << 16 | method.method_id))
        if words is None or words not in method.reply_text:
            return None
        _, _, text = method.reply_text.partition(" - ")
        return ProtocolViolation(530, text, class_id=method.class_id, method_id=method.method_id)
