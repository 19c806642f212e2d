"""Where the old clients play: RabbitMQ itself, a strict listener before it, and through the gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from tests.interop.old_clients.clients import At, Client, Outcome
from tests.support.rabbitmq import RabbitMQ
from tests.support.strict import StrictListener

#: Without the gateway.
DIRECT = ("direct", "strict")


@contextlib.contextmanager
def ports(rabbitmq: RabbitMQ) -> Iterator[Mapping[str, int]]:
    """The port of each place, for as long as the block lasts."""
    listener = StrictListener(rabbitmq.port)
    try:
        yield {"direct": rabbitmq.port, "strict": listener.port}
    finally:
        listener.close()


def play(client: Client, place: str, port: int, rabbitmq: RabbitMQ) -> dict[str, Outcome]:
    """All of a client's steps, on a fresh vhost with the client's name."""
    rabbitmq.fresh_vhost(client.name)
    return client.play(At("127.0.0.1", port, client.name, place not in DIRECT, rabbitmq))
