"""What a user is told when something fails, and the exit code that goes with it.

Errors that a person can act on become one line on standard error. Anything else is a defect of
amqpgate: its traceback is shown.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import click

from amqpgate.errors import ConfigError

FAILED = 1
WRONG = 2


class Failure(click.ClickException):
    """One line on standard error, then the end."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        # Click declares it for the class, and reads it from the object.
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: IO[str] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


def from_config_error(error: ConfigError) -> Failure:
    """``file:line:column: what is wrong``, in the form that editors jump to."""
    text = str(error)
    return Failure(text if error.file is not None else f"amqpgate: {text}", WRONG)


@contextmanager
def reported() -> Iterator[None]:
    """Turn the errors of settings and of sockets that are raised inside into a ``Failure``.

    Nurseries wrap what their tasks raise in groups; the first leaf is what is told, provided that every
    leaf is of a kind that a person can act on.
    """
    try:
        yield
    except (ConfigError, OSError, BaseExceptionGroup) as error:
        leaves = list(_leaves(error))
        if not all(isinstance(leaf, Failure | ConfigError | OSError) for leaf in leaves):
            raise
        first = leaves[0]
        if isinstance(first, Failure):
            raise first from None
        if isinstance(first, ConfigError):
            raise from_config_error(first) from error
        raise Failure(f"amqpgate: {first}") from error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def cause_of(error: OSError) -> str:
    """What the system said. trio tries all addresses of a name, and groups what each of them answered."""
    first = next(_leaves(error.__cause__ or error))
    if isinstance(first, OSError) and not isinstance(first, socket.gaierror) and first.errno:
        return os.strerror(first.errno)
    return getattr(first, "strerror", None) or str(first)


def ensure_free(addresses: Iterable[tuple[str, str, int]]) -> None:
    """Raise a ``Failure`` for the first ``(option, host, port)`` that cannot be listened on.

    The same call as the gateway's own, a moment earlier: here it is still known which option asked for
    which address. Port 0 is always free.
    """
    for option, host, port in addresses:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError as error:
            raise Failure(f"amqpgate: {option} {host}: {error.strerror or error}", WRONG) from error
        for family, kind, protocol, _name, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(address)
                except OSError as error:
                    raise Failure(_cannot_listen(option, host, port, error)) from error


def _cannot_listen(option: str, host: str, port: int, error: OSError) -> str:
    what = f"amqpgate: {option}: cannot listen on {joined(host, port)}: {error.strerror or error}"
    remedy = {
        errno.EADDRINUSE: f"stop what is there (ss -ltnp 'sport = :{port}' shows it), or use another port",
        errno.EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE; use a higher one",
        errno.EPERM: "ports below 1024 need root or CAP_NET_BIND_SERVICE; use a higher one",
        errno.EADDRNOTAVAIL: "this machine does not have that address; 0.0.0.0 stands for all it has",
    }.get(error.errno or 0)
    return f"{what}; {remedy}" if remedy else what


def joined(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
