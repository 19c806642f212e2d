"""Exchanges, queues and bindings: the commands that make and unmake them, as questions of 0-9-1.

All of them are asked on channel "ask". What 0-10 does otherwise than RabbitMQ:

==================================================  ====================================================
declared again with other flags: taken as it is     406: asked once more, passive
another type, or another alternate exchange: 530    406; without an alternate exchange it is taken
``amq.`` names: 530                                 403
exchanges called ``qpid.``: 530                     not asked at all
delete with an alternate exchange: messages go to   they are gone: got and rejected first (``orphans``)
that
deleting what is an alternate exchange: 530         deleted: what was declared with it is asked for first
deleting if unused, if empty                        a queue that is not classic: 540, for the whole connection
a headers binding without x-match: 541              all: not asked at all, where the type is known
passive and exclusive, another's queue: 405         not compared
an unknown type: 404                                406; 503 before version 4, for the whole connection:
                                                    none asked for but those that begin with ``x-``
delete of what is not there: 404                    delete-ok: asked for first
names that are empty: 542, to purge 531             a new name, the last queue, the default exchange
an alternate exchange that is not there: 404        taken: asked for first, unless it is known
unbind of what is not there: 404                    unbind-ok: asked for first, unless it is known
unbind by key alone                                 with the arguments of bind: they are remembered
exclusive: one session's, locked until it ends      one connection's: locked here, too
exclusive without auto-delete: it stays             gone with the connection: declared as not exclusive
exclusive and auto-delete: gone with the session    exclusive, deleted when the session ends
the same with a time to wait for that               gone when it was not used for so long, not exclusive
==================================================  ====================================================
"""

from __future__ import annotations

from typing import Final

from attrs import define, evolve, field

from amqpgate.bridge.v0_10.arguments import (
    arguments_of,
    bind_arguments,
    exchange_arguments,
    is_no_local,
    queue_arguments,
)
from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.link import BrokerLink
from amqpgate.bridge.v0_10.orphans import reroute
from amqpgate.bridge.v0_10.steps import Part, Steps, ask, insist, name_of, queue_of, says, text_of
from amqpgate.bridge.v0_10.subscriptions import Subscriptions
from amqpgate.bridge.v0_10.topology import Binding, KnownExchange, KnownQueue, KnownTopology
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import EMPTY_TABLE, Table

_TYPES: Final = frozenset({"direct", "fanout", "topic", "headers"})
_RESERVED: Final = "amq."
#: Exchanges that are qpidd's own.
_QPIDS: Final = "qpid."
_MATCH: Final = "x-match"

#: How RabbitMQ begins to say what of a declaration is not as it was.
_INEQUIVALENT: Final = "inequivalent arg '"
#: What 0-10 does not look at when something is declared again.
_IGNORED: Final = tuple(
    f"{_INEQUIVALENT}{name}" for name in ("durable'", "auto_delete'", "exclusive'", "x-", "qpid.")
)
_ALTERNATE: Final = f"{_INEQUIVALENT}alternate-exchange'"
#: What RabbitMQ says of a queue of another type, and of a type of exchange that it does not know.
_TYPE_OF_QUEUE: Final = f"{_INEQUIVALENT}x-queue-type'"
_NO_TYPE: Final = "unknown exchange type"
_CLASSIC: Final = Table.of({"x-queue-type": "classic"})
#: What it does not allow.
_NOT_ALLOWED: Final = (f"{_INEQUIVALENT}type'", _ALTERNATE)


