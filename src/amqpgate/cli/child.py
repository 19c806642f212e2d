"""Work whose modules this process is not to hold: a child does it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from amqpgate.cli.failures import reported


def in_child(work: Callable[[], str]) -> str:
    """What ``work`` gives, in a fork of this process, which has one thread.

    What it raises ends this process as it ends the child, which has said why.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        _end(work, write)
    os.close(write)
    with open(read, encoding="utf-8") as answer:
        text = answer.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        sys.exit(abs(code))
    return text


def _end(work: Callable[[], str], write: int) -> None:
    """The child: it never returns, so that nothing of its parent's is cleaned up here."""
    code = 1
    try:
        with open(write, "w", encoding="utf-8") as answer, reported():
            answer.write(work())
        code = 0
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BaseException:
        # As Python ends a program; the parent says nothing more.
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
