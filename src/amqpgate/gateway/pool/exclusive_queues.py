"""Exclusive queues on a shared connection: the broker takes them for the connection's, each is one session's.

A session that can get a connection of its own declares its exclusive queues there. One that cannot, since it
consumes already, declares them on the connection that it shares; and whoever else uses that one hears what
RabbitMQ says to other connections (405). What is declared on other connections the broker refuses itself.

The queue ends with its owner: then it is deleted. Before that it is declared once more, on a channel of its
own, since by now the name may be somebody else's queue; then that declare fails, and nothing is deleted.
"""

from __future__ import annotations

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Methods for which RabbitMQ asks whether the queue may be used.
_ASKED = (
    amqp.QueueDeclare | amqp.QueueBind | amqp.QueueUnbind | amqp.QueuePurge | amqp.QueueDelete
    | amqp.BasicConsume | amqp.BasicGet
)  # fmt: skip


def is_exclusive(declare: amqp.QueueDeclare) -> bool:
    """Whether it asks for an exclusive queue."""
    return declare.exclusive and not declare.passive


@attrs.define
class _Owned:
    #: A session; who it is, is all that matters.
    owner: object
    #: How it was declared.
    declare: amqp.QueueDeclare
    #: The broker has said declare-ok.
    is_there: bool = False


@attrs.define(eq=False)
class ExclusiveQueues:
    """The exclusive queues of one shared connection."""

    vhost: str
    _queues: dict[str, _Owned] = attrs.field(factory=dict, init=False)
    #: Queues of sessions that are over, which wait for a channel to be deleted on.
    _orphans: list[amqp.QueueDeclare] = attrs.field(factory=list, init=False)

    def check(self, session: object, channel: int, method: Method, last_queue: str) -> None:
        """Raises ``ProtocolViolation`` where a session may not use a queue, named as the broker names it."""
        if not isinstance(method, _ASKED):
            return
        name = method.queue or last_queue
        found = self._queues.get(name)
        if found is not None and found.owner is not session:
            raise ProtocolViolation(
                405,
                f"cannot obtain exclusive access to locked queue '{name}' in vhost '{self.vhost}'. It could "
                "be originally declared on another connection or the exclusive property value does not "
                "match that of the original declaration.",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
                channel=channel,
            )

    def declares(self, session: object, method: amqp.QueueDeclare) -> None:
        """A session declares one. It holds from now on: the broker has not answered, but mostly agrees."""
        if method.queue:
            self._queues.setdefault(method.queue, _Owned(session, method))

    def declared(self, session: object, method: amqp.QueueDeclare, name: str) -> None:
        """The broker has."""
        self._queues[name] = _Owned(session, attrs.evolve(method, queue=name), is_there=True)

    def not_declared(self, session: object, method: amqp.QueueDeclare) -> None:
        """The broker has closed the channel instead."""
        found = self._queues.get(method.queue)
        if found is not None and found.owner is session and not found.is_there:
            del self._queues[method.queue]

    def deleted(self, session: object, name: str) -> None:
        """Its owner has deleted it."""
        found = self._queues.get(name)
        if found is not None and found.owner is session:
            del self._queues[name]

    def owns(self, session: object) -> bool:
        """Whether a session has any."""
        return any(queue.owner is session for queue in self._queues.values())

    def leave(self, session: object) -> list[amqp.QueueDeclare]:
        """A session is over: how those were declared that must go with it."""
        left = {name: queue for name, queue in self._queues.items() if queue.owner is session}
        for name in left:
            del self._queues[name]
        return [attrs.evolve(queue.declare, no_wait=False) for queue in left.values() if queue.is_there]

    def abandon(self, session: object) -> None:
        """A session is over: what must go with it waits to be deleted."""
        self._orphans += self.leave(session)

    def next_orphan(self) -> amqp.QueueDeclare | None:
        """The next one to be deleted, which waits no more."""
        return self._orphans.pop() if self._orphans else None
