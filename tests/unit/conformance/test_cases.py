"""Cases are told apart, say where their rule is, and have a verdict for each outcome."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpgate.cli.conformance import VERSIONS as IN_HELP
from amqpgate.conformance.case import CaseSection, ConformanceCase
from amqpgate.conformance.cases import SECTIONS
from amqpgate.conformance.run import selected
from amqpgate.conformance.talk import Talk
from amqpgate.conformance.versions import HEADERS

CASES = [case for section in SECTIONS for case in section.cases]


async def nothing(_: Talk) -> str:
    return "nothing"


def section_of(**changes: object) -> CaseSection:
    section = CaseSection("queues", "S", Talk)
    said = {
        "section": "1.2",
        "obeys": ("channel.close 404", "hangs up"),
        "rabbitmq": "channel.close 4??",
        "qpid": "exception *",
    }
    section.rule("queue.declare.passive", "title", **(said | changes))(nothing)  # type: ignore[arg-type]
    return section


def case(**changes: object) -> ConformanceCase:
    return section_of(**changes).cases[0]


def test_ids_are_told_apart() -> None:
    counted = Counter((one.id, version) for one in CASES for version in one.versions)
    assert [rule for rule, count in counted.items() if count > 1] == []


def test_each_version_has_its_rules() -> None:
    counted = Counter(version for one in CASES for version in one.versions)
    assert counted["0-9-1"] >= 180
    assert min(counted["0-9"], counted["0-8"]) >= 110
    assert counted["0-10"] >= 490
    assert counted.total() >= 1_000


def test_sections_are_told_apart_by_their_names() -> None:
    """Those of 0-10 may have the name of another version's."""
    counted = Counter((one.name, one.cases[0].versions[-1] == "0-10") for one in SECTIONS)
    assert [name for name, count in counted.items() if count > 1] == []


def test_what_is_known_is_one_brokers() -> None:
    assert [one.id for one in CASES if one.rabbitmq and one.qpid] == []
    assert {one.versions for one in CASES if one.qpid} == {("0-10",)}


def test_help_has_the_versions() -> None:
    assert tuple(HEADERS) == IN_HELP


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ("channel.close 404", "obeys"),
        ("hangs up", "obeys"),
        ("channel.close 406", "as RabbitMQ"),
        ("exception 404", "as Qpid"),
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
