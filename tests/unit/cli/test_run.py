"""``amqpgate run`` in a process of its own: what it says, how it stops, what it refuses."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from amqpgate.cli import claims, main
from amqpgate.protocol.header import REFUSAL
from tests.support.inprocess import eventually
from tests.support.ports import free_port

POLICIES = Path(__file__).parents[3] / "src" / "amqpgate" / "cli" / "policies"


@contextmanager
def running(*args: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "amqpgate", "run", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], part: str) -> list[str]:
    """The lines of standard error up to the one with ``part`` in it."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if part in line:
            return lines
    raise AssertionError(f"ended without saying {part!r}: {lines}")


def refused(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "amqpgate", "run", *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_stands_and_a_signal_ends_it_with_0(number: signal.Signals) -> None:
    port, admin = free_port(), free_port()
    args = ("--listen", f"127.0.0.1:{port}", "--upstream", "amqp://app:hunter2@127.0.0.1:1/prod")
    with running(*args, "--policies", str(POLICIES), "--admin", f"127.0.0.1:{admin}") as process:
        lines = read_until(process, "admin: ")
        text = "\n".join(lines)
        assert f"listening on amqp://127.0.0.1:{port}" in text
        assert "forwarding to amqp://app:***@127.0.0.1:1/prod as user app" in text
        assert f"policies: 1 from {POLICIES}, digest sha256:" in text
        assert f"admin: http://127.0.0.1:{admin}/" in text
        socket.create_connection(("127.0.0.1", port)).close()
        process.send_signal(number)
        out, rest = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    assert "hunter2" not in text + rest
    assert "Traceback" not in rest


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say here")
def test_there_is_room_for_the_descriptors_of_all_connections_once_it_serves() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with running("--listen", "127.0.0.1:0", "--upstream", "amqp://127.0.0.1:1") as process:
        read_until(process, "listening on ")
        status = Path(f"/proc/{process.pid}/status").read_text()
    size = re.search(r"^FDSize:\s+(\d+)$", status, re.MULTILINE)
    assert size is not None
    assert int(size[1]) >= (20_064 if hard == resource.RLIM_INFINITY else min(20_064, hard))


def test_port_0_is_told_as_it_was_given() -> None:
    with running("--listen", "127.0.0.1:0", "--upstream", "amqp://127.0.0.1:1") as process:
        lines = read_until(process, "admin: off")
        (line,) = [line for line in lines if "listening on" in line]
        port = int(line.rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port)).close()


def test_the_upstream_may_come_from_the_environment() -> None:
    env = {"AMQPGATE_UPSTREAM": "amqp://app:hunter2@127.0.0.1:1"}
    with running("--listen", "127.0.0.1:0", env=env) as process:
        text = "\n".join(read_until(process, "admin: off"))
    assert "forwarding to amqp://app:***@127.0.0.1:1 as user app" in text


def test_json_is_json_from_the_first_line_to_the_last() -> None:
    args = ("--listen", "127.0.0.1:0", "--upstream", "amqp://127.0.0.1:1", "--log-format", "json")
    with running(*args) as process:
        lines = read_until(process, "admin: off")
        process.terminate()
        lines += process.communicate(timeout=60)[1].splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["level"] for record in records} == {"info"}
    assert any("draining" in record["message"] for record in records)


def test_a_file_with_other_log_options_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "amqpgate.yaml"
    file.write_text(
        """\
listeners:
- {name: a, bind: "127.0.0.1:0"}
- {name: b, bind: "127.0.0.1:0"}
upstreams:
- {name: rabbit, url: "amqp://${NAME_OF_BROKER}:1"}
log: {format: console, level: error}
"""
    )
    args = ("--config", str(file), "--log-level", "info", "--log-format", "json")
    with running(*args, env={"NAME_OF_BROKER": "rabbit.example"}) as process:
        lines = read_until(process, "admin: off")
    messages = [json.loads(line)["message"] for line in lines]
    assert len([text for text in messages if text.startswith("listening on amqp://127.0.0.1:")]) == 2
    assert "forwarding to amqp://rabbit.example:1 with the client's own login" in messages


def test_a_taken_port_is_1_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = refused("--listen", address, "--upstream", "amqp://127.0.0.1:1")
    assert done.returncode == 1
    assert f"cannot listen on {address}: Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_admin_port_is_1_and_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = refused("--listen", "127.0.0.1:0", "--upstream", "amqp://127.0.0.1:1", "--admin", address)
    assert done.returncode == 1
    assert f"admin: cannot listen on {address}" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--listen", "nowhere", "--upstream", "amqp://x"], "--listen: "),
        (["--listen", "127.0.0.1:0", "--upstream", "http://x"], "--upstream: "),
        (["--listen", "127.0.0.1:0", "--upstream", "amqp://u:hunter2@[x"], "--upstream: "),
        (["--listen", "0.0.0.0:0", "--upstream", "amqp://u:hunter2@x"], "allowAnonymous"),
        (["--listen", "127.0.0.1:0", "--upstream", "amqp://x", "--policies", "/nowhere"], "--policies: "),
        (["--listen", "127.0.0.1:0", "--upstream", "amqp://x", "--admin", "0.0.0.0:0"], "--admin: "),
        (["--config", "/nowhere.yaml"], "no such file: /nowhere.yaml"),
    ],
)
def test_wrong_settings_are_2_without_a_traceback_or_a_password(args: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["run", *args])
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert said in result.stderr
    assert "hunter2" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_anonymous_clients_can_be_allowed() -> None:
    args = ("--listen", "0.0.0.0:0", "--upstream", "amqp://u:hunter2@127.0.0.1:1", "--allow-anonymous")
    with running(*args) as process:
        read_until(process, "admin: off")


