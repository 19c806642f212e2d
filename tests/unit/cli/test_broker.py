"""``amqpgate broker`` in a process of its own."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from amqpgate.broker import VERSIONS
from amqpgate.cli import main
from amqpgate.cli.broker import VERSIONS as OFFERED
from amqpgate.protocol.header import HEADER_0_10
from amqpgate.wire.dialects import HEADER_0_9_1


def test_versions_are_those_of_the_broker() -> None:
    assert OFFERED == VERSIONS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-W", "error", "-m", "amqpgate", "broker"]
    options = ["--listen", "127.0.0.1:0", "--versions", "0-10", "--vhost", "v"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = re.fullmatch(rb"amqp://guest:guest@127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
            assert said is not None
            with socket.create_connection(("127.0.0.1", int(said[1])), timeout=20) as client:
                client.sendall(HEADER_0_9_1)
                assert client.recv(100) == HEADER_0_10
                assert client.recv(100) == b""
            process.send_signal(number)
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--versions", "0-9"], 2, "--versions: they are some of 0-9-1, 0-10, and not 0-9"),
        (["--listen", "nowhere"], 2, "--listen: "),
    ],
)
def test_what_is_wrong_is_said(options: list[str], code: int, said: str) -> None:
    done = CliRunner().invoke(main, ["broker", *options])
    assert (done.exit_code, said in done.output) == (code, True), done.output


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = CliRunner().invoke(main, ["broker", "--listen", listen])
    assert (done.exit_code, "--listen: cannot listen on" in done.output) == (1, True), done.output
