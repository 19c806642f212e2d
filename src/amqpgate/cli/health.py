"""``amqpgate health``: is a running gateway ready? For container probes and scripts."""

from __future__ import annotations

from http import HTTPStatus

import click

from amqpgate.cli.asking import admin_address, admin_option, ask, timeout_option
from amqpgate.cli.failures import Failure
from amqpgate.cli.telling import echo


@click.command(short_help="Ask a running gateway whether it is ready.")
@admin_option
@timeout_option(default=3.0)
def health(admin: str, timeout: float) -> None:
    """Ask a running gateway whether it accepts connections (GET /readyz).

    Exit code 0 when it is ready, 1 when it is not or does not answer.
    """

    address = admin_address(admin)
    status, _, text = ask(address, "GET", "/readyz", timeout=timeout, most=4096)
    if status != HTTPStatus.OK:
        raise Failure(text or f"amqpgate: http://{address}/readyz says {status}")
    echo(text)
