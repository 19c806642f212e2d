"""What a first gateway's settings and policies are made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from tests.support.answering import QuietHandler, answering
from tests.support.embedded import embedded_broker

#: "guest:secret".
LOGIN = "Basic Z3Vlc3Q6c2VjcmV0"
DEFINITIONS = {
    "users": [{"name": "guest"}, {"name": "bob"}],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": "bob", "vhost": "/", "configure": "", "write": "^orders$", "read": ""}],
}


class Broker(QuietHandler):
    """A management interface with one user."""

    def do_GET(self) -> None:
        may = self.headers.get("Authorization") == LOGIN and self.path == "/api/definitions"
        text = json.dumps(DEFINITIONS if may else {"reason": "Not_Authorized"}).encode()
        self.send_response(200 if may else 401)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def init(folder: Path, *options: str, said: str = "", variable: str | None = None) -> Result:
    return CliRunner(env={"AMQPGATE_MANAGEMENT_PASSWORD": variable}).invoke(
        main, ["init", str(folder), *options], input=said
    )


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def check(folder: Path) -> Result:
    return CliRunner().invoke(main, ["check", "--config", str(folder / "amqpgate.yaml")])


def test_defaults_are_a_gateway_that_denies_something(tmp_path: Path) -> None:
    done = init(tmp_path / "gate", "--yes")
    assert done.exit_code == 0
    assert written(tmp_path / "gate") == {"amqpgate.yaml", "policies/first.yaml"}
    assert f"amqpgate run --config {tmp_path}/gate/amqpgate.yaml" in done.output
    assert check(tmp_path / "gate").exit_code == 0
    told = CliRunner().invoke(
        main,
        ["policy", "explain", "--policies", str(tmp_path / "gate/policies"), "--as", "user=a"]
        + ["--op", "basic.publish", "--exchange", "", "--routing-key", "secret"],
    )
    assert "no-secrets" in told.output


def test_it_asks_and_says_who_answers(tmp_path: Path) -> None:
    with embedded_broker() as (host, port), answering(Broker) as management:
        done = init(
            tmp_path / "gate", said=f"amqp://{host}:{port}\nhttp://{management}\nsecret\n", variable=None
        )
    assert done.exit_code == 0, done.output
    assert "broker: amqpgate embedded broker" in done.output
    assert written(tmp_path / "gate") == {"amqpgate.yaml", "policies/bob.yaml", "policies/guest.yaml"}
    assert "  mode: shadow\n" in (tmp_path / "gate/policies/bob.yaml").read_text()
    texts = done.output + "".join(
        path.read_text() for path in (tmp_path / "gate").rglob("*") if path.is_file()
    )
    assert "secret" not in texts
    assert check(tmp_path / "gate").exit_code == 0


def test_it_can_be_said_in_one_line(tmp_path: Path) -> None:
    with answering(Broker) as management:
        options = ("--yes", "--management", f"http://{management}", "--enforce", "--listen", "0.0.0.0:5672")
        done = init(tmp_path / "gate", *options, variable="secret")
    assert done.exit_code == 0, done.output
    assert "shadow" not in (tmp_path / "gate/policies/bob.yaml").read_text()
    assert "listening on amqp://0.0.0.0:5672" in check(tmp_path / "gate").output


def test_of_an_export(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps(DEFINITIONS))
    done = init(tmp_path / "gate", "--yes", "--definitions", str(tmp_path / "d.json"))
    assert done.exit_code == 0
    assert written(tmp_path / "gate") == {"amqpgate.yaml", "policies/bob.yaml", "policies/guest.yaml"}


def test_of_an_export_with_what_policies_cannot_say(tmp_path: Path) -> None:
    text = json.dumps(DEFINITIONS).replace("^orders$", "(?!amq)")
    (tmp_path / "d.json").write_text(text)
    done = init(tmp_path / "gate", "--yes", "--definitions", str(tmp_path / "d.json"))
    assert done.exit_code == 3
    assert "not imported: a permission of user 'bob' in vhost '/': write '(?!amq)': " in done.stderr
    assert written(tmp_path / "gate") == {"amqpgate.yaml", "policies/bob.yaml", "policies/guest.yaml"}
    assert check(tmp_path / "gate").exit_code == 0


def test_nothing_is_overwritten_and_nothing_is_left_in_part(tmp_path: Path) -> None:
    assert init(tmp_path, "--yes").exit_code == 0
    before = (tmp_path / "amqpgate.yaml").read_text()
    done = init(tmp_path, "--yes", "--listen", "127.0.0.1:1")
    assert (done.exit_code, done.output) == (
        2,
        f"amqpgate: {tmp_path}/amqpgate.yaml exists already; remove it, or name another folder\n",
    )
    assert (tmp_path / "amqpgate.yaml").read_text() == before


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--upstream", "amqp://me:hidden@rabbit"), 2, "--upstream: leave the login out"),
        (("--upstream", "http://rabbit"), 2, "amqpgate: --upstream: expected amqp://"),
        (("--listen", "5673"), 2, "amqpgate: --listen: expected host:port"),
        (("--listen", '127.0.0.1:5673"}\n- {'), 2, "amqpgate: --listen: the port is not"),
        (("--management", "rabbit:15672"), 2, "--management: "),
        (
            ("--management", "http://127.0.0.1:9"),
            2,
            "say the password of guest in AMQPGATE_MANAGEMENT_PASSWORD",
        ),
    ],
)
def test_wrong_answers(tmp_path: Path, options: tuple[str, ...], code: int, words: str) -> None:
    done = init(tmp_path / "gate", "--yes", *options)
    assert done.exit_code == code
    assert words in done.output
    assert "hidden" not in done.output
    assert not (tmp_path / "gate").exists()


@pytest.mark.parametrize("password", ["secret", "wrong"])
def test_a_management_interface_that_says_no(tmp_path: Path, password: str) -> None:
    with answering(Broker) as management:
        path = f"http://{management}" if password == "wrong" else "http://127.0.0.1:9"
        done = init(tmp_path / "gate", "--yes", "--management", path, variable=password)
    assert done.exit_code == 1
    assert ("the broker says 401" if password == "wrong" else "no answer from the broker") in done.output
    assert password not in done.output
    assert not (tmp_path / "gate").exists()


def test_where_nobody_answers_it_says_how_not_to_ask(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path / "gate")], input="")
    assert done.exit_code == 2
    assert "say --yes to take the defaults" in done.output
    assert not (tmp_path / "gate").exists()


def test_it_says_how_to_see_a_first_denial(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path / "gate"), "--yes", "--admin", "127.0.0.1:1234"])
    assert done.exit_code == 0, done.output
    assert 'the routing key "secret"' in done.output
    assert "http://127.0.0.1:1234/#denials" in done.output
