"""What engines name otherwise is the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pyarrow as pa
import pytest

from amqpgate.pipeline import frames, local
from amqpgate.pipeline.contract import LATEST
from amqpgate.pipeline.jobs.denials import denials
from amqpgate.pipeline.jobs.usage import usage_by
from amqpgate.pipeline.local_frames import SqlSession
from tests.support.audit_plans import Plans
from tests.support.audit_records import START, Traffic, event, table_of, usage


def test_answers_come_as_arrow_some_rows_at_a_time(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    """With times that are UTC, and lists; also if there are none."""
    monkeypatch.setattr(frames, "_PART", 2)
    hours = [usage(f"g-{hour}", START + timedelta(hours=hour), hour, user="a") for hour in range(5)]
    refused = [event(f"g-{number}", "denied", START, user=f"u{number}") for number in range(3)]
    with frames.engine(plans.name):
        rows = usage_by(plans.frame("usage", hours), "hour").orderBy("start")
        with frames.reader_of(rows) as reader:
            table = reader.read_all()
        assert table["start"].to_pylist() == [START + timedelta(hours=hour) for hour in range(5)]
        assert pa.types.is_timestamp(table.schema.field("start").type)
        assert table["published"].to_pylist() == list(range(5))
        with frames.reader_of(denials(plans.frame("events", refused))) as reader:
            (row,) = reader.read_all().to_pylist()
        assert (row["times"], sorted(row["users"]), row["last"]) == (3, ["u0", "u1", "u2"], START)
        with frames.reader_of(rows.limit(0)) as reader:
            assert (len(reader.read_all()), reader.schema.names) == (0, table.schema.names)


@pytest.mark.parametrize(
    ("per", "zone"),
    [("minute", "UTC"), ("hour", "UTC"), ("day", "UTC"), ("day", "Asia/Kathmandu"), ("month", "UTC")],
)
def test_sums_over_parts_of_the_time_are_those_over_all(
    per: Literal["minute", "hour", "day", "month"],
    zone: str,
    duck: SqlSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No minute is in two parts, and peaks are those of whole minutes."""
    records = Traffic(services=3, keys=2).usage(
        3_100, start=START - timedelta(minutes=25), span=timedelta(hours=1)
    )
    with frames.engine("local"):
        frame = local.frame_of(duck, records)
        whole = sorted(map(str, frames.rows_of(usage_by(frame, per, zone))))
        monkeypatch.setattr(local, "MOST_TOGETHER", 700)
        parts = []
        computed = local.computed
        monkeypatch.setattr(local, "computed", lambda part: parts.append(computed(part)) or parts[-1])
        assert sorted(map(str, frames.rows_of(usage_by(frame, per, zone)))) == whole
    assert len(parts) == 5


def test_a_time_far_away_is_in_the_last_part(duck: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest that a record may have; the end of no part is later."""
    monkeypatch.setattr(local, "MOST_TOGETHER", 2)
    times = [START, START + timedelta(minutes=1), LATEST - timedelta(minutes=1)]
    with frames.engine("local"):
        frame = local.frame_of(duck, table_of("usage", [usage(f"g-{at}", at, 1, user="a") for at in times]))
        rows = usage_by(frame, "minute").orderBy("start")
        assert [row["start"] for row in frames.rows_of(rows)] == times
