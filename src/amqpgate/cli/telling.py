"""What verbs write for people. Names come from clients, files and peers: none of them drives a terminal.

click takes such letters out where it writes to no terminal, and leaves them in where it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import click

from amqpgate.logs import on_one_line


def on_lines(text: str) -> str:
    """The same text with escapes for all that is not printable, but for the ends of lines."""
    return text if text.isprintable() else "\n".join(map(on_one_line, text.split("\n")))


def echo(text: str = "", *, err: bool = False, nl: bool = True, file: IO[str] | None = None) -> None:
    """Write it for people: on standard output, or on standard error."""
    click.echo(on_lines(text), err=err, nl=nl, file=file)


def echo_document(text: str) -> None:
    """Write it for a program, as it is. Who made it has escaped what no terminal is to get."""
    click.echo(text, nl=False)


@contextmanager
def tame() -> Iterator[None]:
    """What is wrong with a command line is told in its own words, as the shell gave them."""
    try:
        yield
    except click.ClickException as error:
        # Click declares it as final, and reads it when the error is shown.
        error.message = on_lines(error.message)  # type: ignore[misc]
        raise
