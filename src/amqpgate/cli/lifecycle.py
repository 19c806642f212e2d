"""``amqpgate drain``, ``pause`` and ``resume``: whether a running gateway takes new connections."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amqpgate.cli.asking import admin_address, admin_option, ask, timeout_option, token_option
from amqpgate.cli.failures import Failure, reported
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from amqpgate.config import Address

_token_option = token_option(help="File with the bearer token, as admin.tokenFile has it.")
#: Seconds between two looks at a drain.
_LOOK: Final = 0.25


@click.command(short_help="Have a running gateway part with its clients, and end.")
@admin_option
@_token_option
@timeout_option(default=10.0)
@click.option(
    "--window",
    metavar="SECONDS",
    type=click.FloatRange(0, 86400),
    help="How long it may take.  [default: limits.drainTimeout of the gateway]",
)
@click.option("--no-wait", is_flag=True, help="Do not wait for its end.")
def drain(admin: str, token_file: Path | None, timeout: float, window: float | None, no_wait: bool) -> None:
    """Have a running gateway part with its clients, and end (POST /drain).

    It takes no new connections at once, and closes its sessions with 320, in slices over the window. How many
    are left is shown until it has ended.

    \b
    Exit codes:
      0  it has ended, or (--no-wait) drains
      1  no answer, or the gateway refused; it says why
    """
    asked = _asking(admin, token_file, timeout)
    said = asked("POST", "/drain", json.dumps({} if window is None else {"window": window}))
    shown = None
    while said is not None:
        if said and said["connections"] != shown:
            shown = said["connections"]
            echo(f"draining: {shown} connections left, {said['sessions']} of them sessions")
        if no_wait:
            return
        time.sleep(_LOOK)
        said = asked("GET", "/lifecycle", None)
    echo("drained")


@click.command(short_help="Have a running gateway take no new connections.")
@admin_option
@_token_option
@timeout_option(default=10.0)
def pause(admin: str, token_file: Path | None, timeout: float) -> None:
    """Have a running gateway take no new connections (POST /pause).

    They are refused at once, and it is not ready, until `amqpgate resume`. Sessions go on.

    \b
    Exit codes:
      0  paused
      1  no answer, or the gateway refused; it says why
    """
    _asking(admin, token_file, timeout)("POST", "/pause", None)
    echo("paused")


@click.command(short_help="Have a running gateway take new connections again.")
@admin_option
@_token_option
@timeout_option(default=10.0)
def resume(admin: str, token_file: Path | None, timeout: float) -> None:
    """Have a running gateway take new connections again (POST /resume).

    \b
    Exit codes:
      0  resumed
      1  no answer, or the gateway refused; it says why
    """
    _asking(admin, token_file, timeout)("POST", "/resume", None)
    echo("resumed")


def _asking(
    admin: str, token_file: Path | None, timeout: float
) -> Callable[[str, str, str | None], dict[str, object] | None]:
    """Asks that gateway. None: it drains, and has ended meanwhile."""
    from amqpgate.config.upstream import read_secret
    from amqpgate.yamldoc import FilePath

    address = admin_address(admin)
    headers = {}
    if token_file is not None:
        with reported():
            headers["Authorization"] = f"Bearer {read_secret(FilePath(token_file))}"

    def asked(verb: str, path: str, body: str | None) -> dict[str, object] | None:
        try:
            status, _, text = ask(address, verb, path, timeout=timeout, headers=headers, body=body)
        except Failure:
            if path == "/lifecycle" and not _is_there(address):
                return None
            raise
        if status == HTTPStatus.SERVICE_UNAVAILABLE and path == "/lifecycle":
            # One of several workers has just ended.
            return {}
        if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
            raise Failure(text or f"amqpgate: http://{address}{path} says {status}")
        said: dict[str, object] = json.loads(text)
        return said

    return asked


def _is_there(address: Address) -> bool:
    import socket

    try:
        socket.create_connection((address.host, address.port), _LOOK).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        pass
    return True
