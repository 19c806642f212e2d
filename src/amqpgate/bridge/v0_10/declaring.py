"""Exchanges, queues and bindings: the commands that make and unmake them, as questions of 0-9-1.

All of them are asked on channel "ask". What 0-10 does otherwise than RabbitMQ:

==================================================  ====================================================
declared again with other flags: taken as it is     406: asked once more, passive
another type, or another alternate exchange: 530    406
``amq.`` names: 530                                 403
an unknown type: 404                                503, for the whole connection: not asked at all
delete of what is not there: 404                    delete-ok: asked for first
names that are empty: 531, 542                      a new name, the last queue, the default exchange
unbind by key alone                                 with the arguments of bind: they are remembered
exclusive: one session's, locked until it ends      one connection's: locked here, too
exclusive without auto-delete: it stays             gone with the connection: declared as not exclusive
exclusive and auto-delete: gone with the session    exclusive, deleted when the session ends
==================================================  ====================================================
"""

from __future__ import annotations

from typing import Final

from attrs import define, evolve, field

from amqpgate.bridge.v0_10.arguments import bind_arguments, exchange_arguments, queue_arguments
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.link import ClientOptions
from amqpgate.bridge.v0_10.steps import Part, Steps, ask, insist, name_of, queue_of, says, text_of
from amqpgate.bridge.v0_10.topology import Binding, KnownExchange, KnownQueue, KnownTopology
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Table

_TYPES: Final = frozenset({"direct", "fanout", "topic", "headers"})
_RESERVED: Final = "amq."

#: How RabbitMQ begins to say what of a declaration is not as it was.
_INEQUIVALENT: Final = "inequivalent arg '"
#: What 0-10 does not look at when something is declared again.
_IGNORED: Final = tuple(
    f"{_INEQUIVALENT}{name}" for name in ("durable'", "auto_delete'", "exclusive'", "x-", "qpid.")
)
#: What it does not allow.
_NOT_ALLOWED: Final = (f"{_INEQUIVALENT}type'", f"{_INEQUIVALENT}alternate-exchange'")


