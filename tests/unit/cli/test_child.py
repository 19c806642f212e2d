"""Work that a child does."""

from __future__ import annotations

import os

import pytest

from amqpgate.cli.child import in_child
from amqpgate.errors import ConfigError


def test_what_it_gives_comes_back() -> None:
    assert in_child(lambda: f"é\n{os.getppid()}") == f"é\n{os.getpid()}"
    assert len(in_child(lambda: "x" * 300_000)) == 300_000


def test_what_a_person_can_mend_is_told_as_ever(capfd: pytest.CaptureFixture[str]) -> None:
    def wrong() -> str:
        raise ConfigError("that is wrong", file="p.yaml", line=2, column=3)

    with pytest.raises(SystemExit) as ended:
        in_child(wrong)
    assert ended.value.code == 2
    assert capfd.readouterr().err == "p.yaml:2:3: that is wrong\n"


def test_a_defect_shows_where_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        in_child(lambda: str(1 // 0))
    assert ended.value.code == 1
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_one_that_is_killed_ends_it() -> None:
    with pytest.raises(SystemExit) as ended:
        in_child(lambda: str(os.kill(os.getpid(), 9)))
    assert ended.value.code == 9
