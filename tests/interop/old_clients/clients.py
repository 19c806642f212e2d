"""Which library plays which steps, in which version, and what it must see.

Each program is called with the names of the steps to play. It finds the address and the values to send in its
environment, and writes lines to standard output: `step NAME` as it starts one, `ask WHAT` (then it reads one
line of JSON, the answer, from standard input), and `saw JSON`, or `failed JSON` with what the library raised.
Anything else it writes is shown when it ends without a word. pika is played in the tests' own process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import pika

from tests.interop.clients import pika_blocking
from tests.interop.clients.scripts import NODE_MODULES
from tests.interop.old_clients.steps import (
    FOREIGN_BODY,
    FOREIGN_HEADERS,
    HABITS,
    LEFT_TO_RABBITMQ,
    PROPERTIES,
    ROUND_TRIP,
    digest,
    properties,
    server,
)
from tests.interop.steps import EXPECTED, Setting

PROGRAMS = Path(__file__).parent / "programs"
ROOT = PROGRAMS.parents[3]
SPEC = ROOT / "spec" / "amqp"

#: Debian's Python, which has Debian's Python packages.
SYSTEM_PYTHON = "/usr/bin/python3"

#: Seconds that a step may take before its program is killed.
PATIENCE = 30

PLAIN_TABLE = {"text": "plain", "int": 7, "negative": -3, "table": {"deep": {"deeper": 1}}}


@attrs.frozen
class Saw:
    """A step went to its end, and the library showed this."""

    value: object


@attrs.frozen
class Failed:
    """The library could not play the step: its own words."""

    text: str


Outcome = Saw | Failed


@attrs.frozen
class At(Setting):
    """Where a client plays, with an operator who also publishes what old clients cannot."""

    @property
    def operators_port(self) -> int:
        return self.rabbitmq.port

    def ask(self, what: str) -> Sequence[object]:
        if what != "foreign":
            return Setting.ask(self, what)
        parameters = pika.ConnectionParameters("127.0.0.1", self.operators_port, self.vhost)
        connection = pika.BlockingConnection(parameters)
        channel = connection.channel()
        channel.confirm_delivery()
        headers = pika.BasicProperties(headers=dict(FOREIGN_HEADERS))
        channel.basic_publish("", "foreign", FOREIGN_BODY, headers)
        connection.close()
        return []


def _all(*, without: Sequence[str] = (), habits: Sequence[str] = ()) -> dict[str, object]:
    """Steps that need no word of their own, and what they must see."""
    steps = {step: seen for step, seen in ROUND_TRIP.items() if step not in without}
    return steps | {step: HABITS[step] for step in habits}


@attrs.frozen
class Client:
    """A library in one version."""

    name: str
    #: The version that it speaks, and the protocol header that it sends.
    version: str
    header: str
    #: Steps that it plays, and what each must see; `...` where the test compares what was sent and got.
    expected: Mapping[str, object]
    #: Steps that RabbitMQ alone refuses, and a part of what the library then says. "*": no step works.
    refused: Mapping[str, str] = attrs.field(factory=dict)
    #: Headers of the step `header_types` that the gateway maps, for a peer of which it knows only the version
    #: and a library that would have read more, and what they become.
    mapped: Mapping[str, object] = attrs.field(factory=dict)
    #: By place: steps that the version spoken there has no means for, and a part of what the library says.
    impossible: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    #: Headers of the step `properties`, of types that the library can write and read.
    headers: Mapping[str, object] = attrs.field(factory=lambda: PLAIN_TABLE)
    properties: Mapping[str, object] = PROPERTIES
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict)
    #: None, or what is missing on this machine.
    lacks: Callable[[], str | None] = lambda: None

    def play(self, at: Setting, steps: Sequence[str] | None = None) -> dict[str, Outcome]:
        """What each step showed. If the first one, which only connects, fails, the others are not tried."""
        left = list(steps or self.expected)
        seen = self._run([left[0]], at)
        first = seen[left[0]]
        if isinstance(first, Failed):
            return dict.fromkeys(left, first)
        while len(seen) < len(left):
            seen |= self._run(left[len(seen) :], at)
        return seen

    def _run(self, steps: Sequence[str], at: Setting) -> dict[str, Outcome]:
        """The outcomes of the first of these steps, at least one."""
        program = subprocess.Popen(
            [*self.command, *steps],
            env=dict(os.environ) | self._environment(at) | dict(self.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with _watched(program) as busy:
            return _converse(program, steps, at, busy)

    def _environment(self, at: Setting) -> dict[str, str]:
        return {
            "AMQP_HOST": at.host,
            "AMQP_PORT": str(at.port),
            "AMQP_VHOST": at.vhost,
            "AMQP_USER": at.user,
            "AMQP_PASSWORD": at.password,
            "STEP_PROPERTIES": json.dumps(self.properties),
            "STEP_HEADERS": json.dumps(self.headers),
            "NODE_PATH": str(NODE_MODULES),
            "TZ": "UTC",
        }


@contextlib.contextmanager
def _watched(program: subprocess.Popen[str]) -> Iterator[Callable[[], None]]:
    """Kill the program when what is yielded has not been called for `PATIENCE` seconds, and at the end."""
    timer = threading.Timer(PATIENCE, program.kill)
    timer.start()

    def busy() -> None:
        nonlocal timer
        timer.cancel()
        timer = threading.Timer(PATIENCE, program.kill)
        timer.start()

    try:
        yield busy
    finally:
        timer.cancel()
        program.kill()
        program.communicate()


def _converse(
    program: subprocess.Popen[str], steps: Sequence[str], at: Setting, busy: Callable[[], None]
) -> dict[str, Outcome]:
    assert program.stdin is not None
    assert program.stdout is not None
    seen: dict[str, Outcome] = {}
    other: list[str] = []
    step = steps[0]
    for line in program.stdout:
        word, _, rest = line.strip().partition(" ")
        if word == "step":
            step = rest
            busy()
        elif word == "ask":
            program.stdin.write(json.dumps(at.ask(rest)) + "\n")
            program.stdin.flush()
        elif word == "saw":
            seen[step] = Saw(json.loads(rest))
        elif word == "failed":
            seen[step] = Failed(json.loads(rest))
        else:
            other.append(line)
    if step not in seen:
        seen[step] = Failed(f"ended with {program.wait()}: {''.join(other[-20:])}")
    return seen


@attrs.frozen
class Pika(Client):
    """pika, with the steps of the newer clients that brokers of 0-8 and 0-9 can answer, too."""

    def _run(self, steps: Sequence[str], at: Setting) -> dict[str, Outcome]:
        seen: dict[str, Outcome] = {}
        for step in steps:
            try:
                seen[step] = Saw(getattr(pika_blocking, step)(at))
            except Exception as error:
                seen[step] = Failed(f"{type(error).__name__}: {error}")
        return seen


def _lacks_amqplib() -> str | None:
    command = [SYSTEM_PYTHON, "-c", "import amqplib"]
    if not Path(SYSTEM_PYTHON).exists() or subprocess.run(command, capture_output=True).returncode:
        return "py-amqplib is not installed (Debian: apt-get install python3-amqplib)"
    return None


def _lacks_php() -> str | None:
    if shutil.which("php") is None or not Path("/usr/share/php/PhpAmqpLib/autoload.php").exists():
        return "php-amqplib is not installed (Debian: apt-get install php-cli php-amqplib)"
    return None


def _lacks_txamqp() -> str | None:
    return (
        None if importlib.util.find_spec("txamqp") else "txAMQP is not installed (make .venv/.installed-dev)"
    )


def _lacks_perl() -> str | None:
    command = ["perl", "-MNet::AMQP", "-e", "1"]
    if shutil.which("perl") is None or subprocess.run(command, capture_output=True).returncode:
        return "Net::AMQP is not installed (Debian: apt-get install libnet-amqp-perl)"
    return None


def _lacks_node() -> str | None:
    if shutil.which("node") is None or not (NODE_MODULES / "amqp").is_dir():
        return "npm's amqp is not installed (tools/test-tools.sh installs it)"
    return None


_FLOW = "NOT_IMPLEMENTED - active=false"

#: A refused login is told by the end of the socket to clients that do not say that they can take a close.
NO_WORD = "no word"

_NO_UNBIND = dict(ROUND_TRIP["bindings"])  # type: ignore[call-overload]
del _NO_UNBIND["unbind"]


def _txamqp(version: str, xml: str, own: Mapping[str, object], *without: str) -> Client:
    numbers = (8, 0) if version == "0-8" else (0, 9)
    headers = {"text": "plain", "int": 7}
    return Client(
        name=f"txamqp_{version.replace('-', '_')}",
        version=version,
        header="1 1 8 0" if version == "0-8" else "1 1 0 9",
        command=(sys.executable, str(PROGRAMS / "txamqp_steps.py")),
        env={"AMQP_XML": str(SPEC / xml)},
        lacks=_lacks_txamqp,
        headers=headers,
        expected={
            "server": server(numbers),
            **_all(without=without, habits=("flow", "prefetch_size", "foreign")),
            "properties": properties(headers),
            "wrong_password": NO_WORD,
            **own,
        },
        refused={
            "flow": _FLOW,
            "prefetch_size": "NOT_IMPLEMENTED - prefetch_size!=0",
            "foreign": "ValueError",
        },
    )


def _perl(version: str, xml: str, own: Mapping[str, object], *without: str) -> Client:
    numbers = (8, 0) if version == "0-8" else (0, 9)
    habits = ("flow", "channel_max_0", "frame_max_0", "small_frame_max", "empty_response", "foreign")
    return Client(
        name=f"net_amqp_{version.replace('-', '_')}",
        version=version,
        header="1 1 8 0" if version == "0-8" else "1 1 0 9",
        command=("perl", str(PROGRAMS / "net_amqp.pl")),
        env={"AMQP_XML": str(SPEC / xml)},
        lacks=_lacks_perl,
        mapped={"list": {"0": 1, "1": "two", "2": {"0": 3}, "3": {"four": 4}}, "nothing": {}},
        expected={
            "server": server(numbers),
            **_all(without=without, habits=habits),
            "properties": properties(PLAIN_TABLE),
            "header_types": ...,
            "wrong_password": NO_WORD,
            **own,
        },
        refused={
            "flow": _FLOW,
            **dict.fromkeys(("channel_max_0", "frame_max_0", "empty_response"), "the connection is gone"),
            "foreign": "No way to unpack field",
        },
    )


AMQPLIB = Client(
    name="amqplib_0_8",
    version="0-8",
    header="1 1 9 1",
    command=(SYSTEM_PYTHON, str(PROGRAMS / "amqplib_0_8.py")),
    lacks=_lacks_amqplib,
    expected={
        "server": server((8, 0)),
        **_all(habits=("flow", "prefetch_size", "delivery_mode_0", "immediate", "foreign")),
        **LEFT_TO_RABBITMQ,
        "properties": properties(PLAIN_TABLE),
        "header_types": ...,
        "wrong_password": NO_WORD,
    },
    refused={
        "flow": _FLOW,
        "prefetch_size": "NOT_IMPLEMENTED - prefetch_size!=0",
        "delivery_mode_0": "PRECONDITION_FAILED - invalid message: {delivery_mode_unknown,0}",
        "immediate": "NOT_IMPLEMENTED - immediate=true",
        "foreign": "Unknown table item type",
    },
)

PHP = Client(
    name="php_amqplib_0_8",
    version="0-8",
    header="1 1 8 0",
    command=("php", str(PROGRAMS / "php_amqplib_0_8.php")),
    lacks=_lacks_php,
    expected={
        "server": server((8, 0)),
        **_all(habits=("flow", "foreign")),
        "properties": properties(PLAIN_TABLE),
        "header_types": ...,
        # Unlike the others it says that it can take a close here.
        "wrong_password": [
            403,
            "ACCESS_REFUSED - Login was refused using authentication mechanism AMQPLAIN. For details see the"
            " broker logfile.",
            [0, 0],
        ],
    },
    refused={"flow": _FLOW},
    mapped={"ulong": "4000000000", "longlong": str(-(2**63)), "yes": 1, "void": ""},
)

NODE = Client(
    name="node_amqp_0_8",
    version="0-8",
    header="1 1 8 0",
    command=("node", "--no-deprecation", str(PROGRAMS / "node_amqp.js")),
    lacks=_lacks_node,
    # It writes strings and negative numbers into tables, and misreads such numbers. It has no timestamps.
    headers={"text": "plain", "more": "grün"},
    properties={name: value for name, value in PROPERTIES.items() if name != "timestamp"},
    expected={
        "server": server((8, 0)),
        "declare": {
            "named": ["declare", 0, 0],
            "passive": ["declare", 0, 0],
            "server_named": True,
            "deleted": 0,
        },
        "bindings": {
            "red": ["car.fast", "car.fast.now", "direct", "fanout"],
            "blue": ["fanout", "slow.car"],
        },
        "properties": {
            "properties": {name: value for name, value in PROPERTIES.items() if name != "timestamp"},
            "headers": {"text": "plain", "more": "grün"},
        },
        "bodies": [digest("grün ".encode() * 20000)],
        "returns": [312, "NO_ROUTE", "amq.direct", "nowhere"],
        "consume": {"bodies": [f"m{n}" for n in range(10)], "left": 0},
        "qos": {"bodies": ["m0", "m1", "m2"], "left": 0},
        "errors": {
            "404": ["NOT_FOUND - no queue 'nothing' in vhost '{vhost}'", [50, 10]],
            "406": ROUND_TRIP["errors"]["406"],  # type: ignore[index]
            "usable": True,
        },
        "connection_error": [530, "NOT_ALLOWED - attempt to reuse consumer tag '.'", [60, 20]],
        "unknown_vhost": ROUND_TRIP["unknown_vhost"],
        "wrong_password": NO_WORD,
        "operator_close": ROUND_TRIP["operator_close"],
    },
    refused={"*": "no word"},
)

PIKA = Pika(
    name="pika_0_9_1",
    version="0-9-1",
    header="0 0 9 1",
    # pika asks for confirms, and sees in the capabilities that there are none.
    impossible={"to 0-8": {"returns": "Confirm.Select not Supported by Server"}},
    expected={
        step: EXPECTED[step]
        for step in (
            *(
                "declare",
                "properties",
                "header_types",
                "bodies",
                "returns",
                "acks",
                "recover",
                "get",
                "consume",
            ),
            *("tx", "channel_errors", "wrong_password", "unknown_vhost", "operator_close", "amqplain"),
        )
    },
)

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        AMQPLIB,
        PHP,
        _txamqp("0-8", "amqp0-8.xml", {"bindings": _NO_UNBIND}),
        _txamqp("0-9", "amqp0-9.xml", {}),
        _txamqp("0-9-1", "amqp0-9-1.extended.xml", {}, "access"),
        _perl("0-8", "amqp0-8.xml", {"bindings": _NO_UNBIND}),
        _perl("0-9-1", "amqp0-9-1.extended.xml", {}, "access"),
        NODE,
        PIKA,
    )
}


def verdicts(
    client: Client, seen: Mapping[str, Outcome], *, place: str = "", mapped: bool = False
) -> Iterator[tuple[str, str]]:
    """Each step that did not see what it must, and how it differs; `mapped` through the gateway."""
    impossible = client.impossible.get(place, {})
    for step, outcome in seen.items():
        if isinstance(outcome, Failed):
            if step not in impossible or impossible[step] not in outcome.text:
                yield step, outcome.text
            continue
        got, must = outcome.value, client.expected[step]
        if must is ...:
            must, got = got  # type: ignore[misc]
            if mapped:
                must = {**must, **client.mapped}  # type: ignore[dict-item]
        else:
            must = json.loads(json.dumps(must).replace("{vhost}", client.name))
        if got != must:
            yield step, _difference(got, must)


def _difference(got: object, must: object) -> str:
    """In words, and of tables only what differs."""
    if isinstance(got, dict) and isinstance(must, dict):
        got, must = (
            {name: value for name, value in one.items() if name not in other or other[name] != value}
            for one, other in ((got, must), (must, got))
        )
    return f"saw {got!r}, not {must!r}"
