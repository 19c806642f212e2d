"""What RabbitMQ ends a connection for (540, 541) depends on a queue's type, or on an unusual argument.

Quorum queues and streams lack operations that classic queues have. RabbitMQ tells nobody of what type a queue
is, so a pool remembers the types that its clients ask for and get. Arguments are listed that RabbitMQ 3.10
refuses with 406 where they are wrong; over others it may end the connection.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

import attrs

from amqpgate.policy.engine.operations import SERVER_NAMED
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table

QUORUM: Final = "quorum"
STREAM: Final = "stream"

#: Names of queues that are remembered, the latest, of each sort: about a MiB.
ROOM: Final = 8192

#: Arguments that a channel is closed for, if for anything. RabbitMQ ignores those without ``x-``.
_OF_QUEUES: Final = frozenset(
    f"x-{name}"
    for name in (
        "dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy", "delivery-limit",
        "expires",
        "max-in-memory-bytes", "max-in-memory-length", "max-length", "max-length-bytes", "max-priority",
        "message-ttl", "overflow", "queue-leader-locator", "queue-mode", "queue-type", "queue-version",
        "quorum-initial-group-size", "single-active-consumer",
    )
)  # fmt: skip
_OF_CONSUMERS: Final = frozenset({"x-cancel-on-ha-failover", "x-priority"})

_AGE: Final = re.compile(r"[0-9]{1,9}[YMDhms]")


def is_usual(method: amqp.QueueDeclare | amqp.BasicConsume | amqp.ExchangeDeclare) -> bool:
    """Whether RabbitMQ closes no more than the channel for the method's arguments."""
    if isinstance(method, amqp.QueueDeclare):
        return all(_is_usual(name, field, _OF_QUEUES) for name, field in method.arguments.entries)
    arguments = method.arguments
    if isinstance(method, amqp.ExchangeDeclare):
        return all(_is_usual(name, field, ()) for name, field in arguments.entries)
    return all(_is_usual(name, field, _OF_CONSUMERS) for name, field in arguments.entries)


def _is_usual(name: str, field: Field, known: Container[str]) -> bool:
    if name == "x-max-age":
        return isinstance(field.value, str) and _AGE.fullmatch(field.value) is not None
    if name == "x-stream-max-segment-size-bytes":
        return isinstance(field.value, int)
    if name == "x-stream-offset":
        return field.value in ("first", "last", "next") or isinstance(field.value, int)
    return not name.startswith("x-") or name in known


def type_of(arguments: Table) -> str | None:
    """The type that a declare asks for, if it is one that lacks something."""
    field = arguments.get("x-queue-type")
    return field if isinstance(field, str) and field in (QUORUM, STREAM) else None


@attrs.define(eq=False)
class QueueTypes:
    """Of one virtual host's queues, as far as a pool's clients have declared them."""

    _types: dict[str, str] = attrs.field(factory=dict, init=False)
    #: Those of a type that lacks nothing.
    _plain: dict[str, None] = attrs.field(factory=dict, init=False)

    def declared(self, queue: str, kind: str | None) -> None:
        """The broker has agreed to a declare; None: to one that asks for no type that matters."""
        self.deleted(queue)
        if kind is not None:
            self._types[queue] = kind
        else:
            self._plain[queue] = None
        for known in (self._types, self._plain):
            if len(known) > ROOM:
                del known[next(iter(known))]

    def deleted(self, queue: str) -> None:
        """The queue is no more."""
        self._types.pop(queue, None)
        self._plain.pop(queue, None)

    def at(self, queue: str) -> str | None:
        """The type of a queue, if it is known to be one that lacks something."""
        return self._types.get(queue)

    def knows(self, queue: str) -> bool:
        """Whether it is known of what type a queue is. No client has the broker name a stream."""
        return queue in self._types or queue in self._plain or queue.startswith(SERVER_NAMED)
