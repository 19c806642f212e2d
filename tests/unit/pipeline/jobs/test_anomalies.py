"""Who left their own history, and who or what is new."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from amqpgate.pipeline.jobs.anomalies import FAR_OUT, anomalies, hourly
from amqpgate.records import Usage, arrow_schema
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, usage

HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)
#: A Monday, after four weeks of history; three hours are judged.
BEGIN = START + 4 * WEEK
END = BEGIN + 3 * HOUR


def sent(moment: datetime, messages: int, **columns: object) -> Usage:
    return usage("id", moment + timedelta(minutes=20), messages, **columns)


def history(messages: Iterable[int], **columns: object) -> list[Usage]:
    """So many in the first hour of each week."""
    return [sent(START + week * WEEK, count, **columns) for week, count in enumerate(messages)]


def daily(messages: Sequence[int], **columns: object) -> list[Usage]:
    """So many in four hours of each of 28 days, in turn."""
    times = [START + day * DAY + hour * HOUR for day in range(28) for hour in (9, 12, 15, 18)]
    return [sent(time, count, **columns) for time, count in zip(times, cycle(messages), strict=False)]


BEFORE = [100, 150, 60, 120]
VARIED = [100, 150, 60, 120, 90]

#: Each user is a case; all are judged in one go.
RECORDS = [
    *history(BEFORE, user="busy"),
    *daily(VARIED, user="busy"),
    # At another hour that is not unusual.
    *(sent(START + week * WEEK + 5 * HOUR, 10_000, user="busy") for week in range(4)),
    sent(BEGIN, 600, user="busy"),
    *history(BEFORE, user="usual"),
    *daily(VARIED, user="usual"),
    sent(BEGIN, 200, user="usual"),
    # Four weeks of one hour say little of how it varies.
    *history(BEFORE, user="seldom"),
    sent(BEGIN, 250, user="seldom"),
    # Always the same: a tenth more is not far out.
    *history([1000] * 4, user="steady"),
    sent(BEGIN, 1100, user="steady"),
    # Ten and twenty come by chance.
    *history([10] * 4, user="few"),
    sent(BEGIN, 20, user="few"),
    *history([100, 120, 80, 110], user="silent"),
    *daily([100, 120, 80, 110, 90], user="silent"),
    # One busy hour long ago does not make the next one usual.
    *history([100], user="once"),
    *daily(VARIED, user="once"),
    sent(BEGIN, 100, user="once"),
    # Two weeks of history are too few.
    sent(BEGIN - 2 * WEEK, 10, user="young"),
    sent(BEGIN - WEEK, 10, user="young"),
    sent(BEGIN, 10_000, user="young"),
    *history([10] * 4, user="wide"),
    *daily([10], user="wide"),
    *(sent(BEGIN, 1, user="wide", exchange=f"x{number}") for number in range(30)),
    *(
        sent(BEGIN, 1, user="wide", operation="basic.get", exchange=None, queue=f"amq.gen-{n}")
        for n in range(5)
    ),
    *history([10] * 4, user="wanderer"),
    *history([10] * 4, user="wanderer", exchange="", routing_key="reply-1234"),
    sent(BEGIN, 10, user="wanderer"),
    sent(BEGIN, 10, user="wanderer", exchange="", routing_key="reply-5678"),
    sent(BEGIN, 1, user="wanderer", exchange="other"),
    sent(BEGIN + 2 * HOUR, 2, user="wanderer", exchange="other"),
    sent(BEGIN, 4, user="wanderer", exchange="", routing_key="payroll"),
    # After what is judged.
    sent(END, 5, user="wanderer", exchange="later"),
    sent(BEGIN, 7, user="eve", exchange="x"),
    sent(BEGIN, 9, user="mallory", exchange="x", verdict="deny", rule="none"),
    sent(BEGIN, 9, user=None),
]


@pytest.fixture(scope="module")
def found(plans: Plans) -> list[Any]:
    return plans.rows(lambda frame: anomalies(frame, BEGIN, END), "usage", RECORDS)


def test_records_in_another_order_are_the_same_to_the_last_digit(plans: Plans) -> None:
    """Else files that an engine reads in another order would change the answer, and its order."""
    chance = random.Random(1)
    records = daily([chance.randrange(50, 200) for _ in range(97)], user="busy") + [
        sent(BEGIN + hour * HOUR, 9_000, user="busy") for hour in range(3)
    ]
    orders = [records, records[::-1], chance.sample(records, len(records))]
    scores = [
        [row.score for row in plans.rows(lambda frame: anomalies(frame, BEGIN, END), "usage", order)]
        for order in orders
    ]
    assert len(scores[0]) == 3
    assert scores[1:] == scores[:1] * 2


def of(found: list[Any], user: str | None) -> list[tuple[str, str, int, float | None]]:
    return [(row.kind, row.what, row.value, row.usual) for row in found if row.user == user]


def test_an_hour_is_compared_with_the_same_hour_of_the_week(found: list[Any]) -> None:
    assert of(found, "busy") == [("rate", "sent", 600, 110.0)]
    (one,) = [row for row in found if row.user == "busy"]
    assert one.score > FAR_OUT
    assert (one.weeks, one.hour) == (4, BEGIN)


@pytest.mark.parametrize("user", ["usual", "seldom", "steady", "few", "young", "mallory", None])
def test_the_usual_is_nothing_to_tell(found: list[Any], user: str | None) -> None:
    assert of(found, user) == []


def test_silence_is_noticed(found: list[Any]) -> None:
    assert of(found, "silent") == [("rate", "sent", 0, 105.0)]
    (one,) = [row for row in found if row.user == "silent"]
    assert one.score < -FAR_OUT


def test_weeks_without_a_record_count(found: list[Any]) -> None:
    assert of(found, "once") == [("rate", "sent", 100, 0.0)]


def test_reach_is_how_many_different_things_are_touched(found: list[Any]) -> None:
    assert ("reach", "reach", 31, 1.0) in of(found, "wide")


def test_new_principals_and_routes_are_told_with_the_hour_they_began(found: list[Any]) -> None:
    assert of(found, "wanderer") == [
        ("route", "basic.publish queue payroll", 4, None),
        ("route", "basic.publish exchange other", 3, None),
    ]
    assert {row.hour for row in found if row.user == "wanderer"} == {BEGIN}
    assert of(found, "eve") == [("principal", "never seen before", 7, None)]


def test_hours_are_summed(plans: Plans) -> None:
    got = {"operation": "basic.deliver", "queue": "q", "verdict": None}
    records = [sent(START, 3), sent(START, 4), sent(START, 5, **got), sent(START + HOUR, 1)]
    rows = plans.rows(lambda frame: hourly(frame).orderBy("hour"), "usage", records)
    assert [(row.sent, row.received, row.reach) for row in rows] == [(7, 5, 2), (1, 0, 1)]


# -- traffic that does not change -----------------------------------------------------------------

#: Messages in an hour, and how far that rate varies by itself.
STATIONARY = [
    (0.3, 0.0),
    (3, 0.0),
    (30, 0.0),
    (1_000, 0.0),
    (3, 0.3),
    (30, 0.3),
    (1_000, 0.3),
    (100_000, 0.3),
]
#: Hours of the week that is judged, and by what their messages are multiplied.
PLANTED = {20: 0, 70: 6, 140: 10}


def stationary(seed: int, planted: dict[int, int], weeks: int) -> pa.Table:
    """An hour's record each: weeks of history, and one that is judged. Days have more than nights."""
    chance = np.random.default_rng(seed)
    hours = np.arange((weeks + 1) * 168)
    rows: list[dict[str, object]] = []
    for number, (rate, spread) in enumerate(STATIONARY):
        rates = rate * (1.5 + np.sin(hours * 2 * np.pi / 24))
        rates *= chance.gamma(1 / spread**2, spread**2, len(hours)) if spread else 1
        counts = chance.poisson(rates)
        for hour, factor in planted.items():
            counts[weeks * 168 + hour] *= factor
        pattern = attrs.asdict(usage("", START, user=f"user-{number}"))
        rows += [
            pattern
            | {"record_id": f"{number}-{hour}", "window_start": START + hour * HOUR, "messages": count}
            for hour, count in enumerate(counts.tolist())
            if count
        ]
    return pa.Table.from_pylist(rows, arrow_schema(Usage))


@pytest.mark.parametrize("weeks", [3, 4])
def test_at_most_one_in_a_thousand_hours_of_stationary_traffic_is_told(plans: Plans, weeks: int) -> None:
    begin = START + weeks * WEEK

    def job(frame: Any) -> Any:
        return anomalies(frame, begin, begin + WEEK)

    calm = plans.rows(job, "usage", stationary(weeks, {}, weeks))
    judged = len(STATIONARY) * 168
    assert len({(row.user, row.hour) for row in calm}) <= judged / 1000, calm
    told = plans.rows(job, "usage", stationary(weeks, PLANTED, weeks))
    planted = {begin + hour * HOUR: factor for hour, factor in PLANTED.items()}
    found = {(row.user, planted[row.hour]) for row in told if row.hour in planted}
    loud = {f"user-{number}" for number, (rate, _) in enumerate(STATIONARY) if rate >= 30}
    assert found >= {(user, factor) for user in loud for factor in (6, 10)}
    assert found >= {(f"user-{number}", 0) for number, (rate, _) in enumerate(STATIONARY) if rate >= 1_000}
