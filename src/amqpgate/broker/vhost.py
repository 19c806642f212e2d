"""A virtual host: exchanges, queues, bindings between them, and the way of a message through them."""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Callable
from typing import Final

from attrs import define, field

from amqpgate.broker.agenda import Agenda
from amqpgate.broker.arguments import (
    UNHEEDED,
    check_exchange_name_argument,
    check_queue_arguments,
    compare_argument,
    compare_flag,
    compare_queue_arguments,
)
from amqpgate.broker.exchanges import (
    ROUTERS,
    BindingDestination,
    Exchange,
    ExchangeBinding,
    check_headers_binding,
)
from amqpgate.broker.messages import BrokerMessage, Memory
from amqpgate.broker.queues import BrokerQueue
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_9_1 import ExchangeDeclare, QueueDeclare

log = logging.getLogger(__name__)

#: Queue names with this prefix are no queues: see ``replies``.
REPLY_TO: Final = "amq.rabbitmq.reply-to"

_PREDECLARED: Final = (
    ("", "direct"),
    ("amq.direct", "direct"),
    ("amq.fanout", "fanout"),
    ("amq.topic", "topic"),
    ("amq.headers", "headers"),
    ("amq.match", "headers"),
)


def server_made_name(prefix: str) -> str:
    """``amq.gen-`` and the like, with 128 random bits."""
    return f"{prefix}-{base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip('=')}"


def clean(name: str) -> str:
    """Names of what is declared lose their line ends, as RabbitMQ does it."""
    return name.replace("\n", "").replace("\r", "")


