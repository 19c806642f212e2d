"""``amqpgate reload`` against a window that says this or that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.gateway.server.policy_state import PolicyState
from tests.support.answering import QuietHandler, answering

DIGEST = "0123456789abcdef" * 4
TOKEN = "Bearer s3cret"


@contextmanager
def window(status: int, text: str, kind: str = "application/json") -> Iterator[str]:
    """The address of an HTTP server that gives one answer to POST /reload, and 401 without the token."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            known = self.headers.get("Authorization") == TOKEN
            body = text.encode() if known else b"a bearer token is needed\n"
            self.send_response((status if self.path == "/reload" else 404) if known else 401)
            self.send_header("content-type", kind if known else "text/plain")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with answering(Handler) as address:
        yield address


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    return str(file)


@pytest.mark.parametrize(
    ("status", "state", "code", "told"),
    [
        (200, PolicyState("done", DIGEST, 1.0), 0, "policies reloaded, digest sha256:0123456789abcdef"),
        (422, PolicyState("refused", DIGEST, 1.0, "wrong", "p.yaml", 3, 4), 2, "p.yaml:3:4: wrong"),
        (422, PolicyState("refused", DIGEST, 1.0, "too large", "p.yaml"), 2, "p.yaml: too large"),
        (409, PolicyState("nothing", "", 1.0, "no folder"), 2, "amqpgate: no folder"),
        (503, PolicyState("unknown", DIGEST, 1.0, "ask again"), 1, "amqpgate: ask again"),
    ],
)
def test_how_it_went(token: str, status: int, state: PolicyState, code: int, told: str) -> None:
    with window(status, state.as_json()) as admin:
        result = CliRunner().invoke(main, ["reload", "--admin", admin, "--token-file", token])
    assert (result.exit_code, result.output) == (code, told + "\n")


def test_without_the_token(token: str) -> None:
    with window(200, PolicyState("done", DIGEST, 1.0).as_json()) as admin:
        result = CliRunner().invoke(main, ["reload", "--admin", admin])
    assert result.exit_code == 1
    assert result.stderr == f"amqpgate: http://{admin}/reload says 401: a bearer token is needed\n"


def test_somebody_else_answers(token: str) -> None:
    with window(200, "hello", "text/html") as admin:
        result = CliRunner().invoke(main, ["reload", "--admin", admin, "--token-file", token])
    assert result.exit_code == 1
    assert "says 200: hello" in result.stderr


@pytest.mark.parametrize("args", [["--admin", "nowhere"], ["--token-file", "/does/not/exist"]])
def test_wrong_options_are_2(args: list[str]) -> None:
    result = CliRunner().invoke(main, ["reload", *args])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"amqpgate: {args[0]}: ")
