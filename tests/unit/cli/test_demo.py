"""``amqpgate demo`` as a whole, in a process of its own, and what its policy says."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

import amqpgate.cli.demo as demo_module
from amqpgate.cli import main
from amqpgate.cli.demo_client import EXCHANGE, STEPS
from amqpgate.cli.demo_stage import POLICIES
from amqpgate.policy import Operation, Principal, load_folder
from tests.support.ports import free_port

SHOWN = Path(__file__).parents[3] / "policies" / "demo.yaml"


@contextmanager
def running(*args: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "amqpgate", "demo", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "80"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def rows_of(text: str) -> list[str]:
    """The sights, without the time and with single spaces."""
    return [" ".join(line.split()[1:]) for line in text.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]


def test_six_attempts_show_each_kind_once_and_end_with_0() -> None:
    port, admin = free_port(), free_port()
    places = ("--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}")
    with running("--count", "6", "--interval", "0.02", *places) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    refused = "DENIED 403 ACCESS_REFUSED - access to"
    suffix = "in vhost '/' refused for user 'guest'"
    assert rows_of(out) == [
        "basic.publish demo.orders order.eu.created allowed basic.ack",
        "basic.deliver demo.orders order.eu.created message 1",
        "basic.publish demo.orders order.us.created allowed basic.ack",
        "basic.deliver demo.orders order.us.created message 2",
        "basic.publish demo.orders order.eu.refunded "
        f"{refused} topic 'order.eu.refunded' in exchange 'demo.orders' {suffix}",
        "basic.publish demo.orders order.jp.created allowed basic.ack",
        "basic.deliver demo.orders order.jp.created message 4",
        f"basic.publish (default) payroll {refused} exchange 'amq.default' {suffix}",
        f"basic.get payroll {refused} queue 'payroll' {suffix}",
    ]
    assert f"your client  amqp://guest:guest@127.0.0.1:{port}\n" in out
    assert f"page         http://127.0.0.1:{admin}/\n" in out
    assert out.endswith("demo over: 3 allowed, 3 denied, 3 consumed\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_0(number: signal.Signals) -> None:
    admin = free_port()
    places = ("--listen", "127.0.0.1:0", "--admin", f"127.0.0.1:{admin}")
    with running("--interval", "0.02", *places) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "DENIED" in line:
                break
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert 'amqpgate_denials_total{policy="demo",rule="no-refunds"}' in text
    assert "connection.close 320 CONNECTION_FORCED - amqpgate is shutting down" in rows_of(out)
    assert "demo over: " in out.splitlines()[-1]


def test_ctrl_c_while_it_starts_is_0_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "_demo", interrupted)
    assert CliRunner().invoke(main, ["demo"]).exit_code == 0


def test_a_broker_that_is_not_there_is_1_and_told_without_the_password() -> None:
    url = f"amqp://guest:hunter2@127.0.0.1:{free_port()}"
    result = CliRunner().invoke(main, ["demo", "--upstream", url])
    assert result.exit_code == 1
    assert f"cannot connect to {url.replace('hunter2', '***')}: Connection refused; " in result.stderr
    assert "is the broker running there?" in result.stderr
    assert "hunter2" not in result.output


def test_something_else_there_is_1_and_told() -> None:
    """What answers is no broker: it says goodbye at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(15)
        url = f"amqp://127.0.0.1:{listener.getsockname()[1]}"
        with running("--upstream", url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0") as process:
            for _ in range(2):  # the look whether anybody is there, and the gateway
                connection, _address = listener.accept()
                connection.close()
            _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "amqpgate: the demonstration client could not log in: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["--listen", "--admin"])
def test_a_taken_port_that_was_asked_for_is_1(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(main, ["demo", option, address])
    assert result.exit_code == 1
    assert f"{option}: cannot listen on {address}" in result.stderr


def test_the_usual_port_is_taken_or_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert demo_module._free_port("127.0.0.1", port) != port
    assert demo_module._free_port("127.0.0.1", port) == port


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--upstream", "http://x"], "--upstream: "),
        (["--listen", "nowhere"], "--listen: "),
        (["--admin", "127.0.0.1:1:2"], "--admin: "),
        (["--admin", "0.0.0.0:0"], "tokenFile"),
    ],
)
def test_a_wrong_command_line_is_2(args: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["demo", *args])
    assert result.exit_code == 2
    assert said in result.stderr


def test_the_policy_that_is_shown_is_the_one_that_is_enforced() -> None:
    assert (POLICIES / "demo.yaml").read_bytes() == SHOWN.read_bytes()
    assert [path.name for path in POLICIES.iterdir()] == ["demo.yaml"]


def decided(name: str, **attributes: str) -> str:
    verdict = load_folder(POLICIES).decide(Operation(Principal("anyone", "any"), name, **attributes))
    return f"{verdict.effect} {verdict.rule}"


def test_what_the_policy_says_of_every_step() -> None:
    verdicts = []
    for step in STEPS:
        if isinstance(step, str):
            verdicts.append(decided("basic.get", queue=step))
        else:
            verdicts.append(decided("basic.publish", exchange=step[0], routing_key=step[1]))
    assert verdicts == [
        "allow announce-orders",
        "allow announce-orders",
        "deny no-refunds",
        "allow announce-orders",
        "deny default",
        "deny default",
    ]


def test_what_the_policy_says_of_a_guest_of_the_demonstration() -> None:
    assert decided("queue.declare", queue="demo.mine") == "allow own-queues"
    assert decided("queue.declare", queue="mine") == "deny default"
    assert (
        decided("queue.bind", queue="demo.mine", exchange=EXCHANGE, routing_key="#")
        == "allow listen-to-orders"
    )
    assert decided("queue.bind", queue="demo.mine", exchange="amq.topic", routing_key="#") == "deny default"
    assert decided("exchange.delete", exchange="demo.orders") == "allow own-names"
