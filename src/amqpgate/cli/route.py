"""``amqpgate route``: the routes of a running gateway, and to pause and resume one."""

from __future__ import annotations

import json
from pathlib import Path

import click

from amqpgate.cli.failures import WRONG, Failure, reported
from amqpgate.cli.health import DEFAULT


@click.command(short_help="List, pause or resume routes of a running gateway.")
@click.argument("action", type=click.Choice(("list", "pause", "resume")))
@click.argument("name", required=False)
@click.option(
    "--admin",
    metavar="HOST:PORT",
    default=DEFAULT,
    show_default=True,
    help="Admin address of the gateway, as `run --admin` or admin.bind has it.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the bearer token, as admin.tokenFile has it; needed for pause and resume.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.001, 3600),
    default=3.0,
    show_default=True,
    help="How long to wait for an answer.",
)
def route(action: str, name: str | None, admin: str, token_file: Path | None, timeout: float) -> None:
    """List routes, or pause or resume the one called NAME.

    While a route is paused new connections wait, so many and so long as its document says; those that are
    open stay.

    \b
    Exit codes:
      0  done
      1  no answer, or the gateway refused; it says why
      2  wrong command line
    """
    import http.client

    from amqpgate.config import Address
    from amqpgate.config.upstream import read_secret
    from amqpgate.yamldoc import FilePath

    if (action == "list") != (name is None):
        raise click.UsageError("list takes no NAME" if name else f"{action} which route? Say its NAME")
    try:
        address = Address.parse(admin)
    except ValueError as error:
        raise Failure(f"amqpgate: --admin: {error}", WRONG) from None
    headers = {}
    if token_file is not None:
        with reported():
            headers["Authorization"] = f"Bearer {read_secret(FilePath(token_file))}"
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
    try:
        if name is None:
            connection.request("GET", "/routes", headers=headers)
        else:
            from urllib.parse import quote

            connection.request("POST", f"/routes/{quote(name, safe='')}/{action}", headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Failure(
            f"amqpgate: no answer from http://{address}/routes: {why}; is the gateway running with --admin?"
        ) from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise Failure(text or f"amqpgate: http://{address}/routes says {answer.status}")
    click.echo(_table(text) if name is None else text)


def _table(text: str) -> str:
    """One line per route."""
    rows = [
        (
            str(state["id"]),
            "paused" if state["paused"] else "open",
            f"{state['waiting']} waiting",
            ", ".join(state["upstreams"]),
        )
        for state in json.loads(text)["routes"]
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )
