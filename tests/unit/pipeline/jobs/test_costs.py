"""What usage costs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.frames import engine, rows_of
from amqpgate.pipeline.jobs.costs import SCHEMA, costs
from amqpgate.pipeline.jobs.prices import Prices, parse
from amqpgate.records import Event, Usage
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, event, usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOVEMBER, DECEMBER = (datetime(2026, month, 1, tzinfo=UTC) for month in (11, 12))
PRICES = parse(
    "currency: EUR\nperMillionMessages: 0.5\nperGigabyte: 0.02\nperConnectionHour: 0.001\n"
    "groups: {shop: [alice], rest: ['b*']}"
)


@pytest.fixture
def plans(duck: Any) -> Plans:
    return Plans("local", duck)


def charged(
    plans: Plans, used: Iterable[Usage], events: Iterable[Event], prices: Prices = PRICES, **how: Any
) -> list[dict[str, Any]]:
    with engine(plans.name):
        frame = costs(plans.frame("usage", used), plans.frame("events", events), prices, **how)
        return list(rows_of(frame.orderBy("start", *how.get("by", ("user", "vhost")))))


def connected(session: str, begin: datetime, end: datetime | None, **columns: object) -> list[Event]:
    origin = {"session": session, "user": "alice", "vhost": "/"} | columns
    found = [event(f"{session}-open", "session.open", begin, **origin)]
    if end is not None:
        found.append(event(f"{session}-close", "session.close", end, **origin))
    return found


def test_what_passed_costs_and_what_was_refused_does_not(plans: Plans) -> None:
    records = [
        usage("1", START, 3_000_000, bytes=10**9, session=None),
        usage("2", START, 1, operation="basic.deliver", verdict=None, bytes=5, session=None),
        usage("3", START, 7, verdict="deny", bytes=10**12, session=None),
        usage("4", START, 0, operation="queue.declare", user="carol", session=None),
        usage("5", DECEMBER, 1, user="bob", vhost="shop", bytes=0, session=None),
        usage("6", START, 1, user=None, bytes=0, session=None),
    ]
    found = charged(plans, records, [])
    assert [column.split()[0] for column in SCHEMA.split(", ")] == list(found[0])
    rows = {(row["user"], row["group"], row["vhost"]): row for row in found}
    assert set(rows) == {("alice", "shop", "/"), ("bob", "rest", "shop"), (None, None, "/")}
    alice = rows["alice", "shop", "/"]
    assert (alice["start"], alice["messages"], alice["bytes"]) == (NOVEMBER, 3_000_001, 10**9 + 5)
    # 1.5000005 and 0.0200000001, which is rounded.
    assert (str(alice["messages_cost"]), str(alice["bytes_cost"])) == ("1.500000500", "0.020000000")
    assert (str(alice["cost"]), alice["currency"]) == ("1.520000500", "EUR")
    assert rows["bob", "rest", "shop"]["start"] == DECEMBER
    assert rows[None, None, "/"]["messages"] == 1


def test_halves_of_the_last_digit_go_to_the_even_one(plans: Plans) -> None:
    prices = parse("{currency: EUR, perMillionMessages: 0.0005}")
    used = [usage(user, START, count, user=user) for user, count in (("a", 1), ("b", 3), ("c", 5))]
    found = charged(plans, used, [], prices)
    assert [str(row["cost"]) for row in found] == ["0E-9", "2E-9", "2E-9"]


def test_a_connection_is_charged_where_it_was(plans: Plans) -> None:
    events = [
        *connected("over", DECEMBER - HOUR, DECEMBER + 2 * HOUR),
        *connected("beside", DECEMBER + HOUR, DECEMBER + 3 * HOUR),
        # Nobody saw it end.
        *connected("open", DECEMBER - DAY, None, user="bob"),
        # It was no session.
        event("login", "session.refused", DECEMBER, session="refused", user="alice", vhost="/"),
    ]
    used = [usage("u", DECEMBER, 0, operation="basic.qos", session="open", user="bob", last=DECEMBER + HOUR)]
    found = charged(plans, used, events)
    assert [(row["start"], row["user"], row["connection_seconds"]) for row in found] == [
        (NOVEMBER, "alice", 3600),
        (NOVEMBER, "bob", 86_400),
        (DECEMBER, "alice", 4 * 3600),
        (DECEMBER, "bob", 3600),
    ]
    assert sum(row["cost"] for row in found) == Decimal("0.030")


def test_a_connection_that_was_there_all_the_time(plans: Plans) -> None:
    events = connected("long", NOVEMBER - 40 * DAY, DECEMBER + DAY)
    span = Span(since=NOVEMBER + DAY, until=NOVEMBER + 3 * DAY)
    (row,) = charged(plans, [], events, span=span)
    assert (row["start"], row["connection_seconds"]) == (NOVEMBER, 2 * 86_400)


def test_local_days_have_the_hours_that_they_have(plans: Plans) -> None:
    night = datetime(2026, 10, 24, 22, tzinfo=UTC)
    found = charged(
        plans,
        [],
        connected("1", night - DAY, night + 2 * DAY),
        per="day",
        zone="Europe/Berlin",
        by=("vhost",),
    )
    assert [(row["start"], row["connection_seconds"] // 3600) for row in found] == [
        (night - DAY, 24),
        (night, 25),
        (night + 25 * HOUR, 23),
    ]


def test_nothing_costs_nothing(plans: Plans) -> None:
    assert charged(plans, [], []) == []


def test_the_schema_is_what_spark_has(spark: SparkSession) -> None:
    plans = Plans("spark", spark)
    frame = costs(plans.frame("usage", [usage("1", START)]), plans.frame("events", []), PRICES)
    expected = spark.createDataFrame([], SCHEMA).schema
    assert [(field.name, field.dataType) for field in frame.schema] == [
        (field.name, field.dataType) for field in expected
    ]
