"""Who left their own history, and who or what is new."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from amqpgate.pipeline.anomalies import anomalies, hourly
from amqpgate.pipeline.reading import schema
from amqpgate.records import Usage
from tests.support.audit_records import START, table_of, usage

HOUR, WEEK = timedelta(hours=1), timedelta(weeks=1)
#: A Monday, after four weeks of history; three hours are judged.
BEGIN = START + 4 * WEEK
END = BEGIN + 3 * HOUR


def frame(spark: SparkSession, records: Iterable[Usage]) -> DataFrame:
    return spark.createDataFrame(table_of("usage", records), schema("usage"))


def sent(moment: datetime, messages: int, **columns: object) -> Usage:
    return usage("id", moment + timedelta(minutes=20), messages, **columns)


def history(messages: Iterable[int], **columns: object) -> list[Usage]:
    """So many in the first hour of each week."""
    return [sent(START + week * WEEK, count, **columns) for week, count in enumerate(messages)]


BEFORE = [100, 150, 60, 120]

#: Each user is a case; all are judged in one go.
RECORDS = [
    *history(BEFORE, user="busy"),
    # At another hour that is not unusual.
    *(sent(START + week * WEEK + 5 * HOUR, 10_000, user="busy") for week in range(4)),
    sent(BEGIN, 400, user="busy"),
    *history(BEFORE, user="usual"),
    sent(BEGIN, 170, user="usual"),
    # Always the same: a tenth more is not far out.
    *history([1000] * 4, user="steady"),
    sent(BEGIN, 1100, user="steady"),
    *history([100, 120, 80, 110], user="silent"),
    # One busy hour long ago does not make the next one usual.
    *history([100], user="once"),
    sent(BEGIN, 100, user="once"),
    # Two weeks of history are too few.
    sent(BEGIN - 2 * WEEK, 10, user="young"),
    sent(BEGIN - WEEK, 10, user="young"),
    sent(BEGIN, 10_000, user="young"),
    *history([10] * 4, user="wide"),
    *(sent(BEGIN, 1, user="wide", exchange=f"x{number}") for number in range(12)),
    *(
        sent(BEGIN, 1, user="wide", operation="basic.get", exchange=None, queue=f"amq.gen-{n}")
        for n in range(5)
    ),
    *history([10] * 4, user="wanderer"),
    *history([10] * 4, user="wanderer", exchange="", routing_key="reply-1234"),
    sent(BEGIN, 10, user="wanderer"),
    sent(BEGIN, 10, user="wanderer", exchange="", routing_key="reply-5678"),
    sent(BEGIN, 3, user="wanderer", exchange="other"),
    sent(BEGIN, 4, user="wanderer", exchange="", routing_key="payroll"),
    # After what is judged.
    sent(END, 5, user="wanderer", exchange="later"),
    sent(BEGIN, 7, user="eve", exchange="x"),
    sent(BEGIN, 9, user="mallory", exchange="x", verdict="deny", rule="none"),
    sent(BEGIN, 9, user=None),
]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> list[Row]:
    return anomalies(frame(spark, RECORDS), BEGIN, END).collect()


def of(found: list[Row], user: str) -> list[tuple[str, str, int, float | None]]:
    return [(row.kind, row.what, row.value, row.usual) for row in found if row.user == user]


def test_an_hour_is_compared_with_the_same_hour_of_the_week(found: list[Row]) -> None:
    usual = statistics.median(BEFORE)
    spread = statistics.median(abs(value - usual) for value in BEFORE)
    assert of(found, "busy") == [("rate", "sent", 400, usual)]
    (one,) = [row for row in found if row.user == "busy"]
    assert one.score == 0.6745 * (400 - usual) / spread
    assert one.weeks == 4


@pytest.mark.parametrize("user", ["usual", "steady", "young", "mallory", None])
def test_the_usual_is_nothing_to_tell(found: list[Row], user: str) -> None:
    assert of(found, user) == []


def test_silence_is_noticed(found: list[Row]) -> None:
    assert of(found, "silent") == [("rate", "sent", 0, 105.0)]
    (one,) = [row for row in found if row.user == "silent"]
    assert one.score < -3.5


def test_weeks_without_a_record_count(found: list[Row]) -> None:
    assert of(found, "once") == [("rate", "sent", 100, 0.0)]


def test_reach_is_how_many_different_things_are_touched(found: list[Row]) -> None:
    assert ("reach", "reach", 13, 1.0) in of(found, "wide")


def test_new_principals_and_routes(found: list[Row]) -> None:
    assert of(found, "wanderer") == [
        ("route", "basic.publish queue payroll", 4, None),
        ("route", "basic.publish exchange other", 3, None),
    ]
    assert of(found, "eve") == [("principal", "never seen before", 7, None)]


def test_hours_are_summed(spark: SparkSession) -> None:
    got = {"operation": "basic.deliver", "queue": "q", "verdict": None}
    records = [sent(START, 3), sent(START, 4), sent(START, 5, **got), sent(START + HOUR, 1)]
    rows = hourly(frame(spark, records)).orderBy("hour").collect()
    assert [(row.sent, row.received, row.reach) for row in rows] == [(7, 5, 2), (1, 0, 1)]
