"""Messages and bytes per principal and time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from amqpgate.pipeline.reading import schema
from amqpgate.pipeline.usage import SCHEMA, usage_by
from amqpgate.records import Usage
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
