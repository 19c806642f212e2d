"""The programs, and how each library does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from tests.interop.clients.scripts import NODE_MODULES

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]

#: Debian's Python, which has Debian's Python packages.
_SYSTEM_PYTHON = "/usr/bin/python3"


def _without(*commands: str) -> Callable[[], str | None]:
    """The first of these commands that fails, or None."""

    def lacks() -> str | None:
        for command in commands:
            words = command.split("|")
            if shutil.which(words[0]) is None or subprocess.run(words, capture_output=True).returncode:
                return f"{' '.join(words)} fails"
        return None

    return lacks


@attrs.frozen
class JudgedClient:
    """A library's ordinary program."""

    command: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=dict)
    #: None, or what is missing on this machine.
    lacks: Callable[[], str | None] = lambda: None


def _program(name: str, *words: str) -> tuple[str, ...]:
    return (*words, str(_HERE / name))


CLIENTS: Mapping[str, JudgedClient] = {
    "pika": JudgedClient(_program("pika_program.py", sys.executable)),
    "pika, asynchronous": JudgedClient(_program("pika_async_program.py", sys.executable)),
    "aio-pika": JudgedClient(_program("aio_pika_program.py", sys.executable)),
    "kombu": JudgedClient(_program("kombu_program.py", sys.executable)),
    "amqplib (npm)": JudgedClient(
        _program("node_program.js", "node"),
        {"NODE_PATH": str(NODE_MODULES)},
        lambda: None if (NODE_MODULES / "amqplib").is_dir() and shutil.which("node") else "no amqplib of npm",
    ),
    "php-amqplib": JudgedClient(
        _program("php_program.php", "php"),
        {"AMQP_HEARTBEAT": "1"},
        _without("php|-r|require 'PhpAmqpLib/autoload.php';"),
    ),
    "php-amqplib, 0-8": JudgedClient(
        _program("php_program.php", "php"),
        {"AMQP_OLD": "1"},
        _without("php|-r|require 'PhpAmqpLib/autoload.php';"),
    ),
    "bunny": JudgedClient(_program("bunny_program.rb", "ruby"), lacks=_without("ruby|-e|require 'bunny'")),
    "amqp-tools": JudgedClient(_program("tools_program.sh", "sh"), lacks=_without("amqp-publish|--help")),
    "py-amqplib, 0-8": JudgedClient(
        _program("amqplib_0_8_program.py", _SYSTEM_PYTHON),
        lacks=_without(f"{_SYSTEM_PYTHON}|-c|import amqplib"),
    ),
}