@define(eq=False)
class Declares:
    """What one session declares. ``owner`` is who holds its locks."""

    link: BrokerLink
    owner: object
    subscriptions: Subscriptions
    #: Queues that end with the session.
    _own_queues: dict[str, None] = field(factory=dict, init=False)

    @property
    def topology(self) -> KnownTopology:
        """What is known."""
        return self.link.topology

    def exchange_declare(self, command: amqp10.ExchangeDeclare) -> Steps:
        """exchange.declare."""
        name = name_of(command.exchange, "the exchange")
        kind = text_of(command.type, "the type")
        method = amqp.ExchangeDeclare(exchange=name, type=kind or "direct", passive=True)
        if not command.passive:
            if name.startswith(_QPIDS):
                raise ProtocolViolation(530, f"exchanges called {_QPIDS!r} are reserved")
            if kind not in _TYPES and not kind.startswith("x-"):
                raise ProtocolViolation(404, f"no exchange type {kind!r}")
            yield from self._has_alternate(command.alternate_exchange)
            method = amqp.ExchangeDeclare(
                exchange=name,
                type=kind,
                durable=command.durable,
                auto_delete=command.auto_delete,
                arguments=exchange_arguments(command, ignore_qpid=self.link.options.ignore_qpid_arguments),
            )
        reply = yield from ask(method)
        if isinstance(reply, amqp.ChannelClose):
            passive = evolve(method, passive=True, arguments=EMPTY_TABLE)
            if not command.alternate_exchange and says(reply, 406) and _ALTERNATE in reply.reply_text:
                yield from insist(passive)
            elif not (yield from self._again(reply, passive, name)):
                yield from insist(method)
        elif not command.passive:
            known = KnownExchange(
                kind.encode(), command.durable, command.arguments, command.alternate_exchange
            )
            self.topology.put_exchange(name, known)
        return None

    def exchange_delete(self, command: amqp10.ExchangeDelete) -> Steps:
        """exchange.delete."""
        name = name_of(command.exchange, "the exchange")
        yield from insist(amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))
        if (yield from self._is_alternate(name)):
            raise ProtocolViolation(530, f"exchange {name!r} is an alternate exchange")
        reply = yield from ask(amqp.ExchangeDelete(exchange=name, if_unused=command.if_unused))
        if isinstance(reply, amqp.ChannelClose):
            raise _reserved(reply, name)
        self.topology.drop_exchange(name)
        return None

    def exchange_bind(self, command: amqp10.ExchangeBind) -> Steps:
        """exchange.bind, of a queue. Without a key the key is empty, as with qpidd."""
        binding = self._binding(command)
        arguments = bind_arguments(command, ignore_qpid=self.link.options.ignore_qpid_arguments)
        known = self.topology.exchange(binding.exchange)
        if known is not None and known.type == b"headers" and arguments.field(_MATCH) is None:
            raise ProtocolViolation(541, f"a binding of headers without {_MATCH}")
        yield from insist(_on(amqp.QueueBind, binding, arguments))
        self.topology.bind(binding, arguments)
        return None

    def exchange_unbind(self, command: amqp10.ExchangeUnbind) -> Steps:
        """exchange.unbind."""
        binding = self._binding(command)
        yield from self._has_exchange(binding.exchange)
        if self.topology.queue(binding.queue) is None:
            yield from _has(amqp.QueueDeclare(queue=binding.queue, passive=True))
        arguments = self.topology.arguments_of(binding) or EMPTY_TABLE
        yield from insist(_on(amqp.QueueUnbind, binding, arguments))
        self.topology.unbind(binding)
        return None

    def queue_declare(self, command: amqp10.QueueDeclare) -> Steps:
        """queue.declare."""
        name = name_of(command.queue, "the queue")
        if command.passive:
            yield from self._queue_is_there(name, is_exclusive=command.exclusive)
            return None
        self.check_lock(name)
        yield from self._has_alternate(command.alternate_exchange)
        arguments = queue_arguments(command, ignore_qpid=self.link.options.ignore_qpid_arguments)
        # RabbitMQ would not wait for an auto-delete queue to expire, nor would it for one that is exclusive.
        is_waited_for = arguments.field("x-expires") is not None
        is_temporary = command.exclusive and command.auto_delete and not is_waited_for
        is_auto_delete = command.auto_delete and not command.exclusive and not is_waited_for
        method = amqp.QueueDeclare(
            queue=name,
            durable=command.durable,
            exclusive=is_temporary,
            auto_delete=is_auto_delete,
            arguments=arguments,
        )
        reply = yield from ask(method)
        if isinstance(reply, amqp.ChannelClose):
            if (yield from self._again(reply, amqp.QueueDeclare(queue=name, passive=True), name)):
                return None
            # A queue that ended with the session before, perhaps.
            yield from insist(method)
        if is_no_local(command):
            self.link.no_local.declared(name, is_exclusive=command.exclusive)
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
        name = name_of(command.queue, "the queue")
        self.check_lock(name)
        found = yield from insist(amqp.QueueDeclare(queue=name, passive=True))
        assert isinstance(found, amqp.QueueDeclareOk)
        if command.if_unused and (self.link.subscribers.has(name) or found.consumer_count):
            raise ProtocolViolation(406, f"queue {name!r} is in use")
        if command.if_unused or command.if_empty:
            yield from self._may_be_conditional(name)
        known = self.topology.queue(name)
        if known is not None and known.alternate_exchange and not command.if_empty:
            yield from reroute(name, self.subscriptions, ends_unused=known.ends_unused)
        yield from insist(
            amqp.QueueDelete(queue=name, if_unused=command.if_unused, if_empty=command.if_empty)
        )
        self._own_queues.pop(name, None)
        self.link.no_local.deleted(name)
        self.topology.drop_queue(name)
        return None

    def _may_be_conditional(self, name: str) -> Part[None]:
        """Violation 540 where RabbitMQ would end the whole connection with that: it deletes queues that are
        not classic without conditions only. It says what a queue is where it is declared as another one; if
        nothing else differs, so of a queue with further arguments it is known only if they passed here.
        """
        known = self.topology.queue(name)
        kind = (
            arguments_of(known.arguments).get("x-queue-type", "classic") if known is not None else "classic"
        )
        if kind == "classic":
            reply = yield from ask(amqp.QueueDeclare(queue=name, durable=True, arguments=_CLASSIC))
            if isinstance(reply, amqp.ChannelClose) and _TYPE_OF_QUEUE in reply.reply_text:
                kind = "another type"
        if kind != "classic":
            raise ProtocolViolation(
                540, f"queue {name!r} is not classic: it is deleted without conditions only"
            )

    def queue_purge(self, command: amqp10.QueuePurge) -> Steps:
        """queue.purge."""
        name = queue_of(command.queue)
        self.check_lock(name)
        yield from insist(amqp.QueuePurge(queue=name))
        return None

    @property
    def own_queues(self) -> tuple[str, ...]:
        """Those that end with the session."""
        return tuple(self._own_queues)

    def take_own_queues(self) -> list[str]:
        """The session ends: its locks are open, and these queues are to be deleted."""
        self.topology.unlock(self.owner)
        queues = list(self._own_queues)
        self._own_queues.clear()
        for queue in queues:
            self.link.no_local.deleted(queue)
            self.topology.drop_queue(queue)
        return queues

    def _queue_is_there(self, name: str, *, is_exclusive: bool) -> Part[None]:
        """A passive queue.declare: who has the queue for its own matters only to who wants it so."""
        if is_exclusive and not self.topology.is_owner(name, self.owner):
            raise _locked(name)
        reply = yield from ask(amqp.QueueDeclare(queue=name, passive=True))
        if isinstance(reply, amqp.ChannelClose) and not says(reply, 405):
            raise violation_of_channel_close(reply)

    def _is_alternate(self, exchange: str) -> Part[bool]:
        """Whether something is there that was declared here with this alternate exchange."""
        exchanges, queues = self.topology.with_alternate(exchange)
        for name in exchanges:
            reply = yield from ask(amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))
            if not says(reply, 404):
                return True
            self.topology.drop_exchange(name)
        for name in queues:
            reply = yield from ask(amqp.QueueDeclare(queue=name, passive=True))
            if not says(reply, 404):
                return True
            self.topology.drop_queue(name)
        return False

    def _binding(self, command: amqp10.ExchangeBind | amqp10.ExchangeUnbind) -> Binding:
        queue = name_of(command.queue, "the queue")
        self.check_lock(queue)
        return Binding(
            queue,
            name_of(command.exchange, "the exchange"),
            text_of(command.binding_key, "the binding"),
        )

    def _has_alternate(self, name: bytes | None) -> Part[None]:
        if name:
            yield from self._has_exchange(text_of(name, "the alternate exchange"))

    def _has_exchange(self, name: str) -> Part[None]:
        if self.topology.exchange(name) is None:
            yield from _has(amqp.ExchangeDeclare(exchange=name, type="direct", passive=True))

    def check_lock(self, queue: str) -> None:
        """Violation 405 if another session has the queue for its own."""
        if self.topology.is_locked(queue, self.owner):
            raise _locked(queue)

    def _again(
        self,
        refused: amqp.ChannelClose,
        passive: amqp.ExchangeDeclare | amqp.QueueDeclare,
        name: str,
    ) -> Part[bool]:
        """Something could not be declared: if it is there, and only flags differ, it counts as declared.
        Whether it is still there.
        """
        text = refused.reply_text
        # RabbitMQ says 405 where an exclusive queue is declared as one that is not, be it one's own.
        is_own = says(refused, 405) and name in self._own_queues
        if is_own or (says(refused, 406) and any(words in text for words in _IGNORED)):
            answer = yield from ask(passive)
            if isinstance(answer, amqp.ChannelClose) and not says(answer, 404):
                raise violation_of_channel_close(answer)
            return not isinstance(answer, amqp.ChannelClose)
        if says(refused, 406) and any(words in text for words in _NOT_ALLOWED):
            raise ProtocolViolation(530, text)
        if says(refused, 406) and _NO_TYPE in text:
            raise ProtocolViolation(404, text)
        raise _reserved(refused, name)


def _has(passive: amqp.ExchangeDeclare | amqp.QueueDeclare) -> Part[None]:
    """Violation 404 if that is not there. Where the question is denied, nobody knows."""
    reply = yield from ask(passive)
    if says(reply, 404):
        assert isinstance(reply, amqp.ChannelClose)
        raise violation_of_channel_close(reply)


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
