"""From a method on the wire to the operation that a policy judges."""

from __future__ import annotations

from amqpgate.policy import Operation, Principal
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


def operation_of(method: Method, principal: Principal, last_queue: str) -> Operation:
    """What ``method`` asks for.

    ``last_queue`` is what an empty queue name stands for: the queue declared last on the channel
    (AMQP 0-9-1, queue.bind.queue); an empty routing key goes with it.
    """
    match method:
        case amqp.BasicPublish() as m:
            return Operation(principal, m.NAME, exchange=m.exchange, routing_key=m.routing_key)
        case amqp.QueueDeclare() as m:
            # An empty name asks for a new queue; only a passive declare means the last one.
            return Operation(principal, m.NAME, queue=_queue(m.queue, last_queue) if m.passive else m.queue)
        case amqp.QueueBind() | amqp.QueueUnbind() as m:
            key = m.routing_key if m.queue or m.routing_key else last_queue
            return Operation(
                principal, m.NAME, queue=_queue(m.queue, last_queue), exchange=m.exchange, routing_key=key
            )
        case amqp.QueuePurge() | amqp.QueueDelete() | amqp.BasicConsume() | amqp.BasicGet() as m:
            return Operation(principal, m.NAME, queue=_queue(m.queue, last_queue))
        case amqp.ExchangeDeclare() | amqp.ExchangeDelete() as m:
            return Operation(principal, m.NAME, exchange=m.exchange)
        case amqp.ExchangeBind() | amqp.ExchangeUnbind() as m:
            return Operation(
                principal,
                m.NAME,
                exchange=m.source,
                destination=m.destination,
                routing_key=m.routing_key,
            )
    raise AssertionError(f"{method.NAME} is in no policy's table")


def _queue(name: str, last: str) -> str:
    return name or last
