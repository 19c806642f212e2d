"""``amqpgate top``, ``sessions``, ``decisions`` and ``close`` against a window that says this or that."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from amqpgate.cli import main
from tests.support.raw_answers import http as answer
from tests.support.raw_answers import saying

SESSION = {
    "id": "9f86d081884c7d65",
    "user": "al\x1b[2Jice",
    "vhost": "prod",
    "client": "10.0.0.7:5",
    "version": "AMQP 0-9-1",
    "upstream": "broker",
    "channels": 3,
    "published": 1200,
    "delivered": 900,
    "refused": 3,
    "flow": "slow_broker",
    "published_rate": None,
    "delivered_rate": 12.5,
}
DECISION = {
    "worker": 0,
    "number": 1,
    "at": 1.0,
    "kind": "denied",
    "operation": "basic.publish",
    "user": None,
    "vhost": "prod",
    "exchange": "x",
    "destination": None,
    "queue": None,
    "routing_key": "k\n",
    "policy": "orders",
    "rule": "r1",
    "effect": "deny",
}
OVERVIEW = {
    "at": 1.0,
    "version": "0.1.0",
    "ready": True,
    "sessions": 1,
    "channels": 3,
    "published": {"messages": 1, "bytes": 1},
    "delivered": {"messages": 1, "bytes": 1},
    "refused": 0,
    "buffered": {"client": 1, "upstream": 2},
}


class Window(http.server.ThreadingHTTPServer):
    """Counts up what it says at ``/overview``; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, str]] = []

    @property
    def admin(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Window

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("authorization", "")))
        path = self.path.partition("?")[0]
        if path == "/events":
            again = {**DECISION, "number": 2, "routing_key": "next"}
            events = [("decision", DECISION), ("dropped", {"count": 7}), ("decision", again)]
            text = ": here\n\n" + "".join(
                f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events
            )
            self.say(200, text)
        elif path == "/overview":
            count = sum(asked[1] == "/overview" for asked in self.server.asked)
            published = {"messages": 500 * count, "bytes": 0}
            self.say(200, json.dumps({**OVERVIEW, "at": float(count), "published": published}))
        elif path == "/sessions":
            self.say(200, json.dumps({"total": 5, "matched": 2, "sessions": [SESSION]}))
        else:
            self.say(200, json.dumps({"decisions": [DECISION]}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.asked.append((self.command, self.path, body))
        known = self.path == f"/sessions/{SESSION['id']}/close"
        self.say(202 if known else 404, '{"closing": "it"}' if known else "there is no session of that id\n")

    def say(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def window() -> Iterator[Window]:
    with Window() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_sessions(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    chosen = ["--user", "al*", "--upstream", "blue", "--version", "0-8"]
    with window() as it:
        words = ["sessions", "--admin", it.admin, *chosen, "--token-file", str(tmp_path / "token")]
        result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    title, line = result.stdout.splitlines()
    assert title.split()[:3] == ["id", "user", "vhost"]
    # No terminal takes a name for a command.
    assert line.split()[:2] == ["9f86d081884c7d65", "al\\x1b[2Jice"]
    assert line.endswith("slow broker")
    assert result.stderr == "1 of 2\n"
    asked = "/sessions?user=al%2A&upstream=blue&version=0-8&sort=-published&limit=100"
    assert it.asked == [("GET", asked, "Bearer s3cret")]


def test_close() -> None:
    with window() as it:
        id = "9f86d081884c7d65"
        words = [id, "--reason", "make room"], ["a/b"], [id, "gone", id, "--now"]
        done, unknown, several = (
            CliRunner().invoke(main, ["close", *some, "--admin", it.admin]) for some in words
        )
        assert (done.exit_code, done.stdout) == (0, "closing\n")
        assert (unknown.exit_code, unknown.stderr) == (1, "there is no session of that id\n")
        assert (several.exit_code, several.stdout) == (1, "2 closing\n"), "the others are closed all the same"
        assert several.stderr == "there is no session of that id\n"
    assert it.asked[:2] == [
        ("POST", f"/sessions/{id}/close", '{"reason": "make room"}'),
        ("POST", "/sessions/a%2Fb/close", "{}"),
    ]
    assert [body for _, _, body in it.asked[2:]] == ['{"now": true}'] * 3


def test_decisions_are_followed_and_none_is_told_twice() -> None:
    with window() as it:
        result = CliRunner().invoke(main, ["decisions", "--admin", it.admin, "--follow"])
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert "DENIED" in first
    assert "exchange 'x', routing key 'k\\n' by user '-' in vhost 'prod': orders/r1" in first
    assert "routing key 'next'" in second
    assert result.stderr == "7 are left out: there were too many at once\n"


def test_top_is_printed_once_where_there_is_no_terminal() -> None:
    with window() as it:
        result = CliRunner().invoke(main, ["top", "--admin", it.admin, "--every", "0.5"])
    assert result.exit_code == 0
    assert "1 sessions, 3 channels   published 500/s" in result.stdout
    row = result.stdout.splitlines()[-1].split()
    assert row[:3] == ["9f86d081884c7d65", "al\\x1b[2Jice", "prod"]
    assert row[-5:] == ["-", "12.5", "3", "slow", "broker"]


def test_who_is_no_gateway_is_told_so() -> None:
    for said in (answer(b"<html>"), answer(b"[" * 200_000), answer(b"[1]")):
        with saying(said) as address:
            done = CliRunner().invoke(main, ["sessions", "--admin", address])
        assert done.exit_code == 1, done.output
        assert (
            "answers with no object of JSON: is that the address of a gateway's admin interface?"
            in done.output
        )
