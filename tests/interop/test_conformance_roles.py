"""``amqpgate conformance`` of clients, with real libraries' programs, and of gateways as proxies."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.interop.conformance_clients.clients import CLIENTS
from tests.support.gateway import Gateway
from tests.support.missing import missing

#: What each does otherwise, as docs/conformance.md has it. What is a matter of time is left out.
CLOSES = {"connection.start-ok.refused", "connection.open.refused"}
DEVIATIONS: Mapping[str, set[str]] = {
    "pika": CLOSES | {"connection.close.answered", "channel.flow.answered"},
    "pika, asynchronous": CLOSES | {"connection.close.answered", "channel.flow.answered"},
    "aio-pika": CLOSES | {"channel.flow.answered"},
    "kombu": {"connection.close.last", "channel.flow.obeyed"},
    "amqplib (npm)": CLOSES | {"connection.close.last", "channel.flow.answered"},
    "php-amqplib": {"connection.start.no-mechanism", "channel.flow.answered"},
    "php-amqplib, 0-8": {"connection.start.no-mechanism", "channel.flow.answered"},
    "amqp-tools": CLOSES
    | {
        "connection.close.answered",
        "channel.close.answered",
        "channel.close.crosses",
        "channel.flow.answered",
    },
    "py-amqplib, 0-8": {"connection.start.no-mechanism", "channel.flow.answered"},
}

#: Whether it comes to this depends on who is quicker.
RACES = {"connection.close.last"}


def _port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def conformance(tmp_path: Path, *options: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What is not obeyed, by rule."""
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "amqpgate", "conformance", *options, "--json", str(file)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, env=dict(os.environ) | dict(env or {})
    )
    assert file.exists(), done.stderr
    results = json.loads(file.read_text())["results"]
    return {one["id"]: one["seen"] for one in results if one["verdict"] == "deviates"}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", DEVIATIONS)
def test_clients_deviate_where_they_are_known_to(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    lack = client.lacks()
    if lack is not None:
        missing(lack)
    run = ("--serve", "127.0.0.1:0", "--patience", "60", "--run", shlex.join(client.command))
    found = conformance(tmp_path, *run, env=client.env)
    timed = {path for path in found if "heartbeat" in path}
    assert found.keys() - timed - RACES == DEVIATIONS[name] - RACES, found


@pytest.mark.timeout(120)
def test_an_ordinary_program_goes_on(tmp_path: Path) -> None:
    run = (
        "--serve",
        "127.0.0.1:0",
        "--section",
        "connection.ordinary",
        "--section",
        "contents",
        "--patience",
        "60",
    )
    assert conformance(tmp_path, *run, "--run", shlex.join(CLIENTS["pika"].command)) == {}


@pytest.mark.timeout(60)
def test_ctrl_c_ends_with_a_report() -> None:
    command = [sys.executable, "-m", "amqpgate", "conformance", "--serve", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        assert child.stderr.readline().startswith("listening at 127.0.0.1:")
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=30)
    assert child.returncode == 0
    assert said.endswith("nothing counts against it\n")


_CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: broker, host: 127.0.0.1, port: %d, connections: %s, version: %s}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 2s}
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("connections", "speaks", "versions", "deviating"),
    [
        ("own", "auto", "0-9-1", set()),
        # Translated: compared field by field.
        ("own", "0-9-1", "0-8", set()),
        ("pooled", "auto", "0-9-1", {"proxy.start.mechanisms", "proxy.connection.close.broker"}),
    ],
)
def test_a_gateway_passes_on_what_comes(
    connections: str, speaks: str, versions: str, deviating: set[str], tmp_path: Path
) -> None:
    port = _port()
    gateway = Gateway(config=_CONFIG % (port, connections, speaks))
    with gateway.serving():
        where = (f"127.0.0.1:{gateway.port}", "--upstream-probe", f"127.0.0.1:{port}")
        found = conformance(tmp_path, *where, "--patience", "15", "--versions", versions)
    assert found.keys() == deviating, found
