"""Queries of 0-10: what passive declares can tell, and what is known of what passed through here.

Whether an exchange or a queue is there is exact, and so are a queue's counts. 0-9-1 has no question for the
type of an exchange; RabbitMQ says it where it refuses a declaration, so it is asked to do what it refuses:

1. Declare it as ``headers``, durable, with an alternate exchange that nobody has.
2. It answers 406 and what differs first, of type, durable, auto-delete, internal, arguments. So the type is
   told, or it is ``headers``; and whether it is durable is told now, or by the same question with its type.

Such a declaration is never granted, unless the exchange has gone meanwhile: then it is deleted again.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import define, evolve

from amqpgate.bridge.v0_10.arguments import arguments_of
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.steps import Part, Steps, ask, says, text_of
from amqpgate.bridge.v0_10.subscribers import Subscribers
from amqpgate.bridge.v0_10.topology import Binding, KnownExchange, KnownTopology
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.structs import Struct

_TYPE: Final = re.compile(r"inequivalent arg 'type' .* current is '([^']*)'", re.DOTALL)
_NOT_DURABLE: Final = "inequivalent arg 'durable'"
#: What no exchange has for its own.
_UNLIKELY: Final = Table.of({"alternate-exchange": "amqpgate.asks.for.the.type"})
_FIRST_GUESS: Final = "headers"


@define(eq=False)
class Queries:
    """What one session asks."""

    topology: KnownTopology
    subscribers: Subscribers

    def exchange_query(self, command: amqp10.ExchangeQuery) -> Steps:
        """exchange.query."""
        name = text_of(command.name, "the exchange")
        if name:
            found = yield from _is_there(amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))
            if not found:
                self.topology.drop_exchange(name)
                return amqp10.ExchangeQueryResult(not_found=True)
        known = self.topology.exchange(name)
        if known is None:
            known = yield from self._probe(name)
            if known is None:
                return amqp10.ExchangeQueryResult()
            self.topology.put_exchange(name, known)
        return amqp10.ExchangeQueryResult(type=known.type, durable=known.durable, arguments=known.arguments)

    def exchange_bound(self, command: amqp10.ExchangeBound) -> Steps:
        """exchange.bound. What nobody can tell counts as bound: clients that ask declare what is not."""
        exchange = text_of(command.exchange, "the exchange")
        queue = text_of(command.queue, "the queue")
        has_exchange = has_queue = True
        if exchange:
            has_exchange = yield from _is_there(
                amqp.ExchangeDeclare(exchange=exchange, type="direct", passive=True)
            )
        if queue:
            has_queue = yield from _is_there(amqp.QueueDeclare(queue=queue, passive=True))
        if not (has_exchange and has_queue):
            return amqp10.ExchangeBoundResult(
                exchange_not_found=not has_exchange, queue_not_found=not has_queue
            )
        return self._matches(exchange, queue, command)

    def queue_query(self, command: amqp10.QueueQuery) -> Steps:
        """queue.query. A queue that is not there has a result without fields."""
        name = text_of(command.queue, "the queue")
        if not name:
            return amqp10.QueueQueryResult()
        reply = yield from ask(amqp.QueueDeclare(queue=name, passive=True))
        if says(reply, 404):
            self.topology.drop_queue(name)
            return amqp10.QueueQueryResult()
        if says(reply, 405):
            return amqp10.QueueQueryResult(
                queue=command.queue, exclusive=True, message_count=0, subscriber_count=0
            )
        if isinstance(reply, amqp.ChannelClose):
            raise violation_of_channel_close(reply)
        assert isinstance(reply, amqp.QueueDeclareOk)
        result = amqp10.QueueQueryResult(
            queue=command.queue,
            message_count=reply.message_count,
            subscriber_count=reply.consumer_count + self.subscribers.unknown_to_broker(name),
        )
        known = self.topology.queue(name)
        if known is None:
            return result
        return evolve(
            result,
            alternate_exchange=known.alternate_exchange,
            durable=known.durable,
            exclusive=known.exclusive,
            auto_delete=known.auto_delete,
            arguments=known.arguments,
        )

    def _matches(self, exchange: str, queue: str, command: amqp10.ExchangeBound) -> Struct:
        """The answer of what is there both: empty keys and arguments are not asked for."""
        key = text_of(command.binding_key, "the binding")
        if not exchange:
            return amqp10.ExchangeBoundResult(
                key_not_matched=command.binding_key is not None and bool(queue) and key != queue
            )
        everything = self.topology.all_bindings_at(exchange)
        if everything is not None:
            return _matches_exactly(tuple(everything), queue, key, arguments_of(command.arguments))
        if not queue:
            return amqp10.ExchangeBoundResult()
        known = self.topology.queue(queue)
        if known is None or not known.exclusive:
            # Somebody else may have bound it.
            is_gone = bool(key) and self.topology.is_undone(Binding(queue, exchange, key))
            return amqp10.ExchangeBoundResult(key_not_matched=is_gone)
        bindings = self.topology.bindings_of(queue, exchange)
        if not bindings:
            return amqp10.ExchangeBoundResult(queue_not_matched=True)
        wanted = arguments_of(command.arguments)
        return amqp10.ExchangeBoundResult(
            key_not_matched=bool(key) and key not in bindings,
            args_not_matched=bool(wanted.entries) and wanted not in bindings.values(),
        )

    def _probe(self, name: str) -> Part[KnownExchange | None]:
        """Type and durability of an exchange that is there; None if the broker does not tell."""
        kind = _FIRST_GUESS
        for _ in range(2):
            reply = yield from ask(
                amqp.ExchangeDeclare(exchange=name, type=kind, durable=True, arguments=_UNLIKELY)
            )
            if not isinstance(reply, amqp.ChannelClose):
                yield from ask(amqp.ExchangeDelete(exchange=name))
                return None
            if reply.reply_code != 406:
                return None
            told = _TYPE.search(reply.reply_text)
            if told is None:
                return KnownExchange(kind.encode(), durable=_NOT_DURABLE not in reply.reply_text)
            kind = told[1]
        return None


def _matches_exactly(
    bindings: tuple[tuple[Binding, Table], ...], queue: str, key: str, wanted: Table
) -> amqp10.ExchangeBoundResult:
    """The answer of who knows all bindings: key and arguments are the queue's, if it is bound at all."""
    of_queue = tuple([one for one in bindings if one[0].queue == queue])
    among, asked = of_queue or bindings, dict(wanted)
    return amqp10.ExchangeBoundResult(
        queue_not_matched=bool(queue) and not of_queue,
        key_not_matched=bool(key) and all(binding.key != key for binding, _ in among),
        args_not_matched=bool(asked) and all(dict(arguments) != asked for _, arguments in among),
    )


def _is_there(passive: Method) -> Part[bool]:
    """Whether a passive declare is granted. A queue that is another's is there."""
    reply = yield from ask(passive)
    if says(reply, 404):
        return False
    if isinstance(reply, amqp.ChannelClose) and not says(reply, 405):
        raise violation_of_channel_close(reply)
    return True
