"""``amqpgate health`` against a window that says this or that."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.cli.asking import DEFAULT
from amqpgate.config import Admin
from tests.support.answering import QuietHandler, answering


@contextmanager
def window(status: int, text: str) -> Iterator[str]:
    """The address of an HTTP server that gives one answer to GET /readyz, and 404 to all else."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            body = text.encode()
            self.send_response(status if self.path == "/readyz" else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with answering(Handler) as address:
        yield address


def test_ready_is_0() -> None:
    with window(200, "ready\n") as admin:
        result = CliRunner().invoke(main, ["health", "--admin", admin])
    assert (result.exit_code, result.stdout) == (0, "ready\n")


def test_not_ready_is_1_with_the_reason() -> None:
    with window(503, "not ready: draining\n") as admin:
        result = CliRunner().invoke(main, ["health", "--admin", admin])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "not ready: draining\n"


def test_nobody_there_is_1_and_says_where() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        admin = f"127.0.0.1:{reserved.getsockname()[1]}"
        result = CliRunner().invoke(main, ["health", "--admin", admin])
    assert result.exit_code == 1
    assert f"http://{admin}/readyz: Connection refused" in result.stderr


def test_what_does_not_speak_http_is_1() -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"AMQP\x00\x00\x09\x01")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        result = CliRunner().invoke(main, ["health", "--admin", f"127.0.0.1:{listener.getsockname()[1]}"])
        thread.join()
    assert result.exit_code == 1
    assert "no answer from" in result.stderr


def test_silence_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        admin = f"127.0.0.1:{listener.getsockname()[1]}"
        result = CliRunner().invoke(main, ["health", "--admin", admin, "--timeout", "0.05"])
    assert result.exit_code == 1
    assert "its answer takes longer than 0.05 s" in result.stderr or "timed out" in result.stderr


@pytest.mark.parametrize("admin", ["nowhere", "127.0.0.1:99999", ":1"])
def test_an_address_that_is_none_is_2(admin: str) -> None:
    result = CliRunner().invoke(main, ["health", "--admin", admin])
    assert result.exit_code == 2
    assert "--admin" in result.stderr


def test_the_default_is_that_of_the_settings() -> None:
    assert str(Admin().bind) == DEFAULT
