"""``amqpgate reload``: have a running gateway read its policies again."""

from __future__ import annotations

from pathlib import Path

import click

from amqpgate.cli.asking import admin_address, admin_option, ask, timeout_option, token_option
from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo


@click.command(short_help="Have a running gateway read its policies again.")
@admin_option
@token_option(help="File with the bearer token, as admin.tokenFile has it.")
@timeout_option(default=60.0)
def reload(admin: str, token_file: Path | None, timeout: float) -> None:
    """Have a running gateway read its policies again (POST /reload).

    \b
    Exit codes:
      0  they are in force
      1  no answer, or not all workers have answered
      2  they are wrong, and those from before stay in force
    """
    import json

    headers = {}
    address = admin_address(admin)
    if token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {token_file.read_text().strip()}"
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"amqpgate: --token-file: {error}", WRONG) from None
    url = f"http://{address}/reload"
    status, kind, text = ask(address, "POST", "/reload", timeout=timeout, headers=headers, most=65536)
    if kind != "application/json":
        raise Failure(f"amqpgate: {url} says {status}: {text}")
    said = json.loads(text)
    if said["status"] == "done":
        echo(f"policies reloaded, digest sha256:{said['digest'][:16]}")
        return
    where = ":".join(str(said[key]) for key in ("file", "line", "column") if said[key] is not None)
    wrong = said["status"] in ("refused", "nothing")
    raise Failure(f"{where or 'amqpgate'}: {said['error']}", WRONG if wrong else 1)
