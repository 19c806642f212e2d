"""``amqpgate tap`` against a window that says this or that."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.protocol.frames import method_frame
from amqpgate.protocol.header import HEADER_0_10
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.answering import QuietHandler, answering

OPERATION = {
    "event": "operation",
    "worker": 0,
    "time": 1795328235.5,
    "session": "s",
    "user": "guest",
    "vhost": "/",
    "client": "10.0.0.7",
    "channel": 1,
    "operation": "queue.declare",
    "queue": "q",
    "verdict": "allow",
    "rule": "default",
    "frames": base64.b64encode(method_frame(1, amqp.QueueDeclare(queue="q"))).decode(),
}
BEGUN = {"event": "begun", "worker": 0}
END = {"event": "end", "matched": 9, "shown": 1}


@contextmanager
def window(lines: Sequence[Mapping[str, object]], asked: list[str], status: int = 200) -> Iterator[str]:
    """The address of an HTTP server that gives these lines, or a refusal."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            assert self.headers["X-Amqpgate"] == "1"
            self.send_response(status)
            self.end_headers()
            text = "".join(json.dumps(line) + "\n" for line in lines) if status == 200 else "no: why\n"
            self.wfile.write(text.encode())

    with answering(Handler) as address:
        yield address


def tap(
    lines: Sequence[Mapping[str, object]], *options: str, status: int = 200
) -> tuple[int, list[str], dict[str, list[str]]]:
    """Exit code, lines, and what was asked."""
    asked: list[str] = []
    with window(lines, asked, status) as address:
        done = CliRunner().invoke(main, ["tap", "--admin", address, *options])
    return done.exit_code, done.output.splitlines(), parse_qs(urlsplit(asked[0]).query) if asked else {}


def test_a_line_for_people() -> None:
    more = {"body_size": 5, "headers": '{"a":1}', "body": base64.b64encode(b"\x1b[2J\xff").decode()}
    sent = {**OPERATION, "operation": "basic.publish", "exchange": "", "verdict": "deny", **more}
    code, lines, asked = tap([BEGUN, sent, END], "--match", "user=guest", "--every", "7")
    assert code == 0
    assert lines[0] == "tapping user=guest; Ctrl-C ends it"
    assert lines[1].split(" ", 1)[1] == (
        'deny  basic.publish  guest@/ 10.0.0.7 exchange="" queue=q 5 B by -/default headers {"a":1} '
        "body \\x1b[2J\\xff"
    )
    assert lines[2] == "1 shown of 9 that matched"
    assert asked == {"match": ["user=guest"], "every": ["7"]}


@pytest.mark.parametrize("name", ["a b", "\x1b]0;x\x07", "\udcff", "'", ""])
def test_names_do_nothing_to_a_terminal(name: str) -> None:
    code, lines, _ = tap([{**OPERATION, "user": name, "queue": name}, END])
    assert code == 0
    assert lines[0].isprintable()
    assert lines[0].endswith(f"queue={json.dumps(name)}")


def test_lines_of_json() -> None:
    code, lines, _ = tap([BEGUN, OPERATION, END], "--format", "json")
    assert code == 0
    assert json.loads(lines[1]) == {
        key: value for key, value in OPERATION.items() if key not in ("event", "frames")
    }


def test_a_capture_goes_to_a_file_that_is_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    code, lines, asked = tap([OPERATION, {**OPERATION, "frames": ""}, END], "--pcap", str(path))
    assert (code, len(lines), asked) == (0, 3, {"frames": ["1"]})
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().count(method_frame(1, amqp.QueueDeclare(queue="q"))) == 1
    code, lines, _ = tap([], "--pcap", str(tmp_path / "no" / "t.pcap"))
    assert code == 2
    assert lines == [f"amqpgate: --pcap: {tmp_path}/no/t.pcap: No such file or directory"]


@pytest.mark.parametrize(
    ("version", "header", "count"),
    [("0-10", HEADER_0_10, 2), ("0-9-1", amqp.PROTOCOL_HEADER, 1), ("0-8", amqp.PROTOCOL_HEADER, 1)],
)
def test_a_capture_begins_as_its_client_does(tmp_path: Path, version: str, header: bytes, count: int) -> None:
    """Both ends say the header of 0-10; clients of older versions are shown in frames of 0-9-1."""
    path = tmp_path / "t.pcap"
    tap([{**OPERATION, "amqp_version": version}, END], "--pcap", str(path))
    assert path.read_bytes().count(header) == count


def test_what_is_wrong_is_pointed_at() -> None:
    code, lines, asked = tap([], "--match", "user=a und vhost=b")
    assert (code, asked) == (2, {})
    assert lines == [
        "amqpgate: --match, column 8: expected 'and' or 'or' before 'und'",
        "  user=a und vhost=b",
        "         ^",
    ]


def test_an_end_that_nobody_asked_for() -> None:
    code, lines, _ = tap([BEGUN, OPERATION, {"event": "counts", "worker": 0, "matched": 4, "shown": 1}])
    assert code == 1
    assert lines[-1].endswith("/tap has ended early; 1 shown of 4 that matched")


@pytest.mark.parametrize(("status", "expected"), [(400, 2), (401, 1), (429, 1)])
def test_a_refusal(status: int, expected: int) -> None:
    code, lines, _ = tap([], status=status)
    assert code == expected
    assert lines[-1].endswith("/tap: no: why")
