"""Where the old clients play: RabbitMQ itself, a strict listener before it, and through the gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from tests.interop.old_clients.clients import At, Client, Outcome
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ
from tests.support.strict import StrictListener

#: Without the gateway.
DIRECT = ("direct", "strict")

#: Through the gateway, by the version that it is told to speak with RabbitMQ, or to a strict listener.
UPSTREAMS = ("to 0-8", "to 0-9", "to 0-9-1", "to strict")

CONFIG = """
listeners: [{listeners}]
upstreams: [{upstreams}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
"""


@contextlib.contextmanager
def ports(rabbitmq: RabbitMQ) -> Iterator[Mapping[str, int]]:
    """The port of each place, for as long as the block lasts."""
    with contextlib.ExitStack() as stack:
        strict = StrictListener(rabbitmq.port)
        stack.callback(strict.close)
        through = {place: free_port() for place in UPSTREAMS}
        listeners, upstreams = [], []
        for place, port in through.items():
            _, _, version = place.partition(" ")
            name = f"v{version}"
            listeners.append(f'{{name: {name}, upstream: {name}, bind: "127.0.0.1:{port}"}}')
            told = (
                f"port: {strict.port}"
                if version == "strict"
                else f'port: {rabbitmq.port}, version: "{version}"'
            )
            upstreams.append(f"{{name: {name}, host: 127.0.0.1, {told}}}")
        config = CONFIG.format(listeners=", ".join(listeners), upstreams=", ".join(upstreams))
        gateway = Gateway(config=config)
        gateway.start()
        try:
            yield {"direct": rabbitmq.port, "strict": strict.port, **through}
        finally:
            ended = gateway.stop()
        assert ended.code == 0, ended.log
        failed = [record for record in ended.records() if record["level"] == "error"]
        assert not failed, failed


def play(client: Client, place: str, port: int, rabbitmq: RabbitMQ) -> dict[str, Outcome]:
    """All of a client's steps, on a fresh vhost with the client's name."""
    rabbitmq.fresh_vhost(client.name)
    return client.play(At("127.0.0.1", port, client.name, place not in DIRECT, rabbitmq))
