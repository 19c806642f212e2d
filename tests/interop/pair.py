"""Two real brokers, one gateway in front of both, and routes between them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import attrs
import pika

from tests.interop.brokers import running
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams:
- {{name: blue, url: "amqp://{blue}"}}
- {{name: green, endpoints: [{greens}]}}
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"{admin}}}
limits: {{drainTimeout: 1s{limits}}}
"""
GREEN = "upstream: {cluster: green}"
HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\nspec:\n  routes:\n"


@attrs.frozen
class Pair:
    """Two brokers; each has a queue `marker` in the vhosts `/` and `shop`, with 1 or 2 messages in it."""

    blue: RabbitMQ
    green: RabbitMQ


def make_pair(rabbitmq: RabbitMQ) -> Iterator[Pair]:
    """`blue` is the one that is given, `green` a new one."""
    green = RabbitMQ()
    try:
        green.start()
        for count, node in ((1, rabbitmq), (2, green)):
            for vhost in ("/", "shop"):
                if vhost != "/":
                    node.fresh_vhost(vhost)
                with contextlib.closing(pika.BlockingConnection(parameters(node.port, vhost=vhost))) as it:
                    channel = it.channel()
                    channel.queue_declare("marker")
                    channel.confirm_delivery()
                    for _ in range(count):
                        channel.basic_publish("", "marker", b"x")
        green.add_user("batch", "secret of batch", vhost="shop")
        yield Pair(rabbitmq, green)
    finally:
        green.destroy()
        with contextlib.closing(pika.BlockingConnection(parameters(rabbitmq.port))) as it:
            it.channel().queue_delete("marker")


def parameters(
    port: int, *, vhost: str = "/", user: str = "guest", password: str = "guest", product: str | None = None
) -> pika.ConnectionParameters:
    return pika.ConnectionParameters(
        "127.0.0.1",
        port,
        vhost,
        pika.PlainCredentials(user, password),
        client_properties={} if product is None else {"product": product},
        blocked_connection_timeout=20,
    )


@contextlib.contextmanager
def routed(
    pair: Pair,
    folder: Path,
    *routes: str,
    greens: str | None = None,
    admin: str = "",
    limits: str = "",
    more: str = "",
    top: str = "",
) -> Iterator[Gateway]:
    """A gateway whose listener leads to `blue` unless one of these routes says `green`."""
    policies = folder / "policies"
    policies.mkdir(exist_ok=True)
    write(policies, *routes, more=more)
    config = CONFIG.replace("main, bind", "main, upstream: blue, bind").format(
        blue=pair.blue.address,
        greens=greens or f'{{address: "{pair.green.address}"}}',
        policies=policies,
        admin=admin,
        limits=limits,
    )
    with running(f"{top}\n{config}") as gateway:
        yield gateway


def write(policies: Path, *routes: str, more: str = "") -> None:
    lines = [f"  - {{id: r{index}, {route}}}\n" for index, route in enumerate(routes)]
    (policies / "routes.yaml").write_text(HEAD + "".join(lines) + (f"  {more}\n" if more else ""))


def colour(connection: pika.BlockingConnection) -> str:
    count = connection.channel().queue_declare("marker", passive=True).method.message_count
    return {1: "blue", 2: "green"}[count]


def where(gateway: Gateway, **who: str) -> str:
    """The broker that such a client ends up at."""
    with contextlib.closing(pika.BlockingConnection(parameters(gateway.port, **who))) as connection:
        return colour(connection)
