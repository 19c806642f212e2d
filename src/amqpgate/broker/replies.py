"""Direct reply-to (RabbitMQ): answers that go to a channel without a queue.

A client consumes from ``amq.rabbitmq.reply-to`` and publishes requests with that name as their reply-to;
the broker replaces it by a name that only this channel has, and whoever answers publishes to the default
exchange with that name as the routing key.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable

from attrs import define, field

from amqpgate.broker.messages import BrokerMessage
from amqpgate.broker.vhost import REPLY_TO


def _new_name() -> str:
    parts = (base64.b64encode(secrets.token_bytes(size)).decode() for size in (40, 16))
    return ".".join((REPLY_TO, *parts))


@define(eq=False)
class ReplyConsumer:
    """The reply consumer of a channel, and the name that requests carry."""

    tag: str
    name: str = field(factory=_new_name)


@define(eq=False, repr=False)
class Replies:
    """Who gets the answers, by the name in the routing key."""

    _takers: dict[str, Callable[[BrokerMessage], None]] = field(factory=dict)

    def add(self, name: str, take: Callable[[BrokerMessage], None]) -> None:
        """Answers to ``name`` are for this one."""
        self._takers[name] = take

    def discard(self, name: str) -> None:
        """Nobody waits for answers to ``name`` any more."""
        self._takers.pop(name, None)

    def is_known(self, name: str) -> bool:
        """Whether somebody waits for answers to ``name``."""
        return name == REPLY_TO or name in self._takers

    def deliver(self, name: str, message: BrokerMessage) -> None:
        """Hand an answer over, or drop it."""
        take = self._takers.get(name)
        if take is not None:
            take(message)
