"""Exchanges, queues and bindings, as a client of 0-9-1 asks a 0-10 broker for them.

============================  =======================================================================
0-9-1                         0-10
============================  =======================================================================
queue.declare                 queue.declare, then queue.query for the counts; "" gets a name here; 406 where
                              durable or auto-delete are others, which 0-10 does not look at
the same, passive             queue.query: 404 where the answer has no name
queue.delete                  queue.query for the count, 0 if there is no queue, as with RabbitMQ;
                              message.cancel for consumers of this channel; queue.delete
queue.purge                   queue.query for the count, queue.purge
queue.bind, unbind            exchange.bind, unbind, with a key of its own for each set of arguments that
                              headers are compared with
exchange.declare              exchange.declare, then exchange.query, as for queues; of those that are the
                              broker's own exchange.query alone; passive: 404 where it is not found
exchange.delete               exchange.query, then exchange.delete if there is one; 540 for if-unused where
                              the broker does not look
exchange.bind, unbind         540: 0-10 binds queues only
============================  =======================================================================

A queue that is "" is the last that was declared on the channel. The default exchange is refused with 403, as
by RabbitMQ.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.bridge.v0_10.arguments import (
    exchange_bind,
    exchange_declare,
    exchange_unbind,
    queue_declare,
)
from amqpgate.bridge.v0_10.broker_consuming import ChannelConsuming
from amqpgate.bridge.v0_10.broker_link import ChannelLink, Steps
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.structs import Struct, Unknown

_MOST_COUNT: Final = 0xFFFF_FFFF
#: Exchanges that are a broker's own.
_RESERVED: Final = ("amq.", "qpid.")


class ChannelDeclaring:
    """See the module. The session's name is unique in the broker: names that are made up have it."""

    __slots__ = ("_consuming", "_last_queue", "_link", "_made")

    def __init__(self, link: ChannelLink, consuming: ChannelConsuming) -> None:
        self._link = link
        self._consuming = consuming
        self._last_queue = ""
        self._made = 0

    def queue_of(self, name: str) -> str:
        """The queue that is meant. Violation 404 for "" before any was declared."""
        if not name and not self._last_queue:
            raise ProtocolViolation(404, "no previously declared queue")
        return name or self._last_queue

    def steps(self, method: Method) -> Steps | None:
        """What the method comes to; None if it is none of these."""
        match method:
            case amqp.QueueDeclare():
                return self._declare_queue(method)
            case amqp.QueueDelete():
                return self._delete_queue(method)
            case amqp.QueuePurge():
                return self._purge(method)
            case amqp.QueueBind():
                return self._bind(method)
            case amqp.QueueUnbind():
                return self._unbind(method)
            case amqp.ExchangeDeclare():
                return self._declare_exchange(method)
            case amqp.ExchangeDelete():
                return self._delete_exchange(method)
            case amqp.ExchangeBind() | amqp.ExchangeUnbind():
                raise ProtocolViolation(540, f"{method.NAME}: the broker binds no exchange to another one")
        return None

    # Queues.

    def _declare_queue(self, method: amqp.QueueDeclare) -> Steps:
        if method.passive:
            name = self.queue_of(method.queue)
            (known,) = yield (amqp10.QueueQuery(name.encode()),)
            if not _exists(known):
                raise ProtocolViolation(404, f"no queue '{name}'")
        else:
            name = method.queue
            if not name:
                self._made += 1
                # As RabbitMQ names them, if the broker takes that.
                prefix = "amq.gen" if self._link.abilities.takes_reserved_queues else "gen"
                name = f"{prefix}-{self._link.session.name.decode()}-{self._made}"
            declare = queue_declare(attrs.evolve(method, queue=name))
            _, known = yield declare, amqp10.QueueQuery(name.encode())
            if isinstance(known, amqp10.QueueQueryResult) and known.queue:
                _same(f"queue '{name}'", "durable", declare.durable, known.durable)
                _same(f"queue '{name}'", "auto_delete", declare.auto_delete, known.auto_delete)
        self._last_queue = name
        return amqp.QueueDeclareOk(name, *_counts(known))

    def _delete_queue(self, method: amqp.QueueDelete) -> Steps:
        name = self.queue_of(method.queue)
        query = amqp10.QueueQuery(name.encode())
        # Our own subscriptions would keep it in use; those of a queue that is auto-delete end it.
        *_, known = yield [query]
        count = 0
        cancels: list[amqp.BasicCancel] = []
        if _exists(known):
            if method.if_unused and self._consuming.consumes(name):
                raise ProtocolViolation(406, f"queue '{name}' in use")
            count, _ = _counts(known)
            commands, cancels = self._consuming.forget(name)
            *_, known = yield [*commands, query]
        if _exists(known):
            yield (amqp10.QueueDelete(name.encode(), method.if_unused, method.if_empty),)
        # RabbitMQ tells of its end before it tells consumers.
        if not method.no_wait:
            self._link.say(amqp.QueueDeleteOk(count))
        for cancel in cancels:
            self._link.say(cancel)
        return None

    def _purge(self, method: amqp.QueuePurge) -> Steps:
        name = self.queue_of(method.queue).encode()
        known, _ = yield amqp10.QueueQuery(name), amqp10.QueuePurge(name)
        count, _ = _counts(known)
        return amqp.QueuePurgeOk(count)

    def _bind(self, method: amqp.QueueBind) -> Steps:
        _not_default(method.exchange)
        yield (exchange_bind(attrs.evolve(method, queue=self.queue_of(method.queue))),)
        return amqp.QueueBindOk()

    def _unbind(self, method: amqp.QueueUnbind) -> Steps:
        _not_default(method.exchange)
        yield (exchange_unbind(attrs.evolve(method, queue=self.queue_of(method.queue))),)
        return amqp.QueueUnbindOk()

    # Exchanges.

    def _declare_exchange(self, method: amqp.ExchangeDeclare) -> Steps:
        name = method.exchange
        _not_default(name)
        query = amqp10.ExchangeQuery(name.encode())
        if method.passive:
            (known,) = yield (query,)
            if not _is_found(known):
                raise ProtocolViolation(404, f"no exchange '{name}'")
            return amqp.ExchangeDeclareOk()
        if name.startswith(_RESERVED):
            (known,) = yield (query,)
            if not _is_found(known):
                raise _reserved(name)
        else:
            _, known = yield exchange_declare(method), query
        if isinstance(known, amqp10.ExchangeQueryResult) and not known.not_found:
            _same(f"exchange '{name}'", "type", method.type, (known.type or b"").decode("utf-8", "replace"))
            if not name.startswith(_RESERVED):
                # Without a store nothing of qpidd's own is durable.
                _same(f"exchange '{name}'", "durable", method.durable, known.durable)
        return amqp.ExchangeDeclareOk()

    def _delete_exchange(self, method: amqp.ExchangeDelete) -> Steps:
        _not_default(method.exchange)
        if method.exchange.startswith(_RESERVED):
            raise _reserved(method.exchange)
        name = method.exchange.encode()
        (known,) = yield (amqp10.ExchangeQuery(name),)
        if _is_found(known):
            if method.if_unused and not self._link.abilities.keeps_used_exchanges:
                raise ProtocolViolation(540, "if-unused: the broker deletes exchanges that are in use, too")
            yield (amqp10.ExchangeDelete(name, method.if_unused),)
        return amqp.ExchangeDeleteOk()


