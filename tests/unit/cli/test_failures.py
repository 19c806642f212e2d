"""From exceptions to one line and an exit code."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest
import trio

from amqpgate.cli.failures import FAILED, WRONG, Failure, cause_of, ensure_free, joined, reported, shown
from amqpgate.config import load
from amqpgate.errors import ConfigError
from tests.support.ports import free_port


def failure_of(error: BaseException) -> Failure:
    with pytest.raises(Failure) as caught, reported():
        raise error
    return caught.value


def test_a_setting_cites_its_place_first_and_is_2() -> None:
    failure = failure_of(ConfigError("unknown key", file="a.yaml", line=3, column=5))
    assert (failure.message, failure.exit_code) == ("a.yaml:3:5: unknown key", WRONG)


def test_a_setting_without_a_place_names_the_program() -> None:
    assert failure_of(ConfigError("no good")).message == "amqpgate: no good"


def test_an_error_of_the_system_is_1() -> None:
    failure = failure_of(OSError(errno.ENOSPC, "No space left on device"))
    assert failure.exit_code == FAILED
    assert "No space left on device" in failure.message


def test_groups_of_nurseries_are_opened() -> None:
    error = ExceptionGroup("outer", [ExceptionGroup("inner", [ConfigError("no good")])])
    assert failure_of(error).message == "amqpgate: no good"
    told = Failure("told already")
    assert failure_of(ExceptionGroup("outer", [told])) is told


def test_a_defect_keeps_its_traceback_also_beside_other_errors() -> None:
    with pytest.raises(ZeroDivisionError), reported():
        raise ZeroDivisionError
    with pytest.raises(ExceptionGroup), reported():
        raise ExceptionGroup("both", [OSError("x"), ZeroDivisionError()])


def test_a_taken_port_names_option_address_and_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failure) as caught:
            ensure_free([("--listen", "127.0.0.1", port)])
    assert caught.value.exit_code == FAILED
    for part in ("--listen", f"127.0.0.1:{port}", "Address already in use", f"sport = :{port}"):
        assert part in caught.value.message


def test_a_free_port_stays_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ensure_free([("--listen", "127.0.0.1", port), ("--listen", "127.0.0.1", 0)])
    ensure_free([("--listen", "127.0.0.1", port)])


def test_nobody_gets_in_while_ports_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who did would be reset."""
    port = free_port()
    answers = []

    class Probe(socket.socket):
        """Somebody knocks before it closes."""

        def __exit__(self, *args: object) -> None:
            with plain() as client:
                answers.append(client.connect_ex(("127.0.0.1", port)))
            super().__exit__(*args)

    plain = socket.socket
    monkeypatch.setattr(socket, "socket", Probe)
    ensure_free([("--listen", "127.0.0.1", port)])
    assert answers == [errno.ECONNREFUSED]


def test_an_address_of_another_machine_is_told_as_such() -> None:
    with pytest.raises(Failure) as caught:
        ensure_free([("--listen", "192.0.2.1", 5672)])
    assert "this machine does not have that address" in caught.value.message


def test_a_host_that_does_not_exist_is_2() -> None:
    with pytest.raises(Failure) as caught:
        ensure_free([("--listen", "no-such-host.invalid", 5672)])
    assert caught.value.exit_code == WRONG
    assert "no-such-host.invalid" in caught.value.message


def test_addresses_of_version_6_are_in_brackets() -> None:
    assert (joined("::1", 5672), joined("127.0.0.1", 5672)) == ("[::1]:5672", "127.0.0.1:5672")


async def test_the_cause_is_in_the_words_of_the_system() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="attempts") as refused:
            await trio.open_tcp_stream(*reserved.getsockname())
    assert cause_of(refused.value) == "Connection refused"
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert cause_of(unknown) == "Name or service not known"


# -- what is shown of files --------------------------------------------------------------------------------


def told(tmp_path: Path, text: str) -> str:
    """What is said of settings."""
    file = tmp_path / "amqpgate.yaml"
    file.write_text(text)
    with pytest.raises(Failure) as raised, reported():
        load(file, {})
    return raised.value.message.replace(f"{tmp_path}/", "")


def test_all_errors_of_a_file_are_told_with_their_lines(tmp_path: Path) -> None:
    text = (
        "listeners:\n- name: a\n  bnid: '127.0.0.1:0'\nupstreams:\n- name: u\n  host: broker\n"
        "  heartbeat: soon\nlimits: {maxConnections: -1}\n"
    )
    first, second, third = told(tmp_path, text).split("\namqpgate.yaml:")
    assert first.startswith("amqpgate.yaml:3:3: unknown key 'bnid' (did you mean 'bind'?)")
    assert first.endswith("\n    3 |   bnid: '127.0.0.1:0'\n      |   ^")
    assert second.startswith("7:14: expected a time")
    assert second.endswith("\n    7 |   heartbeat: soon\n      |              ^")
    assert third.startswith("8:26: must be 1 or more")


def test_a_tab(tmp_path: Path) -> None:
    assert told(tmp_path, "listeners:\n- name: a\n\tbind: x\n") == (
        "amqpgate.yaml:3:1: not valid YAML: found a tab character that violates indentation; "
        "indent by spaces\n    3 | ␉bind: x\n      | ^"
    )


@pytest.mark.parametrize(
    "text",
    [
        "  password: [hunter2]",
        "  password:\n  - hunter2",
        "  password:\n    - hunter2",
        "  password:\n    a: {b: hunter2}",
        "  {user: a, password: hunter2, heartbeat: soon}",
        "  url: amqp://u:hunter2@h:99999999",
        "  url:\n    amqp://u:hunter2@h:99999999",
        "  password: 'x\n    hunter2'\n\theartbeat: 1",
        "  password: |\n    hunter2\n  heartbeat: soon",
    ],
)
def test_no_line_is_shown_that_may_have_a_secret_in_it(tmp_path: Path, text: str) -> None:
    said = told(tmp_path, f"listeners: [{{name: a, bind: '127.0.0.1:0'}}]\nupstreams:\n-\n{text}\n")
    assert said.startswith("amqpgate.yaml:")
    assert "hunter2" not in said


def test_what_cannot_be_shown_is_told_all_the_same(tmp_path: Path) -> None:
    def said(name: str, line: int) -> str:
        return shown(ConfigError("wrong", file=str(tmp_path / name), line=line, column=1))

    assert said("gone", 1).endswith(": wrong")
    (tmp_path / "odd").write_bytes(b"\xff\n" + b"a\x1b[2J: 1\n" + b"x" * 1000)
    assert said("odd", 1).endswith(": wrong\n    1 | \ufffd\n      | ^")
    assert said("odd", 2).endswith(": wrong\n    2 | a\ufffd[2J: 1\n      | ^")
    assert said("odd", 3).endswith(": wrong\n    3 | " + "x" * 100 + "\n      | ^")
    assert said("odd", 4).endswith(": wrong")


def test_of_a_long_line_the_place_is_shown(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("a: [" + "x, " * 1000 + "!]")
    for column in (1, 500, 3005):
        text = shown(ConfigError("wrong", file=str(tmp_path / "long"), line=1, column=column))
        _, line, caret = text.split("\n")
        assert len(line) <= 108
        assert line[caret.index("^")] == (tmp_path / "long").read_text()[column - 1]
