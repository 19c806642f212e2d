"""``amqpgate health``: is a running gateway ready? For container probes and scripts."""

from __future__ import annotations

import click

from amqpgate.cli.failures import WRONG, Failure

DEFAULT = "127.0.0.1:15680"


@click.command(short_help="Ask a running gateway whether it is ready.")
@click.option(
    "--admin",
    metavar="HOST:PORT",
    default=DEFAULT,
    show_default=True,
    help="Admin address of the gateway, as `run --admin` or admin.bind has it.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.001, 3600),
    default=3.0,
    show_default=True,
    help="How long to wait for an answer.",
)
def health(admin: str, timeout: float) -> None:
    """Ask a running gateway whether it accepts connections (GET /readyz).

    Exit code 0 when it is ready, 1 when it is not or does not answer.
    """
    import http.client

    from amqpgate.config import Address

    try:
        address = Address.parse(admin)
    except ValueError as error:
        raise Failure(f"amqpgate: --admin: {error}", WRONG) from None
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        text = answer.read(4096).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Failure(
            f"amqpgate: no answer from http://{address}/readyz: {why}; is the gateway running with --admin?"
        ) from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise Failure(text or f"amqpgate: http://{address}/readyz says {answer.status}")
    click.echo(text)
