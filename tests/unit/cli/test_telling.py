"""No name of another's drives a terminal, whichever verb tells it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import amqpgate.cli
from amqpgate.cli import main
from amqpgate.cli.telling import echo, on_lines
from tests.support.raw_answers import http as answer
from tests.support.raw_answers import saying

CLEARS = "\x1b[2J"
POLICY = """\
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: first}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: all, effect: allow, operations: ["OPERATION"]}
"""


def told(*words: str) -> str:
    """What a terminal gets: elsewhere click itself takes some of it out."""
    done = CliRunner(env={"AMQPGATE_MANAGEMENT_PASSWORD": "x"}).invoke(main, words, color=True)
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.output


def assert_tame(text: str) -> None:
    assert "\\x1b[2J" in text, "it is told"
    assert re.findall(r"[^\n\x20-\x7e\xa1-\U0010ffff]", text) == []


def test_lines_end_and_nothing_else_is_obeyed() -> None:
    assert on_lines("a\nb\x1b[2J\r\t\x9b\x7f\u202e\n") == "a\nb\\x1b[2J\\r\\t\\x9b\\x7f\\u202e\n"
    assert on_lines("Zürich 日本") == "Zürich 日本"


def test_a_key_of_settings(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text('"\\e[2Jx": 1\n')
    assert_tame(told("check", "--config", str(tmp_path / "a.yaml")))


def test_an_operation_of_a_policy(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY.replace("OPERATION", "\\e[2Jx"))
    assert_tame(told("check", "--policies", str(tmp_path)))


def test_a_virtual_host_of_definitions(tmp_path: Path) -> None:
    one = {"user": "a", "vhost": f"*{CLEARS}", "configure": "(", "write": "", "read": ""}
    (tmp_path / "d.json").write_text(json.dumps({"users": [{"name": "a"}], "permissions": [one]}))
    file = str(tmp_path / "d.json")
    assert_tame(told("init", str(tmp_path / "gate"), "--yes", "--definitions", file))
    assert_tame(told("policy", "import", file))


@pytest.mark.parametrize(
    "said",
    [
        f"{CLEARS}\r\n\r\n".encode(),
        answer(CLEARS.encode(), status=b"401 No"),
        answer(b"", status=b"302 Found", headers=f"location: {CLEARS}\r\n".encode()),
    ],
)
def test_a_management_interface(tmp_path: Path, said: bytes) -> None:
    with saying(said) as address:
        assert_tame(told("init", str(tmp_path / "gate"), "--yes", "--management", f"http://{address}"))


def test_an_admin_interface() -> None:
    for said in (f"{CLEARS}\r\n".encode(), answer(f"{CLEARS}\nno".encode(), status=b"403 No")):
        with saying(said) as address:
            assert_tame(told("sessions", "--admin", address))
            assert_tame(told("health", "--admin", address))


def test_a_name_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY.replace("OPERATION", "*"))
    words = ("policy", "explain", "--policies", str(tmp_path), "--as", "user=a", "--op", "basic.get")
    assert_tame(told(*words, "--queue", CLEARS))
    assert_tame(told(*words, "--argument", CLEARS))
    assert_tame(told(*words, "--flag", CLEARS))
    assert_tame(told(CLEARS))
    assert_tame(told("schema", CLEARS + "\x07"))


def test_a_real_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text('"\\e[2Jx": 1\n')
    ours, theirs = pty.openpty()
    try:
        words = [sys.executable, "-m", "amqpgate", "check", "--config", str(tmp_path / "a.yaml")]
        subprocess.run(words, stdin=theirs, stdout=theirs, stderr=theirs, check=False)
        text = os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    # A terminal is sent a carriage return with the end of each line, by the system.
    assert_tame(text.replace("\r\n", "\n"))


def test_all_that_is_told_is_told_there() -> None:
    folder = Path(amqpgate.cli.__file__).parent
    telling = [path.name for path in folder.rglob("*.py") if re.search(r"click\.s?echo", path.read_text())]
    assert telling == ["telling.py"]
    assert click.echo is not echo