def _same(what: str, argument: str, received: str | bool, current: str | bool) -> None:
    """Violation 406, in RabbitMQ's words, where something is there that was made with other arguments."""
    if received != current:
        said, has = (
            str(value).lower() if isinstance(value, bool) else value for value in (received, current)
        )
        raise ProtocolViolation(
            406, f"inequivalent arg '{argument}' for {what}: received '{said}' but current is '{has}'"
        )


def _reserved(exchange: str) -> ProtocolViolation:
    prefix = exchange.partition(".")[0]
    return ProtocolViolation(403, f"exchange name '{exchange}' contains reserved prefix '{prefix}.*'")


def _not_default(exchange: str) -> None:
    if not exchange:
        raise ProtocolViolation(403, "operation not permitted on the default exchange")


def _exists(known: Struct | Unknown | None) -> bool:
    return isinstance(known, amqp10.QueueQueryResult) and bool(known.queue)


def _is_found(known: Struct | Unknown | None) -> bool:
    return isinstance(known, amqp10.ExchangeQueryResult) and not known.not_found


def _counts(known: Struct | Unknown | None) -> tuple[int, int]:
    """Messages and consumers."""
    if not isinstance(known, amqp10.QueueQueryResult):
        return 0, 0
    return min(known.message_count or 0, _MOST_COUNT), min(known.subscriber_count or 0, _MOST_COUNT)
