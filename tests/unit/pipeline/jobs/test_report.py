"""The report on records: what is in its tables and plots, and that their size is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from amqpgate.cli import main
from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.jobs.report import Wanted, _refuser, report
from amqpgate.pipeline.jobs.report_page import page
from amqpgate.pipeline.jobs.report_parts import MOST_SERIES, Cell, Picture, Plot, Report, ReportTable, Word
from amqpgate.pipeline.jobs.report_rows import MOST_STEPS, Axis
from amqpgate.policy import Source
from amqpgate.records import Event, Usage
from tests.support.audit_records import START, event, frame_of, table_of, usage, write
from tests.support.audit_verbs import audit_locally

HOUR = timedelta(hours=1)
NOW = START + timedelta(weeks=4)
USERS = [f"user-{number:02}" for number in range(MOST_SERIES + 3)]
HOSTILE = "<script>\u202e"

CANDIDATE = b"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: fewer}
spec:
  subjects: [{user: user-00}]
  rules: []
"""


def records() -> tuple[list[Usage], list[Event]]:
    """Four weeks in which two users do the same each week, and an hour in which others join them."""
    used = [
        usage(f"{user}-{week}", START + timedelta(weeks=week, hours=3), 100, user=user)
        for user in USERS[:2]
        for week in range(4)
    ]
    used += [
        usage(f"new-{number}", NOW, 10 + number, user=user, vhost=f"vhost-{number}", exchange=user)
        for number, user in enumerate(USERS[2:])
    ]
    used += [
        usage("much", NOW + 3 * HOUR, 5_000, user=USERS[0]),
        usage("got", NOW, 7, user=USERS[1], operation="basic.deliver", queue="q", verdict=None),
        usage("refused", NOW, 3, user=HOSTILE, vhost=HOSTILE, exchange="", verdict="deny"),
        usage("unknown", NOW, 2, user=None, vhost="/", exchange=""),
    ]
    refused = {"verdict": "deny", "operation": "basic.publish", "vhost": "/", "exchange": "x"}
    happened = [
        event(f"denied-{number}", "denied", NOW, user=HOSTILE, policy="p", rule=f"r-{number % 9}", **refused)
        for number in range(20)
    ]
    happened += [
        *(event(f"by-the-broker-{number}", "denied", NOW, user="bob", **refused) for number in range(4)),
        event("shadow", "shadow", NOW, user="bob", policy="s", rule=HOSTILE, **refused),
        event("open", "session.open", NOW, user="bob", vhost="/"),
        event("login", "session.refused", NOW, user=HOSTILE, session="s", reply_code=403, reason=HOSTILE),
        event("queue", "topology", NOW, operation="queue.declare", vhost="/", queue=HOSTILE),
    ]
    return used, happened


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Report:
    used, happened = records()
    skipped = [Skipped(f"{HOSTILE}-{number}", "is cut off") for number in range(7)]
    return report(
        frame_of(spark, "usage", used),
        frame_of(spark, "events", happened),
        Wanted(top=5, candidate=[Source("p.yaml", CANDIDATE)], skipped=skipped),
    )


def parts(made: Report) -> Iterator[ReportTable | Plot | Picture]:
    for section in made.sections:
        yield from section.parts


def table(made: Report, title: str) -> ReportTable:
    (found,) = (part for part in parts(made) if isinstance(part, ReportTable) and part.title == title)
    return found


def test_facts(made: Report) -> None:
    facts = dict(made.facts)
    published = 8 * 100 + sum(range(10, 10 + len(USERS) - 2)) + 5_000 + 2
    assert facts["Messages published"] == published
    assert facts["Messages delivered"] == 7
    assert facts["Messages refused"] == 3
    assert facts["Operations denied"] == 24
    assert facts["Users with messages"] == len(USERS) + 2
    assert facts["Gateways"] == 1
    assert (made.first, made.last) == (START + 3 * HOUR, NOW + 3 * HOUR)


def test_plots_hold_all_messages_in_few_series(made: Report) -> None:
    used, _ = records()
    passed = sum(one.messages for one in used if one.verdict != "deny")
    plots = {part.title: part for part in parts(made) if isinstance(part, Plot)}
    for what in ("virtual host", "user"):
        plot = plots[f"Messages per second, by {what}"]
        step = (plot.times[1] - plot.times[0]).total_seconds()
        assert len(plot.series) == MOST_SERIES + 1
        assert plot.series[-1].name == Word("all others")
        assert sum(sum(one.values) for one in plot.series) * step == pytest.approx(passed)
    denied = plots["Operations denied, by rule"]
    assert sum(sum(one.values) for one in denied.series) == 24
    names = [one.name for one in denied.series]
    assert (names[0], names[-1]) == (Word("the broker"), Word("all others"))
    assert sum(denied.series[0].values) == 4


@pytest.mark.parametrize(
    ("policy", "rule", "by"),
    [
        ("p", "r", "p/r"),
        (None, None, Word("the broker")),
        (None, "default", Word("the gateway: no rule allows it")),
        (None, "defaultAccess", Word("the gateway: no access policy selects")),
        (None, "transform", Word("the gateway: a transform policy")),
    ],
)
def test_the_gateways_own_denials_are_not_the_brokers(
    policy: str | None, rule: str | None, by: str | Word
) -> None:
    assert _refuser(policy, rule) == by


