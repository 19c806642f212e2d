"""Names of attributes, by OpenTelemetry's semantic conventions for messaging and RabbitMQ.

The conventions are not stable yet, and 1.45 has renamed some. ``OTEL_SEMCONV_STABILITY_OPT_IN`` says which
names are given: those from before, with ``messaging`` those since, with ``messaging/dup`` both.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

from amqpgate.values import frozen

#: The environment variable: values with commas between them, of which others are about other conventions.
OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"

Value: TypeAlias = str | int | float | bool

#: What ``SYSTEM`` is.
RABBITMQ: Final = "rabbitmq"
#: The default exchange, where a name must be given (RabbitMQ's own word for it).
DEFAULT_EXCHANGE: Final = "amq.default"


class Key(Enum):
    """An attribute: its name before 1.45, and since."""

    SYSTEM = ("messaging.system", "messaging.system.name")
    OPERATION = ("messaging.operation.name", "messaging.operation.name")
    OPERATION_TYPE = ("messaging.operation.type", "messaging.operation.type")
    DESTINATION = ("messaging.destination.name", "messaging.destination.name")
    ANONYMOUS = ("messaging.destination.anonymous", "messaging.destination.anonymous")
    ROUTING_KEY = ("messaging.rabbitmq.destination.routing_key", "rabbitmq.destination.routing_key")
    DELIVERY_TAG = ("messaging.rabbitmq.message.delivery_tag", "rabbitmq.message.delivery_tag")
    MESSAGE_ID = ("messaging.message.id", "messaging.message.id")
    CORRELATION_ID = ("messaging.message.conversation_id", "messaging.message.conversation_id")
    BODY_SIZE = ("messaging.message.body.size", "messaging.message.body.size")
    ERROR = ("error.type", "error.type")
    PEER_ADDRESS = ("network.peer.address", "network.peer.address")
    PEER_PORT = ("network.peer.port", "network.peer.port")
    CLIENT_ADDRESS = ("client.address", "client.address")
    # The gateway's own, in a namespace of its own.
    SESSION = ("amqpgate.session.id", "amqpgate.session.id")
    USER = ("amqpgate.user", "amqpgate.user")
    UPSTREAM_USER = ("amqpgate.upstream.user", "amqpgate.upstream.user")
    VHOST = ("amqpgate.vhost", "amqpgate.vhost")
    LISTENER = ("amqpgate.listener", "amqpgate.listener")
    TRACE_RULE = ("amqpgate.trace.rule", "amqpgate.trace.rule")
    POLICY = ("amqpgate.policy", "amqpgate.policy")
    RULE = ("amqpgate.rule", "amqpgate.rule")
    WAITED = ("amqpgate.waited", "amqpgate.waited")


#: Events on spans.
DENIED: Final = "amqpgate.denied"
THROTTLED: Final = "amqpgate.throttled"


@frozen
class Names:
    """Which of its names each attribute is given."""

    before: bool = True
    since: bool = False

    @classmethod
    def chosen(cls, opt_in: str) -> Names:
        """By the value of the environment variable; ``messaging/dup`` wins over ``messaging``."""
        said = {word.strip() for word in opt_in.split(",")}
        if "messaging/dup" in said:
            return cls(before=True, since=True)
        return cls(before=False, since=True) if "messaging" in said else cls()

    def of(self, key: Key) -> tuple[str, ...]:
        """The names of one."""
        return (*key.value[:1] * self.before, *key.value[1:] * self.since)

    def attributes(self, values: Mapping[Key, Value | None]) -> dict[str, Value]:
        """As OpenTelemetry takes them; those without a value are left out."""
        named: dict[str, Value] = {}
        for key, value in values.items():
            if value is not None:
                if self.before:
                    named[key.value[0]] = value
                if self.since:
                    named[key.value[1]] = value
        return named


def destination(*parts: str | None) -> str:
    """Exchange, routing key and queue as one name: those that there are, each once; or the default."""
    seen: dict[str, None] = dict.fromkeys(part for part in parts if part)
    return ":".join(seen) or DEFAULT_EXCHANGE
