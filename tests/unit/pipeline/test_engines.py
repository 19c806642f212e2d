"""What DuckDB answers is what Spark answers, row by row, for every verb."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pyarrow
import pytest
from pyspark.sql import SparkSession

from amqpgate.pipeline import local, local_reading, reading
from amqpgate.pipeline.engines import MOST_LOCAL, choose, is_long
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.frames import engine, rows_of
from amqpgate.pipeline.jobs.anomalies import anomalies
from amqpgate.pipeline.jobs.costs import costs
from amqpgate.pipeline.jobs.denials import denials
from amqpgate.pipeline.jobs.preflight import seen
from amqpgate.pipeline.jobs.prices import parse
from amqpgate.pipeline.jobs.recommend import folded, granted, recommend
from amqpgate.pipeline.jobs.replay import changes, replay, summary, undecided
from amqpgate.pipeline.jobs.report import Wanted, report
from amqpgate.pipeline.jobs.report_costs import Charge
from amqpgate.pipeline.jobs.report_parts import ReportTable
from amqpgate.pipeline.jobs.topology import declarations, topology, traffic
from amqpgate.pipeline.jobs.usage import usage_by
from amqpgate.pipeline.local_frames import SqlSession
from amqpgate.policy import Source
from amqpgate.records import Event, Record, Sort, Usage, arrow_schema
from tests.support.audit_records import START, Traffic, event, frame_of, lines, usage, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY = timedelta(days=1)
SORTS: tuple[Sort, ...] = ("usage", "events")
ZONE = "spark.sql.session.timeZone"
DAYS = 30
LAST = START + (DAYS - 1) * DAY
POLICY = Source(
    "orders.yaml",
    b"""
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: orders}
spec:
  subjects: [{user: service-0}]
  rules:
    - id: publish
      effect: allow
      operations: [basic.publish]
      exchange: orders
      routingKey: {topic: "order.#"}
""",
)

PRICES = parse(
    "currency: EUR\nperMillionMessages: 3.3\nperGigabyte: 0.07\nperConnectionHour: 0.013\n"
    "groups: {first: [service-0], others: ['service-*']}"
)

#: Names and values that engines might take otherwise.
ODD_USAGE = [
    usage("odd-1", START, 3, user=None),
    usage("odd-2", START, 3, exchange="", routing_key="queue-9f8a6f1e-3a52-4a44-9d40-2d3b7a3c9f10"),
    usage("odd-3", LAST, 4, user='O\'Brien "x"\\', exchange="ex.\u202e\u00e9\u4e2d", routing_key="a.1.b"),
    usage("odd-4", LAST, 5, user="late", operation="basic.deliver", verdict=None, queue="amq.gen-x1"),
    usage("odd-5", LAST, 0, requests=2, operation="basic.qos", verdict="allow", arguments='{"global": true}'),
    usage("odd-6", LAST, 0, operation="queue.declare", queue="q", arguments='{"x-max-length": 5}'),
    usage("odd-8", LAST, 2, exchange="copied", routing_key="a", more_keys='["b.1","b.2","\\u00e9 \\"x\\""]'),
    usage("odd-9", LAST, 2, exchange="copied", routing_key="a", more_keys='["b.3",null]'),
    usage(
        "odd-7",
        LAST,
        9,
        user="service-0",
        operation="basic.publish",
        exchange="orders",
        routing_key="order.9",
        bytes=10**15,
    ),
]
ODD_EVENTS = [
    event("odd-a", "topology", LAST, operation="queue.declare", queue="q", vhost="/", detail="{cut",
          arguments='{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": null}'),
    event("odd-b", "topology", LAST, operation="exchange.declare", exchange="e", vhost="/",
          detail='{"type": "topic", "durable": true}', arguments='{"alternate-exchange": "other"}'),
    event("odd-c", "denied", LAST, user=None, policy=None, rule=None, operation="queue.declare", queue=None),
    event("odd-d", "shadow", LAST, user="a", policy="p", rule="r", operation="basic.publish"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month, with what is odd as JSON beside Parquet."""
    made = tmp_path_factory.mktemp("audit")
    month = Traffic(services=4, sessions=1, keys=4)
    write(made, "usage", month.usage(6_000, span=DAYS * DAY), per_file=2_000)
    events = [attrs.asdict(one) for one in month.events(DAYS)]
    write(made, "events", pyarrow.Table.from_pylist(events, arrow_schema(Event)), per_file=500)
    odd = [*lines("usage", ODD_USAGE), *lines("events", ODD_EVENTS)]
    (made / "odd.jsonl").write_text("\n".join(odd), encoding="utf-8")
    return made


