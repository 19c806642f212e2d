"""From a method on the wire to the operation that a policy judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amqpgate.policy.engine.operations import OPERATIONS, Entries, MessageContent, Operation, Principal
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table

#: Operations of which nothing more is judged than that they are asked for.
_BARE: Final = frozenset(name for name, operation in OPERATIONS.items() if not operation.attributes)


def operation_of(method: Method, principal: Principal, last_queue: str) -> Operation:
    """What ``method`` asks for.

    ``last_queue`` is what an empty queue name stands for: the queue declared last on the channel
    (AMQP 0-9-1, queue.bind.queue); an empty routing key goes with it.
    """
    if method.NAME in _BARE:
        return Operation(principal, method.NAME)
    match method:
        case amqp.BasicPublish() as m:
            return Operation(principal, m.NAME, exchange=m.exchange, routing_key=m.routing_key)
        case amqp.QueueDeclare() as m:
            # An empty name asks for a new queue; only a passive declare means the last one.
            return Operation(
                principal,
                m.NAME,
                queue=_queue(m.queue, last_queue) if m.passive else m.queue,
                arguments=_arguments(m.arguments, ignored=m.passive),
                passive=m.passive,
            )
        case amqp.QueueBind() | amqp.QueueUnbind() as m:
            key = m.routing_key if m.queue or m.routing_key else last_queue
            return Operation(
                principal,
                m.NAME,
                queue=_queue(m.queue, last_queue),
                exchange=m.exchange,
                routing_key=key,
                arguments=_arguments(m.arguments),
            )
        case amqp.BasicConsume() as m:
            return Operation(
                principal, m.NAME, queue=_queue(m.queue, last_queue), arguments=_arguments(m.arguments)
            )
        case amqp.QueuePurge() | amqp.QueueDelete() | amqp.BasicGet() as m:
            return Operation(principal, m.NAME, queue=_queue(m.queue, last_queue))
        case amqp.ExchangeDeclare() as m:
            return Operation(
                principal,
                m.NAME,
                exchange=m.exchange,
                arguments=_arguments(m.arguments, ignored=m.passive),
                passive=m.passive,
            )
        case amqp.ExchangeDelete() as m:
            return Operation(principal, m.NAME, exchange=m.exchange)
        case amqp.ExchangeBind() | amqp.ExchangeUnbind() as m:
            return Operation(
                principal,
                m.NAME,
                exchange=m.source,
                destination=m.destination,
                routing_key=m.routing_key,
                arguments=_arguments(m.arguments),
            )
        case amqp.BasicRecoverAsync():
            return Operation(principal, amqp.BasicRecover.NAME)
    raise AssertionError(f"{method.NAME} is in no policy's table")


def _queue(name: str, last: str) -> str:
    return name or last


def _arguments(table: Table, *, ignored: bool = False) -> Mapping[str, object]:
    """RabbitMQ takes no notice of the arguments of a passive declare."""
    return {} if ignored else entries_of(table)


def entries_of(table: Table) -> Entries:
    """The entries of a table as policies judge them: ordinary Python, and no entry left out, at any depth."""
    return Entries((name, _plain(field)) for name, field in table)


def _plain(field: Field) -> object:
    if isinstance(field.value, Table):
        return entries_of(field.value)
    if isinstance(field.value, tuple):
        return [_plain(item) for item in field.value]
    return field.plain


def content_of(header: ContentHeader) -> MessageContent:
    """What a policy judges of a content header."""
    properties: dict[str, str | int] = {}
    headers: Mapping[str, object] = {}
    for field in attrs.fields(amqp.BasicProperties):
        value = getattr(header.properties, field.name)
        if isinstance(value, Table):
            headers = entries_of(value)
        elif value is not None:
            properties[field.name] = value
    return MessageContent(header.body_size, properties, headers)
