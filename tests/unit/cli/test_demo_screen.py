"""The demonstration's screen: plain lines for a pipe, a panel that stays for a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from amqpgate.cli.demo_client import Sight
from amqpgate.cli.demo_screen import Screen

FACTS = [("your client", "amqp://guest:guest@127.0.0.1:5673"), ("", "and more"), ("stop", "Ctrl-C")]

ALLOWED = Sight("basic.publish", "demo.orders", "order.eu.created", True, "basic.ack")
DENIED = Sight("basic.publish", "", "payroll", False, "403 ACCESS_REFUSED - " + "x" * 150)
CONSUMED = Sight("basic.deliver", "demo.orders", "order.eu.created", None, "message 1")


def shown(*sights: Sight, width: int = 80, terminal: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        height=24,
        force_terminal=terminal,
        color_system=None,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={"TERM": "xterm"},
    )
    with Screen(console, FACTS) as screen:
        for sight in sights:
            screen.tell(sight)
    return stream.getvalue()


def words(line: str) -> str:
    return " ".join(line.split())


def test_a_pipe_gets_facts_headings_and_one_line_per_sight() -> None:
    lines = shown(ALLOWED, CONSUMED, DENIED).splitlines()
    assert lines[:3] == [
        "your client  amqp://guest:guest@127.0.0.1:5673",
        "             and more",
        "stop         Ctrl-C",
    ]
    assert words(lines[3]) == "time operation exchange routing key verdict the client got"
    assert len(lines) == 7
    assert words(lines[4][8:]) == "basic.publish demo.orders order.eu.created allowed basic.ack"
    assert words(lines[5][8:]) == "basic.deliver demo.orders order.eu.created message 1"
    assert words(lines[6][8:]).startswith("basic.publish (default) payroll DENIED 403 ACCESS_REFUSED - ")
    assert lines[6].endswith("x" * 150)


def test_nothing_but_text_goes_into_a_pipe() -> None:
    assert "\x1b" not in shown(ALLOWED, DENIED)


def test_columns_stand_below_their_headings() -> None:
    lines = shown(ALLOWED, DENIED).splitlines()
    for heading, cell in (("exchange", "demo.orders"), ("routing key", "order.eu"), ("verdict", "allowed")):
        assert lines[3].index(heading) == lines[4].index(cell)


def test_on_a_terminal_the_panel_counts_and_goes_away_at_the_end() -> None:
    text = shown(ALLOWED, CONSUMED, DENIED, DENIED, terminal=True)
    assert "1 allowed, 2 denied, 1 consumed" in text
    assert text.rstrip("\n").endswith("\x1b[2K")  # the last thing: its lines are erased


def test_an_answer_that_does_not_fit_has_lines_of_its_own() -> None:
    text = shown(DENIED, terminal=True, width=80)
    start = text.index("payroll")
    first, second, third = text[start:].splitlines()[:3]
    assert words(first) == "payroll DENIED"
    assert second.rstrip() == " " * 10 + "403 ACCESS_REFUSED -"
    assert third == " " * 10 + "x" * 70


def test_what_a_peer_says_does_not_drive_the_terminal() -> None:
    evil = Sight("basic.deliver", "demo.orders", "order", None, "a\x1b[2Jb\nc [bold]d")
    assert "a\\x1b[2Jb\\nc [bold]d" in shown(evil)


@pytest.mark.parametrize("terminal", [False, True])
def test_the_summary_counts(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal)
    with Screen(console, FACTS) as screen:
        for sight in (ALLOWED, ALLOWED, DENIED, CONSUMED, Sight("connection.close", answer="320")):
            screen.tell(sight)
    assert screen.summary == "2 allowed, 1 denied, 1 consumed"
