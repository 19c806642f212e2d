"""``amqpgate route``: the routes of a running gateway, and to pause and resume one."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import click

from amqpgate.cli.asking import admin_address, admin_option, ask, timeout_option, token_option
from amqpgate.cli.failures import Failure, reported
from amqpgate.cli.telling import echo


@click.command(short_help="List, pause or resume routes of a running gateway.")
@click.argument("action", type=click.Choice(("list", "pause", "resume")))
@click.argument("name", required=False)
@admin_option
@token_option(help="File with the bearer token, as admin.tokenFile has it; needed for pause and resume.")
@timeout_option(default=3.0)
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

    from amqpgate.config.upstream import read_secret
    from amqpgate.yamldoc import FilePath

    if (action == "list") != (name is None):
        raise click.UsageError("list takes no NAME" if name else f"{action} which route? Say its NAME")
    address = admin_address(admin)
    headers = {}
    if token_file is not None:
        with reported():
            headers["Authorization"] = f"Bearer {read_secret(FilePath(token_file))}"
    verb, path = "GET", "/routes"
    if name is not None:
        verb, path = "POST", f"/routes/{quote(name, safe='')}/{action}"
    status, _, text = ask(address, verb, path, timeout=timeout, headers=headers, shown="/routes")
    if status != HTTPStatus.OK:
        raise Failure(text or f"amqpgate: http://{address}/routes says {status}")
    echo(_table(text) if name is None else text)


def _table(text: str) -> str:
    """One line per route."""
    rows = [
        (
            str(state["id"]),
            "paused" if state["paused"] else "open",
            f"{state['waiting']} waiting",
            ", ".join(state["upstreams"]) + (f"; mirror: {state['mirror']}" if state["mirror"] else ""),
        )
        for state in json.loads(text)["routes"]
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )
