"""``amqpgate reload``: have a running gateway read its policies again."""

from __future__ import annotations

from pathlib import Path

import click

from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.health import DEFAULT


@click.command(short_help="Have a running gateway read its policies again.")
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
    help="File with the bearer token, as admin.tokenFile has it.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.001, 3600),
    default=60.0,
    show_default=True,
    help="How long to wait for an answer.",
)
def reload(admin: str, token_file: Path | None, timeout: float) -> None:
    """Have a running gateway read its policies again (POST /reload).

    \b
    Exit codes:
      0  they are in force
      1  no answer, or not all workers have answered
      2  they are wrong, and those from before stay in force
    """
    import http.client
    import json

    from amqpgate.config import Address

    headers = {}
    try:
        address = Address.parse(admin)
    except ValueError as error:
        raise Failure(f"amqpgate: --admin: {error}", WRONG) from None
    if token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {token_file.read_text().strip()}"
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"amqpgate: --token-file: {error}", WRONG) from None
    url = f"http://{address}/reload"
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
    try:
        connection.request("POST", "/reload", headers=headers)
        answer = connection.getresponse()
        text = answer.read(65536).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Failure(
            f"amqpgate: no answer from {url}: {why}; is the gateway running with --admin?"
        ) from error
    finally:
        connection.close()
    if answer.getheader("content-type") != "application/json":
        raise Failure(f"amqpgate: {url} says {answer.status}: {text}")
    said = json.loads(text)
    if said["status"] == "done":
        click.echo(f"policies reloaded, digest sha256:{said['digest'][:16]}")
        return
    where = ":".join(str(said[key]) for key in ("file", "line", "column") if said[key] is not None)
    wrong = said["status"] in ("refused", "nothing")
    raise Failure(f"{where or 'amqpgate'}: {said['error']}", WRONG if wrong else 1)
