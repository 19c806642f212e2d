"""Reports: what counts against a peer, and texts of peers that may be anything."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import attrs
import pytest

from amqpgate.conformance.case import VERDICTS, CaseResult, CaseSection, Verdict
from amqpgate.conformance.report import machine, page, text
from amqpgate.conformance.report.summary import ConformanceRun, wanted
from amqpgate.conformance.talk import Talk

SECTION = CaseSection("queue", "Queues", Talk)
NASTY = "<script>\x00\u202e]]>"


async def nothing(_: Talk) -> str:
    return "nothing"


for _strength in ("must", "should"):
    SECTION.rule(f"queue.{_strength}", "a title", section="1.7", obeys="this", strength=_strength)(nothing)


def result(verdict: Verdict, *, strength: str = "must", said: str = "that") -> CaseResult:
    case = SECTION.cases[0] if strength == "must" else SECTION.cases[1]
    return CaseResult(case=case, version="0-9-1", verdict=verdict, said=said, seconds=0.25)


def run(*results: CaseResult) -> ConformanceRun:
    return ConformanceRun("127.0.0.1:5672", "Broker 1", results, 1.5)


@pytest.mark.parametrize(
    ("verdict", "strength", "plain", "strict"),
    [
        ("obeys", "must", 0, 0),
        ("deviates", "must", 1, 1),
        ("deviates", "should", 0, 1),
        ("as RabbitMQ", "must", 0, 1),
        ("as Qpid", "must", 0, 1),
        ("untestable", "must", 0, 0),
    ],
)
def test_what_counts(verdict: Verdict, strength: str, plain: int, strict: int) -> None:
    one = run(result(verdict, strength=strength))
    assert (len(one.failed(strict=False)), len(one.failed(strict=True))) == (plain, strict)


def test_lines_tell_what_is_not_obeyed() -> None:
    lines = list(text.lines(run(result("obeys"), result("deviates", said=NASTY)), strict=False))
    assert "queue.must (1.7, must)" in lines[0]
    assert "the rule allows: this" in lines[2]
    assert not any("\x00" in line or "\u202e" in line for line in lines)
    assert lines[-3:] == [
        "127.0.0.1:5672 Broker 1: 2 cases in 1.5 s",
        "  0-9-1  1 obeys, 1 deviates",
        "1 count against it",
    ]


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        (("channel.close 404",), "channel.close 404"),
        (("connection.close 504", "connection.close 501"), "connection.close 501 or 504"),
        (
            ("connection.close 50?", "connection.close 541", "hangs up"),
            "connection.close 50x or 541, or hangs up",
        ),
        (("exception *",), "exception of any kind"),
        (("1 message", "313"), "1 message, or 313"),
    ],
)
def test_what_is_allowed_is_told_in_words(patterns: tuple[str, ...], words: str) -> None:
    one = result("deviates")
    assert wanted(attrs.evolve(one, case=attrs.evolve(one.case, obeys=patterns))) == words


def test_json() -> None:
    said = json.loads(machine.as_json(run(result("untestable"))))
    assert said["counts"] == {"0-9-1": dict.fromkeys(VERDICTS, 0) | {"untestable": 1}}
    assert said["results"][0] == {
        "id": "queue.must",
        "version": "0-9-1",
        "title": "a title",
        "section": "1.7",
        "strength": "must",
        "verdict": "untestable",
        "seen": "that",
        "allowed": ["this"],
        "seconds": 0.25,
    }


def test_junit() -> None:
    results = (result("obeys"), result("deviates", said=NASTY), result("untestable"), result("as RabbitMQ"))
    root = ElementTree.fromstring(machine.as_junit(run(*results), strict=False))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    assert [[part.tag for part in case] for case in suite] == [[], ["failure"], ["skipped"], ["system-out"]]


def test_the_page_escapes_what_peers_say() -> None:
    said = page.page(run(result("deviates", said=NASTY)), [SECTION], strict=False)
    assert "<script>" not in said
    assert "&lt;script&gt;" in said
    assert "\x00" not in said
    assert "http://" not in said
    assert "https://" not in said


@pytest.mark.parametrize(("strict", "said"), [(False, "Nothing counts"), (True, "1 count")])
def test_the_page_says_what_it_comes_to(*, strict: bool, said: str) -> None:
    shown = page.page(run(result("obeys"), result("as RabbitMQ")), [SECTION], strict=strict)
    assert f"<p>{said} against it" in shown
    # Of verdicts that nobody has there is no column.
    assert ">as RabbitMQ<" in shown
    assert "as Qpid" not in shown
