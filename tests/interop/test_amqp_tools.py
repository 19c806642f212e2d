"""librabbitmq's command line tools (Debian's amqp-tools)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.interop.steps import BIG_BODY, Setting
from tests.support.missing import missing

#: Exit code, standard output, standard error of a tool.
Run = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def tool(setting: Callable[[str], Setting]) -> Run:
    """Run one of the tools on the route of this test."""
    if shutil.which("amqp-publish") is None:
        missing("librabbitmq's tools are not installed (Debian: apt-get install amqp-tools)")
    at = setting("amqp_tools")

    def run(name: str, *options: str, text: bytes = b"", **changes: str) -> tuple[int, bytes, str]:
        where = {
            "server": at.host,
            "port": str(at.port),
            "vhost": at.vhost,
            "username": at.user,
            "password": at.password,
        } | changes
        address = [f"--{key}={value}" for key, value in where.items()]
        done = subprocess.run(
            [f"amqp-{name}", *address, *options], input=text, capture_output=True, timeout=30
        )
        return done.returncode, done.stdout, done.stderr.decode().strip()

    return run


def test_publish_get_and_delete(tool: Run) -> None:
    assert tool("declare-queue", "-q", "tools", "-d") == (0, b"tools\n", "")
    options = ("-p", "-C", "text/plain", "-E", "utf-8", "-t", "answers", "-H", "colour: red")
    assert tool("publish", "-r", "tools", *options, "-b", "hello") == (0, b"", "")
    assert tool("get", "-q", "tools") == (0, b"hello", "")
    assert tool("get", "-q", "tools") == (2, b"", "")
    assert tool("delete-queue", "-q", "tools", "-e") == (0, b"0\n", "")


def test_lines_are_consumed_in_order(tool: Run) -> None:
    tool("declare-queue", "-q", "lines")
    lines = b"".join(b"line %d\n" % number for number in range(200))
    assert tool("publish", "-r", "lines", "-l", text=lines) == (0, b"", "")
    assert tool("consume", "-q", "lines", "-c", "200", "-p", "10", "cat") == (0, lines, "")
    assert tool("delete-queue", "-q", "lines") == (0, b"0\n", "")


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["3 MiB", "empty"])
def test_bodies(tool: Run, body: bytes) -> None:
    tool("declare-queue", "-q", "bodies")
    assert tool("publish", "-r", "bodies", text=body) == (0, b"", "")
    assert tool("get", "-q", "bodies") == (0, body, "")


def test_channel_errors(tool: Run) -> None:
    code, _, error = tool("get", "-q", "nothing")
    assert (code, error) == (
        1,
        "basic.get: server channel error 404, message: NOT_FOUND - no queue 'nothing' in vhost 'amqp_tools'",
    )
    code, _, error = tool("publish", "-e", "nothing", "-r", "x", "-b", "x")
    assert (code, error) == (
        1,
        "closing channel: server channel error 404, message: NOT_FOUND - no exchange 'nothing' in vhost"
        " 'amqp_tools'",
    )


def test_refusals(tool: Run) -> None:
    code, _, error = tool("get", "-q", "x", password="wrong")
    assert (code, error) == (
        1,
        "logging in to AMQP server: server connection error 403, message: ACCESS_REFUSED - Login was refused"
        " using authentication mechanism PLAIN. For details see the broker logfile.",
    )
    code, _, error = tool("get", "-q", "x", vhost="nowhere")
    assert (code, error) == (
        1,
        "logging in to AMQP server: server connection error 530, message: NOT_ALLOWED - vhost nowhere not"
        " found",
    )