@define(eq=False, repr=False)
class VirtualHost:
    """One virtual host."""

    name: str
    memory: Memory
    agenda: Agenda
    #: Deliver to a reply consumer, if the routing key names one.
    deliver_reply: Callable[[str, BrokerMessage], None]
    exchanges: dict[str, Exchange] = field(init=False)
    queues: dict[str, BrokerQueue] = field(factory=dict)
    #: Which bindings lead to a destination, and from which exchange.
    _leading_to: dict[BindingDestination, dict[tuple[str, ExchangeBinding], None]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.exchanges = {name: Exchange(name, type_) for name, type_ in _PREDECLARED}

    def describe(self, kind: str, name: str) -> str:
        """``queue 'q' in vhost '/'``."""
        return f"{kind} '{name}' in vhost '{self.name}'"

    # Exchanges.

    def exchange(self, name: str) -> Exchange:
        """The exchange of that name; 404 if there is none."""
        found = self.exchanges.get(name)
        if found is None:
            raise ProtocolViolation(404, f"no {self.describe('exchange', name)}")
        return found

    def declare_exchange(self, method: ExchangeDeclare) -> None:
        """Make an exchange, or see that it is as described. 403, 404, 406, 503 (unknown type)."""
        name = clean(method.exchange)
        if method.passive:
            self._check_not_default(name)
            self.exchange(name)
            return
        if method.type not in ROUTERS:
            # RabbitMQ says "invalid" of names that its Erlang machine happens to have heard of.
            word = "unknown" if method.type else "invalid"
            raise ProtocolViolation(503, f"{word} exchange type '{method.type}'")
        self._check_not_default(name)
        where = self.describe("exchange", name)
        if name not in self.exchanges:
            self._check_prefix("exchange", name)
            check_exchange_name_argument(method.arguments, "alternate-exchange", where)
            self.exchanges[name] = Exchange(
                name, method.type, method.durable, method.auto_delete, method.internal, method.arguments
            )
            return
        found = self.exchanges[name]
        compare_flag("type", method.type, found.type, where)
        compare_flag("durable", method.durable, found.durable, where)
        compare_flag("auto_delete", method.auto_delete, found.auto_delete, where)
        compare_flag("internal", method.internal, found.internal, where)
        key = "alternate-exchange"
        compare_argument(key, method.arguments.field(key), found.arguments.field(key), where)

    def delete_exchange(self, name: str, if_unused: bool) -> None:
        """Delete an exchange and its bindings, if there is one. 403 for RabbitMQ's own, 406 if in use."""
        name = clean(name)
        self._check_not_default(name)
        where = self.describe("exchange", name)
        if name.startswith("amq."):
            raise ProtocolViolation(403, f"deletion of system {where} not allowed")
        found = self.exchanges.get(name)
        if found is None:
            return
        if if_unused and found.bindings:
            raise ProtocolViolation(406, f"{where} in use")
        self._drop_exchange(found)

    def _drop_exchange(self, exchange: Exchange) -> None:
        del self.exchanges[exchange.name]
        for binding in exchange.bindings:
            self._forget(exchange.name, binding)
        exchange.bindings.clear()
        self._drop_bindings_to(BindingDestination("exchange", exchange.name))

    # Queues.

    def queue(self, name: str, user: object) -> BrokerQueue:
        """The queue of that name, for the connection ``user``. 404, or 405 if it is another's alone."""
        found = self.queues.get(name)
        if found is None:
            raise ProtocolViolation(404, f"no {self.describe('queue', name)}")
        self.check_owner(found, user)
        return found

    def check_owner(self, queue: BrokerQueue, user: object) -> None:
        """Raise 405 if the queue is exclusive to another connection."""
        if queue.owner is not None and queue.owner is not user:
            self._locked(queue)

    def _locked(self, queue: BrokerQueue) -> None:
        raise ProtocolViolation(
            405,
            f"cannot obtain exclusive access to locked {self.describe('queue', queue.name)}. It could be"
            " originally declared on another connection or the exclusive property value does not match that"
            " of the original declaration.",
        )

    def declare_queue(self, method: QueueDeclare, user: object) -> BrokerQueue:
        """Make a queue, or see that it is as described. 403, 404, 405, 406."""
        name = clean(method.queue)
        if method.passive:
            return self.queue(name, user)
        if name:
            self._check_prefix("queue", name)
        else:
            name = server_made_name("amq.gen")
        where = self.describe("queue", name)
        owner = user if method.exclusive else None
        durable = method.durable and not method.exclusive
        found = self.queues.get(name)
        if found is not None:
            if found.owner is not owner:
                self._locked(found)
            compare_flag("durable", durable, found.durable, where)
            compare_flag("auto_delete", method.auto_delete, found.auto_delete, where)
            compare_queue_arguments(method.arguments, found.arguments, where)
            return found
        check_queue_arguments(method.arguments, where)
        unheeded = [argument for argument, _value in method.arguments if argument in UNHEEDED]
        if unheeded:
            log.warning(
                "%s: the embedded broker takes note of %s and does nothing about it",
                where,
                ", ".join(unheeded),
            )
        queue = BrokerQueue(name, self.memory, durable, method.auto_delete, owner, method.arguments)
        self.queues[name] = queue
        return queue

    def delete_queue(self, name: str, user: object, if_unused: bool, if_empty: bool) -> int:
        """Delete a queue, if there is one; how many messages it had. 405, or 406 if a condition fails."""
        name = clean(name)
        if name not in self.queues:
            return 0
        queue = self.queue(name, user)
        where = self.describe("queue", name)
        if if_empty and len(queue):
            raise ProtocolViolation(406, f"{where} not empty")
        if if_unused and not queue.is_unused:
            raise ProtocolViolation(406, f"{where} in use")
        return self.drop_queue(queue)

    def drop_queue(self, queue: BrokerQueue) -> int:
        """Delete a queue and the bindings to it; how many messages it had."""
        if queue.is_deleted:
            return 0
        del self.queues[queue.name]
        self._drop_bindings_to(BindingDestination("queue", queue.name))
        return queue.delete()

    def drop_queues_of(self, owner: object) -> None:
        """A connection ends, and its exclusive queues with it."""
        for queue in [queue for queue in self.queues.values() if queue.owner is owner]:
            self.drop_queue(queue)

    # Bindings.

    def bind(self, source: str, binding: ExchangeBinding, user: object) -> None:
        """Bind a queue or exchange. 403 for the default exchange, 404, 405, 406 (``x-match``)."""
        destination = binding.destination
        exchange = self._source(source, destination)
        if exchange is None:
            raise ProtocolViolation(404, f"no {self.describe('exchange', clean(source))}")
        if not self._exists(destination):
            raise ProtocolViolation(404, f"no {self.describe(destination.kind, destination.name)}")
        if exchange.type == "headers":
            check_headers_binding(binding.arguments)
        if destination.kind == "queue":
            self.check_owner(self.queues[destination.name], user)
        if exchange.bind(binding):
            self._leading_to.setdefault(destination, {})[exchange.name, binding] = None

    def unbind(self, source: str, binding: ExchangeBinding, user: object) -> None:
        """Remove a binding, if there is one; an auto-delete exchange goes with its last. 403, 405."""
        destination = binding.destination
        exchange = self._source(source, destination)
        if exchange is None or binding not in exchange.bindings:
            return
        if destination.kind == "queue":
            self.check_owner(self.queues[destination.name], user)
        exchange.unbind(binding)
        self._forget(exchange.name, binding)
        self._delete_if_done(exchange)

    def _source(self, source: str, destination: BindingDestination) -> Exchange | None:
        if destination == BindingDestination("exchange", ""):
            self._check_not_default("")
        self._check_not_default(clean(source))
        return self.exchanges.get(clean(source))

    def _exists(self, destination: BindingDestination) -> bool:
        return destination.name in (self.queues if destination.kind == "queue" else self.exchanges)

    def _drop_bindings_to(self, destination: BindingDestination) -> None:
        for source, binding in list(self._leading_to.pop(destination, ())):
            exchange = self.exchanges.get(source)
            if exchange is not None and exchange.unbind(binding):
                self._delete_if_done(exchange)

    def _forget(self, source: str, binding: ExchangeBinding) -> None:
        leading = self._leading_to.get(binding.destination)
        if leading is not None:
            leading.pop((source, binding), None)
            if not leading:
                del self._leading_to[binding.destination]

    def _delete_if_done(self, exchange: Exchange) -> None:
        if exchange.auto_delete and not exchange.bindings and exchange.name in self.exchanges:
            self._drop_exchange(exchange)

    # Messages.

    def route(self, exchange: Exchange, message: BrokerMessage) -> list[str]:
        """The names of the queues that a message goes to. Those of the default exchange may not exist."""
        if not exchange.name:
            return self._route_by_name(message)
        names: set[str] = set()
        todo = [exchange]
        seen = {exchange.name}
        while todo:
            current = todo.pop()
            destinations = set(current.router.match(message))
            if not destinations and current.alternate is not None:
                destinations.add(BindingDestination("exchange", current.alternate))
            for destination in destinations:
                if destination.kind == "queue":
                    names.add(destination.name)
                elif destination.name not in seen and destination.name in self.exchanges:
                    seen.add(destination.name)
                    todo.append(self.exchanges[destination.name])
        return sorted(names)

    def _route_by_name(self, message: BrokerMessage) -> list[str]:
        names = []
        for key in sorted(set(message.routing_keys)):
            if key.startswith(f"{REPLY_TO}."):
                self.deliver_reply(key, message)
            else:
                names.append(key)
        return names

    def _check_not_default(self, exchange: str) -> None:
        if not exchange:
            raise ProtocolViolation(403, "operation not permitted on the default exchange")

    def _check_prefix(self, kind: str, name: str) -> None:
        if name.startswith("amq."):
            raise ProtocolViolation(403, f"{kind} name '{name}' contains reserved prefix 'amq.*'")
