"""Queues that do not get what their own connection publishes: ``no-local``, an argument of Qpid's.

A broker of 0-9-1 has none, and a delivery does not say who published it. So a connection that has declared
such a queue marks what it publishes from then on, with a header. What comes back from that queue with its own
mark is acknowledged, and nobody gets it. As with qpidd this holds where the queue is exclusive, or the
subscription is; what differs is that the queue has such messages for a while, and counts them.
"""

from __future__ import annotations

import secrets
from typing import Final

from attrs import define, evolve, field

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE, Field

#: The header of the mark. The name is the bridge's own.
PUBLISHER_HEADER: Final = "x-amqp-publisher"
#: Queues that a connection may have declared so.
MOST_QUEUES: Final = 4096


def _chance() -> str:
    return secrets.token_hex(12)


@define(eq=False)
class NoLocal:
    """Of one connection; ``mark`` is its own, which nobody else has."""

    mark: str = field(factory=_chance)
    #: Whether they are exclusive.
    _queues: dict[str, bool] = field(factory=dict, init=False)
    #: Whether what is published gets the mark.
    is_marking: bool = field(default=False, init=False)

    def declared(self, queue: str, *, is_exclusive: bool) -> None:
        """Such a queue was declared. Violation 506 if there are too many."""
        if queue not in self._queues and len(self._queues) >= MOST_QUEUES:
            raise ProtocolViolation(506, f"more than {MOST_QUEUES} queues with no-local")
        self._queues[queue] = is_exclusive
        self.is_marking = True

    def deleted(self, queue: str) -> None:
        """It is there no more. What was published before may be elsewhere, so the mark stays."""
        self._queues.pop(queue, None)

    def marked(self, properties: amqp.BasicProperties) -> amqp.BasicProperties:
        """Of a message that is published: with the mark, once that is of use."""
        if not self.is_marking:
            return properties
        headers = (properties.headers or EMPTY_TABLE).with_(PUBLISHER_HEADER, self.mark)
        return evolve(properties, headers=headers)

    def excludes(self, queue: str, header: bytes, *, is_exclusive: bool) -> bool:
        """Whether a message of that queue's, with this content header, is not for the subscription, which may
        be exclusive."""
        owns = self._queues.get(queue)
        if owns is None or not (owns or is_exclusive):
            return False
        properties = decode_header(header).properties
        if not isinstance(properties, amqp.BasicProperties) or properties.headers is None:
            return False
        mark = properties.headers.field(PUBLISHER_HEADER)
        return mark is not None and mark == Field("S", self.mark)