@define(eq=False)
class Declares:
    """What one session declares. ``owner`` is who holds its locks."""

    topology: KnownTopology
    owner: object
    options: ClientOptions
    #: Queues that end with the session.
    _own_queues: dict[str, None] = field(factory=dict, init=False)

    def exchange_declare(self, command: amqp10.ExchangeDeclare) -> Steps:
        """exchange.declare."""
        name = name_of(command.exchange, "the exchange")
        kind = text_of(command.type, "the type")
        method = amqp.ExchangeDeclare(exchange=name, type=kind or "direct", passive=True)
        if not command.passive:
            if kind not in _TYPES and not kind.startswith("x-"):
                raise ProtocolViolation(404, f"no exchange type {kind!r}")
            method = amqp.ExchangeDeclare(
                exchange=name,
                type=kind,
                durable=command.durable,
                auto_delete=command.auto_delete,
                arguments=exchange_arguments(command, ignore_qpid=self.options.ignore_qpid_arguments),
            )
        reply = yield from ask(method)
        if isinstance(reply, amqp.ChannelClose):
            yield from self._again(reply, evolve(method, passive=True, arguments=EMPTY_TABLE), name)
        elif not command.passive:
            known = KnownExchange(kind.encode(), command.durable, command.arguments)
            self.topology.put_exchange(name, known)
        return None

    def exchange_delete(self, command: amqp10.ExchangeDelete) -> Steps:
        """exchange.delete."""
        name = name_of(command.exchange, "the exchange")
        yield from insist(amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))
        reply = yield from ask(amqp.ExchangeDelete(exchange=name, if_unused=command.if_unused))
        if isinstance(reply, amqp.ChannelClose):
            raise _reserved(reply, name)
        self.topology.drop_exchange(name)
        return None

    def exchange_bind(self, command: amqp10.ExchangeBind) -> Steps:
        """exchange.bind, of a queue. Without a key the key is empty, as with qpidd."""
        binding = self._binding(command)
        arguments = bind_arguments(command, ignore_qpid=self.options.ignore_qpid_arguments)
        yield from insist(_on(amqp.QueueBind, binding, arguments))
        self.topology.bind(binding, arguments)
        return None

    def exchange_unbind(self, command: amqp10.ExchangeUnbind) -> Steps:
        """exchange.unbind."""
        binding = self._binding(command)
        arguments = self.topology.arguments_of(binding) or EMPTY_TABLE
        yield from insist(_on(amqp.QueueUnbind, binding, arguments))
        self.topology.unbind(binding)
        return None

    def queue_declare(self, command: amqp10.QueueDeclare) -> Steps:
        """queue.declare."""
        name = name_of(command.queue, "the queue")
        self._check_lock(name)
        if command.passive:
            yield from insist(amqp.QueueDeclare(queue=name, passive=True))
            return None
        is_temporary = command.exclusive and command.auto_delete
        arguments = queue_arguments(command, ignore_qpid=self.options.ignore_qpid_arguments)
        # RabbitMQ would not wait for an auto-delete queue to expire.
        is_auto_delete = (
            command.auto_delete and not command.exclusive and arguments.field("x-expires") is None
        )
        method = amqp.QueueDeclare(
            queue=name,
            durable=command.durable,
            exclusive=is_temporary,
            auto_delete=is_auto_delete,
            arguments=arguments,
        )
        reply = yield from ask(method)
        if isinstance(reply, amqp.ChannelClose):
            yield from self._again(reply, amqp.QueueDeclare(queue=name, passive=True), name)
            return None
        if command.exclusive:
            self.topology.lock(name, self.owner)
        if is_temporary:
            self._own_queues[name] = None
        self.topology.put_queue(
            name,
            KnownQueue(
                durable=command.durable,
                exclusive=command.exclusive,
                auto_delete=command.auto_delete,
                alternate_exchange=command.alternate_exchange,
                arguments=command.arguments,
            ),
        )
        return None

    def queue_delete(self, command: amqp10.QueueDelete) -> Steps:
        """queue.delete."""
        name = queue_of(command.queue)
        self._check_lock(name)
        yield from insist(amqp.QueueDeclare(queue=name, passive=True))
        yield from insist(
            amqp.QueueDelete(queue=name, if_unused=command.if_unused, if_empty=command.if_empty)
        )
        self._own_queues.pop(name, None)
        self.topology.drop_queue(name)
        return None

    def queue_purge(self, command: amqp10.QueuePurge) -> Steps:
        """queue.purge."""
        name = queue_of(command.queue)
        self._check_lock(name)
        yield from insist(amqp.QueuePurge(queue=name))
        return None

    def take_own_queues(self) -> list[str]:
        """The session ends: its locks are open, and these queues are to be deleted."""
        self.topology.unlock(self.owner)
        queues = list(self._own_queues)
        self._own_queues.clear()
        for queue in queues:
            self.topology.drop_queue(queue)
        return queues

    def _binding(self, command: amqp10.ExchangeBind | amqp10.ExchangeUnbind) -> Binding:
        return Binding(
            queue_of(command.queue),
            name_of(command.exchange, "the exchange"),
            text_of(command.binding_key, "the binding"),
        )

    def _check_lock(self, queue: str) -> None:
        if self.topology.is_locked(queue, self.owner):
            raise _locked(queue)

    def _again(
        self,
        refused: amqp.ChannelClose,
        passive: amqp.ExchangeDeclare | amqp.QueueDeclare,
        name: str,
    ) -> Part[Method]:
        """Something could not be declared: if it is there, and only flags differ, it counts as declared."""
        text = refused.reply_text
        # RabbitMQ says 405 where an exclusive queue is declared as one that is not, be it one's own.
        is_own = says(refused, 405) and name in self._own_queues
        if is_own or (says(refused, 406) and any(words in text for words in _IGNORED)):
            answer = yield from insist(passive)
            return answer
        if says(refused, 406) and any(words in text for words in _NOT_ALLOWED):
            raise ProtocolViolation(530, text)
        raise _reserved(refused, name)


def _reserved(refused: amqp.ChannelClose, name: str) -> ProtocolViolation:
    """A refusal; of names that are the broker's own it is another one in 0-10."""
    violation = violation_of_channel_close(refused)
    if violation.code == 403 and name.startswith(_RESERVED):
        return ProtocolViolation(530, violation.text)
    return violation


def _locked(queue: str) -> ProtocolViolation:
    return ProtocolViolation(405, f"queue {queue!r} is exclusive to another session")


def _on(
    method: type[amqp.QueueBind | amqp.QueueUnbind], binding: Binding, arguments: Table
) -> amqp.QueueBind | amqp.QueueUnbind:
    return method(
        queue=binding.queue, exchange=binding.exchange, routing_key=binding.key, arguments=arguments
    )
