"""What the verbs share that ask a running gateway's admin interface."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amqpgate.cli.failures import WRONG, Failure

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPConnection

    from amqpgate.config import Address

DEFAULT = "127.0.0.1:15680"
#: Bytes of an answer. A session is listed with less than 2 KiB, and at most 20,000 are asked for at once.
_MOST: Final = 64 << 20

admin_option = click.option(
    "--admin",
    metavar="HOST:PORT",
    default=DEFAULT,
    show_default=True,
    envvar="AMQPGATE_ADMIN",
    show_envvar=True,
    help="Admin address of the gateway, as `run --admin` or admin.bind has it; https://HOST:PORT with "
    "admin.tls, whose authorities SSL_CERT_FILE names where they are not the system's.",
)
#: Each verb adds its ``help``.
token_option = partial(
    click.option,
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar="AMQPGATE_TOKEN_FILE",
    show_envvar=True,
)
#: Each verb adds its ``default``, in seconds.
timeout_option = partial(
    click.option,
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.001, 3600),
    show_default=True,
    help="How long to wait for an answer.",
)


def admin_address(admin: str) -> Address:
    """Read ``--admin``; ``Failure`` says what is wrong with it."""
    from amqpgate.config import Address, HttpsAddress

    kind = HttpsAddress if admin.startswith("https://") else Address
    try:
        return kind.parse(admin.removeprefix("https://"))
    except ValueError as error:
        raise Failure(f"amqpgate: --admin: {error}", WRONG) from None


def url_of(address: Address) -> str:
    """Without a path."""
    from amqpgate.config import HttpsAddress

    return f"http{'s' if isinstance(address, HttpsAddress) else ''}://{address}"


def connection_to(address: Address, timeout: float, context: ssl.SSLContext | None = None) -> HTTPConnection:
    """Not opened yet; ``timeout``, in seconds, is of each wait, ``context`` has the trusted authorities."""
    import http.client

    from amqpgate.config import HttpsAddress

    if isinstance(address, HttpsAddress):
        return http.client.HTTPSConnection(address.host, address.port, timeout=timeout, context=context)
    return http.client.HTTPConnection(address.host, address.port, timeout=timeout)


def ask(
    address: Address,
    verb: str,
    path: str,
    *,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
    shown: str | None = None,
    most: int = _MOST,
    context: ssl.SSLContext | None = None,
) -> tuple[int, str | None, str]:
    """Status, content type and text; ``Failure`` where nobody answers, or with more than ``most`` bytes, or
    not within ``timeout`` seconds.

    ``shown`` is what errors call the path; ``context`` says whose certificates are good.
    """
    import http.client

    from amqpgate.telemetry.http_request import exchange, why_of

    connection = connection_to(address, timeout, context)
    try:
        # No web page can send that header to an address that is not its own.
        sent = {"X-Amqpgate": "1", **(headers or {})}
        answer, data = exchange(connection, verb, path, body, sent, within=timeout, most=most)
    except (OSError, http.client.HTTPException) as error:
        raise Failure(
            f"amqpgate: no answer from {url_of(address)}{shown or path}: {why_of(error)}; "
            "is the gateway running with --admin?"
        ) from error
    finally:
        connection.close()
    return answer.status, answer.getheader("content-type"), data.decode("utf-8", "replace").strip()
