"""What is refused most."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from amqpgate.pipeline.jobs.denials import MOST_USERS, SCHEMA, denials
from tests.support.audit_records import START, event, frame_of

SECOND = timedelta(seconds=1)
REFUSED = {
    "verdict": "deny",
    "policy": "p",
    "rule": "r",
    "operation": "basic.publish",
    "vhost": "/",
    "exchange": "x",
}


def test_the_most_frequent_comes_first_with_who_when_and_how_it_grows(spark: SparkSession) -> None:
    times = [0, 0, 1, 79, 79, 79]
    users = ["bob", "alice", "alice", "alice", "bob", None]
    records = [
        event("other", "denied", START + 40 * SECOND, **REFUSED | {"rule": "q"}, user="carol"),
        *(
            event(str(number), "denied", START + time * SECOND, **REFUSED, user=user)
            for number, (time, user) in enumerate(zip(times, users, strict=True))
        ),
        event("shadow", "shadow", START, **REFUSED),
        event("open", "session.open", START),
        event("login", "session.refused", START, user="eve", reply_code=403),
    ]
    what = ("p", "r", "deny", "basic.publish", "/", "x", None)
    end = START + 79 * SECOND
    expected = [
        (*what, 6, 3, ["alice", "bob", None], START, end, [3, 0, 0, 0, 0, 0, 0, 3]),
        (
            *("p", "q", *what[2:], 1, 1, ["carol"]),
            *(START + 40 * SECOND, START + 40 * SECOND, [0, 0, 0, 0, 1, 0, 0, 0]),
        ),
    ]
    found = denials(frame_of(spark, "events", records))
    assertDataFrameEqual(found, spark.createDataFrame(expected, SCHEMA), checkRowOrder=True)


def test_differences_of_shadow_policies_are_counted_likewise(spark: SparkSession) -> None:
    records = [
        event("1", "shadow", START, **REFUSED | {"verdict": "allow"}, user="alice"),
        event("2", "denied", START, **REFUSED, user="alice"),
    ]
    (row,) = denials(frame_of(spark, "events", records), "shadow").collect()
    assert (row.verdict, row.times, row.trend) == ("allow", 1, [1, 0, 0, 0, 0, 0, 0, 0])


def test_only_some_of_the_principals_are_named(spark: SparkSession) -> None:
    records = [
        event(f"{user}-{number}", "denied", START, **REFUSED, user=f"user-{user}")
        for user in range(MOST_USERS + 3)
        for number in range(user + 1)
    ]
    (row,) = denials(frame_of(spark, "events", records)).collect()
    assert row.principals == MOST_USERS + 3
    assert row.users == [f"user-{user}" for user in range(MOST_USERS + 2, 2, -1)]


def test_nothing_was_refused(spark: SparkSession) -> None:
    found = denials(frame_of(spark, "events", [event("1", "session.open", START)]))
    assertDataFrameEqual(found, spark.createDataFrame([], SCHEMA))
