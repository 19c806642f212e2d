"""``amqpgate move`` where it does not get far; moves are in ``tests/interop``."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.cli.failures import Failure
from amqpgate.cli.move_run import MoveScreen
from amqpgate.cli.move_world import edit_routes
from tests.support.answering import QuietHandler, answering
from tests.unit.move.test_document import TEXT, parsed

ROUTING = Path(__file__).parents[3] / "docs/routing.md"

ROUTES = """\
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: moving}
spec:
  routes:
  - {id: prod, upstream: {cluster: blue}}  # here
"""


def test_a_file_that_is_wrong_is_2(tmp_path: Path) -> None:
    file = tmp_path / "move.yaml"
    for text, said in (
        ("", "one document is wanted"),
        ("routes: [a]\n", "move.yaml:1:1"),
        (f"{TEXT}x: 1\n", "'x'"),
    ):
        file.write_text(text)
        for verb in ("plan", "run", "status", "rollback"):
            result = CliRunner().invoke(main, ["move", verb, str(file)])
            assert (result.exit_code, said in result.output) == (2, True), result.output


def test_the_example_of_the_documents_is_read(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(# move\.yaml\n.*?)```", ROUTING.read_text(), re.DOTALL)
    (tmp_path / "policies").mkdir()
    for name in ("secret", "token"):
        (tmp_path / name).write_text("x")
    move = parsed(example, tmp_path)
    assert (move.source.upstream, move.target.upstream, move.edits) == ("blue", "green", True)


def test_a_password_that_is_not_there_is_2(tmp_path: Path) -> None:
    file = tmp_path / "move.yaml"
    file.write_text(TEXT)
    result = CliRunner().invoke(main, ["move", "plan", str(file)], env={"P": None})
    assert (result.exit_code, "environment variable P" in result.output) == (2, True)


def test_who_does_not_answer_is_1(tmp_path: Path) -> None:
    file = tmp_path / "move.yaml"
    file.write_text(
        TEXT.replace("http://green", "http://127.0.0.1:1").replace("http://blue", "http://127.0.0.1:1")
    )
    for verb in ("plan", "run"):
        result = CliRunner().invoke(main, ["move", verb, str(file)], env={"P": "x"})
        assert (result.exit_code, "no answer from green" in result.output) == (1, True), result.output


def test_a_route_that_a_gateway_has_not_is_not_turned_back(tmp_path: Path) -> None:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            body = json.dumps({"routes": [{"id": "other", "upstreams": ["blue"], "paused": False}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    file = tmp_path / "move.yaml"
    with answering(Handler) as address:
        file.write_text(TEXT.replace("a:1", address))
        result = CliRunner().invoke(main, ["move", "rollback", str(file)], env={"P": "x"})
    assert (result.exit_code, result.output) == (1, f"amqpgate: {address} has no route 'prod'\n")


def test_a_route_is_edited_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "routes.yaml"
    file.write_text(ROUTES)
    file.chmod(0o640)
    edit_routes(tmp_path, frozenset({"prod"}), "blue", "green")
    assert file.read_text() == ROUTES.replace("blue", "green")
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["routes.yaml"]
    edit_routes(tmp_path, frozenset({"prod"}), "blue", "green")
    assert file.read_text() == ROUTES.replace("blue", "green")


def test_a_link_that_others_swap_is_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "routes.yaml").write_text(ROUTES)
    (tmp_path / "routes.yaml").symlink_to("..data/routes.yaml")
    with pytest.raises(Failure, match="switch: wait"):
        edit_routes(tmp_path, frozenset({"prod"}), "blue", "green")
    assert (tmp_path / "routes.yaml").read_text() == ROUTES


def test_an_operator_is_told_what_is_new_and_once_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("amqpgate.cli.move_run.time.monotonic", lambda: now)
    shown = MoveScreen()
    for at, step, text in (
        (0, "a", "a 5"),
        (1, "a", "a 4"),
        (2, "a", "a 3"),
        (2, "b", "b"),
        (11, "b", "b"),
        (12, "b", "b"),
        (99, "b", "b"),
    ):
        now = at
        shown.tell(step, text, f"help with {step}")
    assert capsys.readouterr().out.splitlines() == ["a 5", "a 3", "b", "    waits: help with b"]
