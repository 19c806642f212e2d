"""What a user is told when something fails, and the exit code that goes with it.

Errors that a person can act on become one line on standard error. Anything else is a defect of
amqpgate: its traceback is shown.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Final

import click

from amqpgate.cli.telling import echo
from amqpgate.errors import NOT_YAML, ConfigError, ListenError

FAILED = 1
WRONG = 2
#: Done, but for what was told.
PART = 3


class Failure(click.ClickException):
    """One line on standard error, then the end."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        # Click declares it for the class, and reads it from the object.
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: IO[str] | None = None) -> None:
        echo(self.message, file=file, err=file is None)


#: Lines that may have a secret in them are not shown.
_SECRETIVE: Final = re.compile(r"pass|secret|token|credential|://[^\s/]*@", re.IGNORECASE)

#: Characters of a file that are looked at.
_MOST: Final = 1 << 20

#: Of a longer line there is a part in the excerpt: so many letters before what is wrong, and as many behind.
_LONGEST: Final = 200
_BEFORE: Final = 50


def from_config_error(error: ConfigError) -> Failure:
    """``file:line:column: what is wrong``, in the form that editors jump to, for all that is wrong in a
    document, each with its line."""
    ordered = sorted(error.all, key=lambda one: (one.file or "", one.line or 0, one.column or 0))
    return Failure("\n".join(map(shown, ordered)), WRONG)


def shown(error: ConfigError) -> str:
    """One error and, where that is no secret, the line that it is about, with a caret below the place."""
    if error.file is None:
        return f"amqpgate: {error}"
    return "\n".join([str(error), *_excerpt(error, error.file)])


def _ancestors(lines: list[str]) -> Iterator[str]:
    """The last line, and by their indentation those above that it belongs to."""
    inner = len(lines[-1]) if lines else 0
    for line in reversed(lines):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        # What a key has may be a list as far to the left as the key.
        if bare and (indent < inner or (indent == inner and not bare.startswith("-"))):
            yield line
            inner = indent


def _excerpt(error: ConfigError, file: str) -> Iterator[str]:
    if not error.line:
        return
    line, column = error.line, error.column or 0
    try:
        with open(file, encoding="utf-8-sig", errors="replace") as opened:
            lines = opened.read(_MOST).split("\n")
    except OSError:
        return
    text = lines[line - 1] if line <= len(lines) else ""
    # Of what is no YAML it is not known what belongs to which key.
    around = [*_ancestors(lines[:line]), *lines[max(0, line - 2) : line]]
    if error.message.startswith(NOT_YAML):
        around = lines
    if not text.strip() or any(map(_SECRETIVE.search, around)):
        return
    if len(text) > _LONGEST:
        begin = max(0, column - 1 - _BEFORE)
        text, column = text[begin : begin + 2 * _BEFORE], max(0, column - begin)
    text = text.replace("\t", "\N{SYMBOL FOR HORIZONTAL TABULATION}")
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    margin = f"{line:5} | "
    yield margin + text
    if column:
        yield " " * (len(margin) - 2) + "| " + " " * (column - 1) + "^"


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
            found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError as error:
            raise Failure(f"amqpgate: {option} {host}: {error.strerror or error}", WRONG) from error
        for family, kind, protocol, _name, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(address)
                except OSError as error:
                    taken = ListenError(option, joined(host, port), port, error)
                    raise Failure(f"amqpgate: {taken}") from error


def joined(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
