"""``amqpgate demo``: a gateway, a policy, and a client to watch. ``make run`` calls this."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from amqpgate.cli.claims import claimed
from amqpgate.cli.failures import WRONG, Failure, ensure_free, reported
from amqpgate.cli.telling import echo

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
#: Beside RabbitMQ's own 5672, which a developer's machine may well have in use.
PORT = 5673
ADMIN_PORT = 15680


@click.command(short_help="Show allowed and denied messages, live.")
@click.option(
    "--upstream",
    metavar="URL",
    help="A real broker, amqp[s]://[user:password@]HOST[:PORT][/vhost], in the place of the embedded one. "
    "The demonstration client logs in as that user (guest without one); your own clients as themselves.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help=f"Where the gateway listens.  [default: {LOOPBACK}:{PORT}, or a free port]",
)
@click.option(
    "--admin",
    metavar="HOST:PORT",
    help=f"Where health and metrics are served.  [default: {LOOPBACK}:{ADMIN_PORT}, or a free port]",
)
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(1),
    help="Stop after N attempts.  [default: go on until Ctrl-C]",
)
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(0.01, 3600),
    default=1.0,
    show_default=True,
    help="Pause between attempts.",
)
def demo(
    upstream: str | None, listen: str | None, admin: str | None, count: int | None, interval: float
) -> None:
    """Show the gateway at work: allowed and denied messages, as a client sees them.

    Starts an in-memory broker (unless --upstream names a real one), the gateway in front of it with a small
    policy, and a client that publishes, reads and consumes. Everything is on loopback unless you say
    otherwise, and is gone after Ctrl-C. Point your own client at the address that it shows.

    \b
    Exit codes:
      0  stopped by Ctrl-C, or after --count attempts
      1  a port is taken, or the broker cannot be reached or refuses
      2  wrong command line
    """
    try:
        with reported():
            _demo(upstream, listen, admin, count, interval)
    except KeyboardInterrupt:
        # Ctrl-C before the gateway was there to drain.
        echo()
        sys.exit(0)


def _demo(
    upstream: str | None, listen: str | None, admin: str | None, count: int | None, interval: float
) -> None:
    import trio
    from rich.console import Console

    from amqpgate.cli.demo_stage import DemoStage
    from amqpgate.config import Address, AmqpUrl

    url = _parse("--upstream", upstream, AmqpUrl.parse) if upstream is not None else None
    asked = [
        (option, Address(LOOPBACK, preferred) if text is None else _parse(option, text, Address.parse), text)
        for option, text, preferred in (("--listen", listen, PORT), ("--admin", admin, ADMIN_PORT))
    ]
    with claimed(address.port for _, address, _ in asked) as claims:
        places = []
        for option, address, text in asked:
            if text is not None:
                ensure_free([(option, address.host, address.port)])
            place = Address(address.host, _free_port(address.host, address.port))
            if place.port != address.port and text is None:
                echo(f"port {address.port} is taken, so {option} is {place}", err=True)
            places.append(place)
        console = Console(emoji=False, markup=False)
        stage = DemoStage(url, places[0], places[1], count, interval, console, claims.close)
        trio.run(stage.run)


def _parse(option: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise Failure(f"amqpgate: {option}: {error}", WRONG) from None


def _free_port(host: str, preferred: int) -> int:
    """That port, or any free one if it is taken. Known before the start, so that it can be shown."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in (preferred, 0):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise Failure(f"amqpgate: no free port on {host}")
