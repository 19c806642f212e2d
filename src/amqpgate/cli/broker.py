"""``amqpgate broker``: the embedded broker alone, for tests of clients and of gateways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amqpgate.cli.failures import WRONG, Failure, ensure_free, joined, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.broker import EmbeddedBroker

#: Beside RabbitMQ's own 5672, and the demonstration's 5673.
PORT = 5674
#: What ``broker.VERSIONS`` has, here so that ``--help`` is quick (a test compares).
VERSIONS = ("0-9-1", "0-10")


@click.command(short_help="Serve an in-memory broker, for tests.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=f"127.0.0.1:{PORT}",
    show_default=True,
    help="Where clients connect; port 0 takes a free one.",
)
@click.option(
    "--versions",
    metavar="LIST",
    default=",".join(VERSIONS),
    show_default=True,
    help="The versions of AMQP that it speaks. A client of another one is answered with the header of 0-9-1, "
    "or of 0-10 where that is all, and hung up on.",
)
@click.option(
    "--vhost",
    "vhosts",
    metavar="NAME",
    multiple=True,
    default=("/",),
    show_default=True,
    help="A virtual host that it has; may be given more than once.",
)
def broker(listen: str, versions: str, vhosts: tuple[str, ...]) -> None:
    """Serve an in-memory broker: for tests and demonstrations, never for production.

    The user is guest with the password guest. Nothing survives a stop, and what it lacks beside a real
    broker it says in its server properties ("lacks"). Stop it with Ctrl-C or SIGTERM.

    \b
    Exit codes:
      0  stopped by a signal
      1  the port is taken
      2  wrong command line
    """
    with reported():
        _serve(listen, tuple(versions.split(",")), vhosts)


def _serve(listen: str, versions: tuple[str, ...], vhosts: tuple[str, ...]) -> None:
    import trio

    from amqpgate import logs
    from amqpgate.broker import EmbeddedBroker
    from amqpgate.config import Address

    logs.set_up()
    try:
        address = Address.parse(listen)
    except ValueError as error:
        raise Failure(f"amqpgate: --listen: {error}", WRONG) from None
    try:
        embedded = EmbeddedBroker(vhosts=vhosts, versions=versions)
    except ValueError as error:
        raise Failure(f"amqpgate: --versions: {error}", WRONG) from None
    ensure_free([("--listen", address.host, address.port)])
    trio.run(_until_signal, embedded, address.host, address.port)


async def _until_signal(embedded: EmbeddedBroker, host: str, port: int) -> None:
    import signal

    import trio

    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            bound: int = await nursery.start(embedded.serve, host, port)
            echo(f"amqp://guest:guest@{joined(host, bound)}/")
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break