def sorted_rows(rows: Iterator[dict[str, object]]) -> list[str]:
    return sorted(json.dumps({name: _plain(value) for name, value in row.items()}) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, Decimal):
        return str(value)
    return f"{value:.9g}" if isinstance(value, float) else value


FRAMES: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "usage per minute": lambda usage, _: usage_by(usage, "minute"),
    "usage per day": lambda usage, _: usage_by(usage, "day"),
    "usage per day in Kathmandu": lambda usage, _: usage_by(usage, "day", "Asia/Kathmandu"),
    "usage per month in New York": lambda usage, _: usage_by(usage, "month", "America/New_York"),
    "costs": lambda usage, events: costs(usage, events, PRICES),
    "costs by groups and local days": lambda usage, events: costs(
        usage, events, PRICES, "day", "Europe/Berlin", ["group"], Span(since=LAST)
    ),
    "denials": lambda _, events: denials(events),
    "shadow": lambda _, events: denials(events, "shadow"),
    "traffic": lambda usage, _: traffic(usage),
    "declarations": lambda _, events: declarations(events),
    "anomalies": lambda usage, _: anomalies(usage, LAST, LAST + DAY),
    "uses": lambda usage, _: folded(usage),
    "granted": lambda usage, _: granted(usage, [POLICY]),
    "replay": lambda usage, _: replay(usage, [POLICY], default_access="deny"),
    "replay against": lambda usage, _: replay(usage, [POLICY], []),
    "changes": lambda usage, _: changes(replay(usage, [POLICY], default_access="deny")),
    "undecided": lambda usage, _: undecided(replay(usage, [POLICY])),
    "summary": lambda usage, _: summary(replay(usage, [POLICY], default_access="deny")),
}


@pytest.fixture(scope="module")
def ducks(duck: SqlSession, folder: Path) -> list[DataFrame]:
    """The month's usage and events, on DuckDB."""
    with engine("local"):
        return [local_reading.read(duck, str(folder), sort).frame for sort in SORTS]


@pytest.fixture(scope="module")
def sparks(spark: SparkSession, folder: Path) -> Callable[[str], list[DataFrame]]:
    """The same on Spark, as read in a session of this time zone."""
    return cache(lambda zone: [reading.read(spark, str(folder), sort).frame for sort in SORTS])


@pytest.fixture(scope="module")
def answers(ducks: list[DataFrame]) -> Callable[[str], list[str]]:
    """By verb what DuckDB answers."""

    def answer(verb: str) -> list[str]:
        with engine("local"):
            return sorted_rows(rows_of(FRAMES[verb](*ducks)))

    return cache(answer)


@pytest.mark.parametrize("verb", FRAMES)
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_both_engines_have_the_same_rows_in_any_time_zone_of_a_session(
    verb: str,
    zone: str,
    spark: SparkSession,
    sparks: Callable[[str], list[DataFrame]],
    answers: Callable[[str], list[str]],
) -> None:
    spark.conf.set(ZONE, zone)
    try:
        found = sorted_rows(rows_of(FRAMES[verb](*sparks(zone))))
    finally:
        spark.conf.set(ZONE, "UTC")
    assert found or verb in ("granted", "undecided")
    assert answers(verb) == found


def test_what_comes_to_this_process_is_the_same(
    sparks: Callable[[str], list[DataFrame]], ducks: list[DataFrame]
) -> None:
    def answers(usage: DataFrame, events: DataFrame) -> list[object]:
        graph = topology(usage, events)
        made = recommend(usage)
        page = report(
            usage, events, Wanted(candidate=[POLICY], charge=Charge(prices=PRICES, connections=events))
        )
        tables = [
            part for section in page.sections for part in section.parts if isinstance(part, ReportTable)
        ]
        return [
            sorted(map(repr, graph.edges)),
            sorted(map(repr, graph.declared)),
            made.files,
            made.notes,
            sorted(map(repr, seen(usage, events).requests)),
            page.facts,
            [(table.title, sorted(map(repr, table.rows)), table.more) for table in tables],
        ]

    expected = answers(*sparks("UTC"))
    with engine("local"):
        found = answers(*ducks)
    assert found == expected