def test_tables_have_the_most_frequent_and_say_how_many_more(made: Report) -> None:
    users = table(made, "Users with the most messages")
    assert [row[0] for row in users.rows[:2]] == USERS[:2]
    assert (len(users.rows), users.more) == (5, len(USERS) + 2 - 5)
    denied = table(made, "Denied")
    assert [row[4] for row in denied.rows] == [4, 3, 3, 2, 2]
    assert denied.rows[0][0] == Word("the broker")
    assert (len(denied.rows), denied.more) == (5, 10 - 5)
    assert table(made, "Decided otherwise by policies in mode shadow").more == 0
    left_out = table(made, "Left out")
    assert (len(left_out.rows), left_out.more) == (5, 2)


def test_what_left_its_history_and_what_is_new(made: Report) -> None:
    far: list[tuple[Cell, ...]] = [
        row[:5] for row in table(made, "Hours that left the history of their user").rows
    ]
    assert (USERS[0], "/", NOW + 3 * HOUR, Word("sent"), 5_000) in far
    new = table(made, "New users")
    assert len(new.rows) + new.more == len(USERS) - 2
    (route,) = table(made, "New routes of users known before").rows
    assert route[0] == USERS[1]


def test_topology_and_what_a_candidate_changes(made: Report) -> None:
    (picture,) = (part for part in parts(made) if isinstance(part, Picture))
    assert picture.topology.edges
    assert sum(one.times for one in picture.denied) == 24
    assert [row[2] for row in table(made, "Declared, and not used").rows] == [HOSTILE]
    changed = table(made, "Answers that change").rows
    assert ("user-00", Word("allow"), Word("deny")) in [(row[0], row[5], row[6]) for row in changed]


def test_the_page_of_it(made: Report) -> None:
    text = page(made, "Audit report of x")
    assert text.count("<script") == 2
    assert "\u202e" not in text
    assert "&lt;script&gt;\ufffd" in text
    assert "and 2 more" in text


def test_no_records(spark: SparkSession) -> None:
    nothing = report(frame_of(spark, "usage", []), frame_of(spark, "events", []))
    assert (nothing.first, nothing.sections) == (None, ())
    assert "There are no records" in page(nothing, "t")


def test_events_alone_are_enough(spark: SparkSession) -> None:
    some = report(frame_of(spark, "usage", []), frame_of(spark, "events", records()[1]))
    assert dict(some.facts)["Operations denied"] == 24
    assert dict(some.facts)["Messages published"] == 0
    assert "There are no records before" in page(some, "t")


def test_the_verb_writes_one_file_and_tells_what_it_could_not_read(
    tmp_path: Path, spark: SparkSession
) -> None:
    used, happened = records()
    write(tmp_path / "raw", "usage", table_of("usage", used[-3:]))
    (whole,) = write(tmp_path / "raw", "events", table_of("events", happened))
    (cut := whole.with_name("cut.parquet")).write_bytes(whole.read_bytes()[:-9])
    out = tmp_path / "report.html"
    # As the session that all tests share.
    same = ["--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.sql.adaptive.enabled=false"]
    words = [f"{tmp_path}/raw", "-o", str(out), "--until", "2026-12-01", *same]
    result = CliRunner().invoke(main, ["audit", "report", *words])
    assert result.exit_code == 0, result.output
    assert f"skipped: file://{cut}: is cut off" in result.stderr
    text = out.read_text().replace("<wbr>", "")
    assert "<h1>Audit report of /" in text
    assert f"<bdi>{cut.relative_to(tmp_path / 'raw')}</bdi></td><td><bdi>is cut off" in text
    assert "There are no records before 2026-11-30 00:00" in text


moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@given(moments, moments, st.sampled_from([0, 3600]))
def test_an_axis_has_both_ends_and_not_too_many_steps(one: datetime, other: datetime, narrowest: int) -> None:
    first, last = min(one, other), max(one, other)
    axis = Axis.of(first, last, narrowest)
    times = axis.times
    step = timedelta(seconds=axis.step)
    assert times[0] <= first < times[0] + step
    assert times[-1] <= last < times[-1] + step
    assert len(times) <= MOST_STEPS
    assert axis.step >= narrowest
    assert axis.step % {"minute": 60, "hour": 3600, "day": 86_400}[axis.per] == 0


def test_a_report_of_the_local_engine_where_nothing_was_denied(tmp_path: Path) -> None:
    """Its plot has no series."""
    used, happened = records()
    write(tmp_path, "usage", table_of("usage", used[-3:]))
    write(tmp_path, "events", table_of("events", [one for one in happened if one.kind != "denied"]))
    out = tmp_path / "report.html"
    audit_locally("report", tmp_path, "-o", out, "--until", "2026-12-01", "--engine", "local")
    assert "Nothing was denied." in out.read_text()