def test_a_second_signal_ends_at_once_with_1() -> None:
    """A client that is connected keeps the drain waiting; the second signal does not wait for it."""
    port = free_port()
    with running("--listen", f"127.0.0.1:{port}", "--upstream", "amqp://127.0.0.1:1") as process:
        read_until(process, "admin: off")
        with socket.create_connection(("127.0.0.1", port)):
            process.terminate()
            read_until(process, "draining: 1 connections")
            process.terminate()
            process.communicate(timeout=60)
    assert process.returncode == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_who_comes_while_it_starts_is_refused_or_served(tmp_path: Path, workers: int) -> None:
    """And never reset, and from the first who is served on, all are."""
    port = free_port()
    served: list[bool] = []
    with running("--config", str(settings_in(tmp_path, port, workers))):
        while served.count(True) < 1000:
            with socket.socket() as client:
                client.settimeout(60)
                answer = client.connect_ex(("127.0.0.1", port))
                served.append(answer == 0)
                if served[-1]:
                    # The gateway answers by itself (AMQP 0-9-1, section 4.2.2).
                    client.sendall(b"HTTP/1.1")
                    assert client.recv(8) == REFUSAL
                else:
                    assert answer == errno.ECONNREFUSED
                    time.sleep(0.001)
    assert all(served[served.index(True) :])


def settings_in(folder: Path, port: int, workers: int) -> Path:
    """A file of settings."""
    file = folder / "amqpgate.yaml"
    file.write_text(
        f'workers: {workers}\nlisteners: [{{name: main, bind: "127.0.0.1:{port}"}}]\n'
        'upstreams: [{name: rabbit, url: "amqp://127.0.0.1:1"}]\n'
    )
    return file


@pytest.mark.parametrize("workers", [1, 2])
def test_of_two_that_start_at_once_on_one_port_one_serves(tmp_path: Path, workers: int) -> None:
    """Though the kernel lets processes of one user share a port."""
    port = free_port()
    args = ("--config", str(settings_in(tmp_path, port, workers)))
    with running(*args) as one, running(*args) as other:
        said = [read_until(process, f"127.0.0.1:{port}")[-1] for process in (one, other)]
        assert sorted("Address already in use" in line for line in said) == [False, True], said
        assert sorted("listening on" in line for line in said) == [False, True], said


def test_of_two_that_take_over_at_once_one_takes_over_from_the_other(tmp_path: Path) -> None:
    """No two have the place of one gateway: the second waits, and has that of the first."""
    port, admin = free_port(), free_port()
    file = settings_in(tmp_path, port, 1)
    text = f'admin: {{bind: "127.0.0.1:{admin}"}}\nlimits: {{drainTimeout: 1s, closeTimeout: 1s}}\n'
    file.write_text(file.read_text() + text)
    args = ("--config", str(file))
    with running(*args) as here:
        read_until(here, "admin: ")
        with running(*args, "--take-over") as one, running(*args, "--take-over") as other:
            assert here.wait(60) == 0
            heirs = {one: other, other: one}
            eventually(lambda: any(heir.poll() is not None for heir in heirs), timeout=60)
            (first,) = [heir for heir in heirs if heir.poll() is not None]
            last = heirs[first]
            said = read_until(last, f"admin: http://127.0.0.1:{admin}/")
            assert first.returncode == 0
            assert any("another amqpgate" in line and "waiting" in line for line in said), said
            assert any("new connections come here" in line for line in said), said
            socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.parametrize("verb", [("run", "--upstream", "amqp://127.0.0.1:1"), ("demo", "--count", "1")])
def test_a_start_that_does_not_end_is_told_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.setattr(claims, "_PATIENCE", 0.1)
    port, other = free_port(), free_port()
    with claims.claimed([other, 0, port, port]):
        done = CliRunner().invoke(main, [*verb, "--listen", f"127.0.0.1:{port}"])
        assert done.exit_code == 1
        assert f"another amqpgate has been starting on port {port}" in done.output
    claims.claimed([other, 0, port]).close()


@pytest.mark.parametrize(("name", "ended"), [("audit", ""), ("other", "taken down\n")])
def test_a_process_is_not_taken_down_under_who_writes_records(name: str, ended: str) -> None:
    """Native code may be in the middle of something: it aborted the process, and the exit code was 6."""
    program = f"""
import atexit, threading
from amqpgate.cli.run import _leave
atexit.register(print, "taken down")
threading.Thread(target=threading.Event().wait, name={name!r}, daemon=True).start()
_leave(3)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, ended, "")


def test_a_port_that_is_free_before_it_is_asked_for_twice_is_named(tmp_path: Path) -> None:
    """Each address is free where it is looked at alone."""
    port = free_port()
    file = settings_in(tmp_path, port, 1)
    file.write_text(file.read_text() + f'admin: {{bind: "localhost:{port}"}}\n')
    done = refused("--config", str(file))
    assert done.returncode == 1
    said = f"amqpgate: listener main: cannot listen on 127.0.0.1:{port}: Address already in use; stop what is"
    assert said in done.stderr
    assert "Traceback" not in done.stderr