@pytest.mark.parametrize("sort", ["usage", "events"])
def test_both_read_the_same_and_leave_out_the_same(
    sort: Sort, spark: SparkSession, duck: SqlSession, tmp_path: Path
) -> None:
    month = Traffic(services=2, sessions=1, keys=2)
    write(tmp_path, "usage", month.usage(100), per_file=40)
    whole = next(tmp_path.glob("usage/*/*.parquet"))
    (whole.parent / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (whole.parent / "_unfinished.parquet").write_bytes(b"")
    records: list[Record] = [*ODD_USAGE]
    text = [
        *lines("usage", records),
        *lines("events", ODD_EVENTS),
        "",
        "{}",
        "no json",
        '{"record": "usage"}',
    ]
    (tmp_path / "some.json").write_text("\n".join(text), encoding="utf-8")
    expected = reading.read(spark, str(tmp_path), sort)
    spans = [reading.Span(since=LAST), reading.Span(until=LAST), reading.Span(vhost="shop")]
    narrow = [sorted_rows(rows_of(reading.read(spark, str(tmp_path), sort, span).frame)) for span in spans]
    with engine("local"):
        found = local_reading.read(duck, str(tmp_path), sort)
        assert [
            sorted_rows(rows_of(local_reading.read(duck, str(tmp_path), sort, span).frame)) for span in spans
        ] == narrow
    assert (found.files, found.records) == (expected.files, expected.records)
    assert sorted(map(repr, found.skipped)) == sorted(map(repr, expected.skipped))


def test_frames_of_other_values_are_not_mixed_up(spark: SparkSession, duck: SqlSession) -> None:
    """The check above would see it if the engines differed."""
    one, other = ([usage("1", START, count)] for count in (1, 2))
    expected = sorted_rows(rows_of(usage_by(frame_of(spark, "usage", one), "day")))
    table = pyarrow.Table.from_pylist([attrs.asdict(record) for record in other], arrow_schema(Usage))
    with engine("local"):
        assert sorted_rows(rows_of(usage_by(local.frame_of(duck, table), "day"))) != expected


def test_size_and_options_choose_the_engine(tmp_path: Path) -> None:
    (tmp_path / "records.json").write_text("{}")
    assert choose(str(tmp_path), "auto") == "local"
    assert choose(f"file://{tmp_path}", "auto") == "local"
    assert choose(str(tmp_path), "auto", is_sparks=True) == "spark"
    assert choose(str(tmp_path), "spark") == "spark"
    assert choose("s3a://bucket/audit", "auto") == "spark"
    assert not is_long(str(tmp_path))
    assert not is_long("s3a://bucket/audit")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(MOST_LOCAL)
    assert is_long(str(tmp_path))
    assert choose(str(tmp_path), "auto") == "spark"
    assert choose(str(tmp_path), "local") == "local"


def test_a_few_days_of_a_large_folder_are_few(tmp_path: Path) -> None:
    for sort in ("events", "usage"):
        for day in ("2026-11-02", "2026-11-20"):
            (tmp_path / sort / f"date={day}").mkdir(parents=True)
            with (tmp_path / sort / f"date={day}" / "a-000001.parquet").open("wb") as file:
                file.truncate(MOST_LOCAL // 2 if day == "2026-11-02" else 1)
    later, all_ = Span(since=START + timedelta(days=5)), Span(vhost="shop")
    assert choose(str(tmp_path), "auto") == "spark"
    assert choose(str(tmp_path), "auto", span=lambda: all_) == "spark"
    assert choose(str(tmp_path), "auto", span=lambda: later) == "local"
    assert is_long(str(tmp_path), lambda: all_)
    assert not is_long(str(tmp_path), lambda: later)


@pytest.mark.parametrize(
    ("place", "is_sparks", "why"),
    [
        ("nowhere", False, "no such file or folder"),
        ("s3a://b/c", False, "--engine spark"),
        ("", True, "--follow"),
    ],
)
def test_what_cannot_be_is_told_before_an_engine_starts(
    place: str, is_sparks: bool, why: str, tmp_path: Path
) -> None:
    folder = place if "://" in place else str(tmp_path / place)
    with pytest.raises(PipelineError, match=why):
        choose(folder, "local", is_sparks=is_sparks)
