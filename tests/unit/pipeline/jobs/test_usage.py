"""Messages and bytes per principal and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from amqpgate.pipeline.jobs.usage import SCHEMA, usage_by
from amqpgate.pipeline.reading import schema
from amqpgate.records import Usage
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, Traffic, frame_of, usage

HOUR = timedelta(hours=1)


def test_directions_refusals_and_principals_are_apart(spark: SparkSession) -> None:
    records = [
        usage("1", START, 60, bytes=600),
        usage("2", START + timedelta(seconds=50), 60, bytes=0, session="2"),
        usage("3", START, 6, operation="basic.deliver", verdict=None, queue="q"),
        usage("4", START, 5, operation="basic.get-ok", verdict=None, queue="q"),
        usage("5", START, 1, operation="basic.return", verdict=None),
        usage("6", START, 9, verdict="deny"),
        usage("7", START, 1, user="bob"),
        usage("8", START, 1, vhost="shop"),
        usage("9", START, 1, exchange="y"),
        usage("10", START, 0, operation="queue.declare", requests=3, user="carol"),
        usage("11", START, 1, user=None),
    ]
    expected = [
        (START, "alice", "/", "x", 120, 600, 12, 12, 9, 2.2, 10.2),
        (START, "bob", "/", "x", 1, 1, 0, 0, 0, 1 / 60, 1 / 60),
        (START, "alice", "shop", "x", 1, 1, 0, 0, 0, 1 / 60, 1 / 60),
        (START, "alice", "/", "y", 1, 1, 0, 0, 0, 1 / 60, 1 / 60),
        (START, None, "/", "x", 1, 1, 0, 0, 0, 1 / 60, 1 / 60),
    ]
    found = usage_by(frame_of(spark, "usage", records), "minute")
    assertDataFrameEqual(found, spark.createDataFrame(expected, SCHEMA))


@pytest.mark.parametrize(
    ("per", "starts"),
    [
        ("minute", {START: 60, START + timedelta(minutes=59): 600, START + HOUR: 6, START + 24 * HOUR: 1}),
        ("hour", {START: 660, START + HOUR: 6, START + 24 * HOUR: 1}),
        ("day", {START: 666, START + 24 * HOUR: 1}),
    ],
)
def test_a_record_counts_where_its_window_began(
    spark: SparkSession, per: Literal["minute", "hour", "day"], starts: dict[datetime, int]
) -> None:
    records = [
        usage("1", START, 30),
        usage("2", START + timedelta(seconds=59.999999), 30),
        usage("3", START + HOUR - timedelta(microseconds=1), 600),
        usage("4", START + HOUR, 6),
        usage("5", START + 24 * HOUR, 1),
    ]
    found = usage_by(frame_of(spark, "usage", records), per)
    peaks = {"minute": starts} | dict.fromkeys(("hour", "day"), starts | {START: 600})
    expected = [
        (start, "alice", "/", "x", sent, sent, 0, 0, 0, (peak := peaks[per][start] / 60), peak)
        for start, sent in starts.items()
    ]
    assertDataFrameEqual(found, spark.createDataFrame(expected, SCHEMA))


def test_nothing_is_lost_or_invented(spark: SparkSession) -> None:
    table = Traffic(services=4).usage(2_000)
    found = usage_by(spark.createDataFrame(table.to_pandas(), schema("usage")), "hour")
    (row,) = found.selectExpr("sum(published + delivered + refused) AS messages").collect()
    assert row.messages == sum(table["messages"].to_pylist())


def test_no_records_no_rows(spark: SparkSession) -> None:
    none: list[Usage] = []
    assertDataFrameEqual(usage_by(frame_of(spark, "usage", none), "day"), spark.createDataFrame([], SCHEMA))


def test_days_and_months_are_those_of_a_time_zone(plans: Plans) -> None:
    """The night in which clocks go back has 25 hours."""
    times = {
        "the 24th": datetime(2026, 10, 24, 21, 59, tzinfo=UTC),
        "summer time": datetime(2026, 10, 24, 22, 0, tzinfo=UTC),
        "winter time": datetime(2026, 10, 25, 22, 59, tzinfo=UTC),
        "the 26th": datetime(2026, 10, 25, 23, 0, tzinfo=UTC),
        "november": datetime(2026, 10, 31, 23, 0, tzinfo=UTC),
    }
    records = [usage(name, time, 10**number) for number, (name, time) in enumerate(times.items())]

    def sent(per: Literal["day", "month"]) -> dict[str, int]:
        rows = plans.rows(lambda frame: usage_by(frame, per, "Europe/Berlin"), "usage", records)
        return {f"{row.start.astimezone(UTC):%m-%dT%H:%M}": row.published for row in rows}

    assert sent("day") == {"10-23T22:00": 1, "10-24T22:00": 110, "10-25T23:00": 1_000, "10-31T23:00": 10_000}
    assert sent("month") == {"09-30T22:00": 1_111, "10-31T23:00": 10_000}
