"""Drivers in other languages: one process per step, which asks for an operator's acts over its pipes.

A script is called with the step's name. It finds the address and the values to send in its environment, and
writes lines to standard output: `ask WHAT` (then it reads one line of JSON, the answer, from standard input),
and at the end `saw JSON`. Anything else it writes is shown when it fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import attrs

from tests.interop.steps import EXPECTED, HEADERS, PROPERTIES, Setting
from tests.support.missing import missing

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]

NODE_MODULES = _ROOT / ".cache" / "node" / "node_modules"


@attrs.frozen
class Script:
    """A client library of another language, and the script that plays the steps with it."""

    name: str
    command: tuple[str, ...]
    #: None, or what is missing on this machine.
    lacks: Callable[[], str | None]
    #: Steps that the library has no means for, each with the reason.
    cannot: Mapping[str, str] = attrs.field(factory=dict)
    own: Mapping[str, object] = attrs.field(factory=dict)
    env: Mapping[str, str] = attrs.field(factory=dict)

    def steps(self) -> list[str]:
        """All but `server`, which the Python drivers compare."""
        return [step for step in EXPECTED if step != "server" and step not in self.cannot]

    def play(self, step: str, at: Setting) -> object:
        """What the script saw. Skips if its language or library is not installed."""
        lack = self.lacks()
        if lack is not None:
            missing(lack)
        script = subprocess.Popen(
            [*self.command, step],
            env=dict(os.environ) | _environment(at) | dict(self.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        watchdog = threading.Timer(60, script.kill)
        watchdog.start()
        try:
            return _converse(script, at)
        finally:
            watchdog.cancel()
            script.kill()
            script.communicate()


def _converse(script: subprocess.Popen[str], at: Setting) -> object:
    assert script.stdin is not None
    assert script.stdout is not None
    lines: list[str] = []
    for line in script.stdout:
        lines.append(line)
        word, _, rest = line.strip().partition(" ")
        if word == "ask":
            script.stdin.write(json.dumps(at.ask(rest)) + "\n")
            script.stdin.flush()
        elif word == "saw":
            return json.loads(rest)
    raise AssertionError(f"{script.args} ended with {script.wait()}:\n{''.join(lines)}")


def _environment(at: Setting) -> dict[str, str]:
    return {
        "AMQP_HOST": at.host,
        "AMQP_PORT": str(at.port),
        "AMQP_VHOST": at.vhost,
        "AMQP_USER": at.user,
        "AMQP_PASSWORD": at.password,
        "STEP_PROPERTIES": json.dumps(PROPERTIES),
        "STEP_HEADERS": json.dumps(HEADERS),
        "NODE_PATH": str(NODE_MODULES),
    }


def _lacks_node(release: str = "") -> str | None:
    if shutil.which("node") is None:
        return "Node.js is not installed (Debian: apt-get install nodejs npm)"
    if not (NODE_MODULES / f"amqplib{release}").is_dir():
        return "Node's amqplib is not installed (tools/test-tools.sh installs it with npm)"
    return None


def _lacks_php() -> str | None:
    if shutil.which("php") is None or not Path("/usr/share/php/PhpAmqpLib/autoload.php").exists():
        return "php-amqplib is not installed (Debian: apt-get install php-cli php-amqplib)"
    return None


def _lacks_bunny() -> str | None:
    ruby = shutil.which("ruby")
    if ruby is None or subprocess.run([ruby, "-e", 'require "bunny"'], capture_output=True).returncode:
        return "Ruby's bunny is not installed (Debian: apt-get install ruby-bunny)"
    return None


NODE_AMQPLIB = Script(
    name="node_amqplib",
    command=("node", str(_HERE / "node" / "steps.js")),
    lacks=_lacks_node,
    cannot={"tx": "amqplib has no transactions"},
    # amqplib does not look into a connection.close that comes instead of open-ok.
    own={"unknown_vhost": "Expected ConnectionOpenOk; got <ConnectionClose channel:0>"},
)

#: The last one that asks for frames of 4,096 bytes, which RabbitMQ 4.1 hangs up on.
NODE_AMQPLIB_0_10 = attrs.evolve(
    NODE_AMQPLIB,
    name="node_amqplib_0_10",
    lacks=partial(_lacks_node, "-0.10"),
    cannot={**NODE_AMQPLIB.cannot, "header_types": "it writes a header that is longer than its frames"},
    env={"AMQPLIB": "amqplib-0.10"},
)

PHP_AMQPLIB = Script(
    name="php_amqplib",
    command=("php", str(_HERE / "steps.php")),
    lacks=_lacks_php,
    cannot={"update_secret": "php-amqplib has no such call"},
)

RUBY_BUNNY = Script(
    name="ruby_bunny",
    command=("ruby", str(_HERE / "steps.rb")),
    lacks=_lacks_bunny,
    cannot={"amqplain": "bunny has PLAIN and EXTERNAL only"},
    # bunny puts a sentence of its own in the place of the broker's.
    own={
        "wrong_password": "Authentication with RabbitMQ failed. Please check your connection settings."
        " Username: guest, vhost: ruby_bunny, password length: 5"
    },
)
