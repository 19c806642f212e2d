"""What clients waited for, and the page."""

from __future__ import annotations

import json
import re

from tests.chaos.checker import Verdict
from tests.chaos.history import Event, Kind
from tests.chaos.outcome import CONFIRMS, FaultRun, Outcome, longest, per_second, stalls
from tests.chaos.report import page, summary, written
from tests.chaos.stage import schedule


def test_the_longest_wait_is_that_of_one_client_that_a_fault_lies_in() -> None:
    times = [0.0, 1.0, 2.0, 9.0, 9.5, 20.0]
    assert longest(times, 3.0, 5.0) == 7.0
    assert longest(times, 9.1, 9.2) == 0.5
    assert longest(times, 1.5, 9.6) == 10.5
    assert longest([], 0.0, 1.0) == longest([1.0], 0.0, 2.0) == 0.0


def test_a_fault_does_not_answer_for_the_next_one() -> None:
    faults = [FaultRun("one", 10.0, 11.0), FaultRun("two", 14.0, 28.0)]
    stalls(faults, [[9.0, 10.1, 13.5, 28.0]], [])
    assert [round(one.confirm_stall, 1) for one in faults] == [3.4, 14.5]


def test_a_wait_that_two_faults_lie_in_is_both_faults() -> None:
    faults = [FaultRun("one", 10.0, 11.0), FaultRun("two", 20.0, 21.0)]
    stalls(faults, [[9.0, 10.5, 14.0, 15.0, 19.0, 26.0], [9.0, 30.0]], [[1.0, 19.5, 20.5]])
    assert [(one.confirm_stall, one.delivery_stall) for one in faults] == [(21.0, 18.5), (21.0, 1.0)]


def test_each_second_has_its_messages() -> None:
    into: list[int] = []
    events = [Event(Kind.CONFIRMED, 1, 1, 0, 49, 102.2), Event(Kind.GONE, 1, 0, 0, 0, 103.0)]
    per_second(events, CONFIRMS, 100.0, into)
    assert into == [0, 0, 50]


def test_a_schedule_has_all_of_them_before_any_comes_again() -> None:
    import itertools
    import random

    found = list(itertools.islice(schedule(["a", "b", "c"], random.Random(1)), 9))
    assert [sorted(found[at : at + 3]) for at in (0, 3, 6)] == [["a", "b", "c"]] * 3
    assert found == list(itertools.islice(schedule(["a", "b", "c"], random.Random(1)), 9))


def outcome() -> Outcome:
    verdict = Verdict(offered=100, confirmed=90, delivered=95)
    made = Outcome("own@3.10", 1000.0, 7, 1060.0, [FaultRun("worker-kill", 1010.0, 1012.0, "SIGKILL", 3.5)])
    made.verdict, made.confirms, made.deliveries = verdict, [40] * 30, [45] * 30
    return made


def test_the_page_stands_alone_and_escapes_what_it_is_told() -> None:
    bad = outcome()
    bad.verdict.found("lost", 1 << 24, 4)
    bad.problems.append("<script>alert(1)</script>")
    text = page([outcome(), bad])
    assert not re.search(r"<script|(?:src|href)=|url\(", text)
    assert "1 lost" in text
    assert "p1.0.q0#4" in text
    assert "&lt;script&gt;" in text
    assert text.count("<svg") == 2
    assert "something is wrong" in text


def test_good_and_bad_are_told_apart_everywhere() -> None:
    good, bad = outcome(), outcome()
    bad.faults[0].problem = "it did not end"
    assert good.is_good
    assert not bad.is_good
    assert [one["is_good"] for one in json.loads(written([good, bad]))] == [True, False]
    assert "own@3.10: good" in summary(good)
    assert "NOT GOOD" in summary(bad)
