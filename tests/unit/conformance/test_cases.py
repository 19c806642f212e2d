"""Cases are told apart, say where their rule is, and have a verdict for each outcome."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpgate.cli.conformance import VERSIONS as IN_HELP
from amqpgate.conformance.case import CaseSection, ConformanceCase
from amqpgate.conformance.cases import SECTIONS
from amqpgate.conformance.run import selected
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import VERSIONS

CASES = [case for section in SECTIONS for case in section.cases]


async def nothing(_: Talk) -> str:
    return "nothing"


def section_of(**changes: object) -> CaseSection:
    section = CaseSection("queues", "S")
    said = {"section": "1.2", "obeys": ("channel.close 404", "hangs up"), "rabbitmq": "channel.close 4??"}
    section.rule("queue.declare.passive", "title", **(said | changes))(nothing)  # type: ignore[arg-type]
    return section


def case(**changes: object) -> ConformanceCase:
    return section_of(**changes).cases[0]


def test_ids_are_told_apart() -> None:
    assert [path for path, count in Counter(one.id for one in CASES).items() if count > 1] == []


def test_each_version_has_its_rules() -> None:
    counted = Counter(version for one in CASES for version in one.versions)
    assert counted["0-9-1"] >= 180
    assert min(counted["0-9"], counted["0-8"]) >= 110


def test_help_has_the_versions() -> None:
    assert tuple(VERSIONS) == IN_HELP


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ("channel.close 404", "obeys"),
        ("hangs up", "obeys"),
        ("channel.close 406", "as RabbitMQ"),
        ("connection.close 404", "deviates"),
        ("silence", "deviates"),
        ("channel.close 4040", "deviates"),
    ],
)
def test_verdicts(outcome: str, verdict: str) -> None:
    assert case().verdict(outcome) == verdict


@pytest.mark.parametrize(
    ("wanted", "is_chosen"),
    [
        ([], True),
        (["queue"], True),
        (["queue.declare"], True),
        (["queue.declare."], True),
        (["queue.declare.passive"], True),
        (["queue.dec"], False),
        (["basic", "queue"], True),
        (["basic"], False),
        (["queues"], True),
    ],
)
def test_rules_are_chosen_by_their_paths(wanted: list[str], is_chosen: bool) -> None:
    assert bool(selected([section_of()], ["0-9-1"], wanted)) is is_chosen


def test_each_is_played_in_its_versions() -> None:
    section = section_of(versions=("0-9-1", "0-8"))
    assert selected([section], ["0-8", "0-9"], ()) == [(section.cases[0], "0-8")]
