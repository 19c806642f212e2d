"""Records of which any column that may be null is, or is missing: verbs answer what the other engine does,
and what SQL does that was written apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import attrs
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from amqpgate.pipeline import local_reading, reading
from amqpgate.pipeline.frames import engine, rows_of
from amqpgate.pipeline.jobs.preflight import seen
from amqpgate.pipeline.jobs.recommend import recommend
from amqpgate.pipeline.jobs.report import Wanted, report
from amqpgate.pipeline.jobs.report_page import page
from amqpgate.pipeline.local_frames import SqlSession
from amqpgate.records import TABLES, Event, Record, Sort, Usage
from tests.support.audit_oracle import Oracle
from tests.support.audit_records import START, event, lines, table_of, usage
from tests.unit.pipeline.test_engines import FRAMES, POLICY, sorted_rows
from tests.unit.pipeline.test_oracle import LAST, checks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAYS: Final = 3
#: What a column may have; all others have any text.
VALUES: Final[Mapping[str, tuple[object, ...]]] = {
    "user": ("alice", "service-0", "service-1", ""),
    "vhost": ("/", "shop", ""),
    "operation": ("basic.publish", "basic.deliver", "basic.get-ok", "basic.return", "basic.consume",
                  "queue.declare", "queue.delete", "exchange.declare", "basic.qos", "connection.open"),
    "exchange": ("orders", "", "amq.topic"),
    "routing_key": ("order.1", "", "a.b"),
    "queue": ("q", "orders-4711", ""),
    "verdict": ("allow", "deny"),
    "policy": ("orders", ""),
    "rule": ("publish", "default", ""),
    "arguments": ("{}", '{"x-max-length": 5}', "[1]", "{cut"),
    "detail": ("{}", '{"type": "topic", "durable": true}', '{"frame_max": 4096}', "null", "{cut"),
    "client": ('{"product": "pika"}', "{}", "5"),
    "more_keys": ("[]", '["b.1", null]', "{cut"),
    "amqp_version": ("0-8", "0-9-1", ""),
    "session": ("1", "2"),
    "outcome": ("closed", ""),
    "largest_body": (0, 5, 20 << 20, 2**62),
    "reply_code": (403, 0, -1),
    "body_size": (0, 2**62),
    "body": (b"", b"\0\xff"),
}  # fmt: skip
_KINDS: Final = ("session.open", "session.close", "denied", "shadow", "topology", "throttled")
_MOMENTS: Final = st.integers(0, DAYS * 8640 - 1).map(lambda number: START + number * timedelta(seconds=10))


def columns(sort: Sort) -> st.SearchStrategy[dict[str, Any]]:
    """Of those that may be null, what some have."""
    names = [field.name for field in attrs.fields(TABLES[sort]) if field.metadata["null"]]
    return st.fixed_dictionaries(
        {}, optional={name: st.sampled_from((None, *VALUES.get(name, ("", "x")))) for name in names}
    )


NOTHING: Final[dict[str, Any]] = {field.name: None for field in attrs.fields(Usage) if field.metadata["null"]}
USAGE = st.lists(
    st.builds(
        lambda at, count, some: (at, count, NOTHING | some), _MOMENTS, st.integers(0, 10**6), columns("usage")
    ),
    max_size=30,
).map(lambda rows: [usage(f"u-{n:03}", at, count, **some) for n, (at, count, some) in enumerate(rows)])
EVENTS = st.lists(st.tuples(_MOMENTS, st.sampled_from(_KINDS), columns("events")), max_size=20).map(
    lambda rows: [event(f"e-{n:03}", kind, at, **some) for n, (at, kind, some) in enumerate(rows)]
)


def written(folder: Path, records: Iterable[Record], others: Iterable[Record]) -> None:
    """Lines of JSON: what is null is null in every other one, and missing in the rest."""
    text = [*lines("usage", records), *lines("events", others)]
    text[::2] = [
        json.dumps({name: value for name, value in json.loads(line).items() if value is not None})
        for line in text[::2]
    ]
    (folder / "some.jsonl").write_text("\n".join(text), encoding="utf-8")


def read(session: Any, reader: Any, folder: str) -> list[DataFrame]:
    tables = [reader(session, folder, sort) for sort in ("usage", "events")]
    assert not [table.skipped for table in tables if table.skipped]
    return [table.frame for table in tables]


#: What SQL answers of any records; the rest is known of those of `Month` alone.
_ANY: Final = ("usage by minute", "denials")


# An example is a folder and some queries. Each has up to fifty records, and with them most of the values.
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(used=USAGE, events=EVENTS)
@example(used=[usage("u", START, **NOTHING)], events=[event("e", "denied", START)])
def test_what_is_null_changes_no_answer(duck: SqlSession, used: list[Usage], events: list[Event]) -> None:
    month: Any = SimpleNamespace(
        usage=table_of("usage", used), events=table_of("events", events), days=DAYS, end=START + DAYS * LAST
    )
    with TemporaryDirectory() as folder, engine("local"):
        written(Path(folder), used, events)
        frames = read(duck, local_reading.read, folder)
        found = {name: check(*frames) for name, check in checks(month, Oracle(month)).items() if name in _ANY}
    assert {name: some for name, some in found.items() if some} == {}


@settings(
    max_examples=8,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(used=USAGE, events=EVENTS)
@example(used=[usage("u", START, arguments="{cut", more_keys="{cut", client="5")], events=[])
def test_no_record_keeps_a_verb_from_its_answer(
    duck: SqlSession, used: list[Usage], events: list[Event]
) -> None:
    with TemporaryDirectory() as folder, engine("local"):
        written(Path(folder), used, events)
        frames = read(duck, local_reading.read, folder)
        for of in FRAMES.values():
            list(rows_of(of(*frames)))
        page(report(*frames, Wanted(candidate=[POLICY])), "")
        recommend(frames[0])
        seen(*frames)


# Of Spark an example takes a minute.
@pytest.mark.slow
@pytest.mark.timeout(3_600)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(used=USAGE, events=EVENTS)
def test_engines_agree_on_what_is_null(
    spark: SparkSession, duck: SqlSession, used: list[Usage], events: list[Event]
) -> None:
    with TemporaryDirectory() as folder:
        written(Path(folder), used, events)
        sparks = read(spark, reading.read, folder)
        with engine("local"):
            ducks = read(duck, local_reading.read, folder)
        for verb, of in FRAMES.items():
            expected = sorted_rows(rows_of(of(*sparks)))
            with engine("local"):
                assert sorted_rows(rows_of(of(*ducks))) == expected, verb
