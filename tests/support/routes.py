"""The two ways to the broker that interop tests compare: directly, and through the gateway."""

from __future__ import annotations

import attrs

from .rabbitmq import RabbitMQ


@attrs.frozen
class Route:
    """An address that speaks AMQP, and the broker that is behind it either way."""

    name: str
    host: str
    port: int
    rabbitmq: RabbitMQ

    @property
    def through_gateway(self) -> bool:
        return self.name == "gateway"

    def url(self, vhost: str = "/", *, user: str = "guest", password: str = "guest") -> str:
        """An AMQP URL for this route; `/` becomes `%2F`."""
        return f"amqp://{user}:{password}@{self.host}:{self.port}/{vhost.replace('/', '%2F')}"
