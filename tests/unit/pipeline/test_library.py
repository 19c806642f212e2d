"""The jobs as functions, with the columns that they promise; and records as a data source of Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from amqpgate import pipeline
from amqpgate.pipeline.data_source import AuditSource
from amqpgate.pipeline.offsets import names_of, offset_of
from amqpgate.pipeline.reading import read
from amqpgate.pipeline.reading import schema as record_schema
from tests.support.audit_records import START, Traffic, event, lines, table_of, usage, write

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library")
    month = Traffic(services=2, sessions=1, keys=2)
    write(made, "usage", month.usage(600, span=6 * DAY), per_file=100)
    write(made, "events", table_of("events", month.events(2)))
    (made / "pod.jsonl").write_text("\n".join(lines("usage", [usage("line", START, vhost="shop")])))
    return made


def plain(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]


def test_answers_have_the_columns_that_are_promised(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR, perConnectionHour: 1}")
    records = pipeline.read(spark, folder)
    answers: dict[str, DataFrame] = {
        "usage": pipeline.usage(records.usage, "day"),
        "costs": pipeline.costs(records.usage, records.events, prices),
        "denials": pipeline.denials(records.events),
        "replay": pipeline.replay(records.usage, Path("policies")),
        "granted": pipeline.granted(records.usage, Path("policies")),
        "anomalies": pipeline.anomalies(records.usage, START + 5 * DAY, START + 6 * DAY),
        "traffic": pipeline.traffic(records.usage),
        "declarations": pipeline.declarations(records.events),
    }
    assert set(answers) == set(pipeline.SCHEMAS)
    for name, frame in answers.items():
        assert plain(frame.schema) == plain(StructType.fromDDL(pipeline.SCHEMAS[name])), name
    assert pipeline.topology(records.usage, records.events).edges
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pipeline.nothing  # noqa: B018


def test_a_data_source(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    pipeline.register(spark)
    found = spark.read.format("amqpgate").load(str(folder))
    assert plain(found.schema) == plain(record_schema("usage"))
    whole = read(spark, str(folder), "usage").frame
    assert sorted(found.collect(), key=str) == sorted(whole.collect(), key=str)
    wanted = (F.col("vhost") == "shop") & (F.col("window_start") >= F.lit(START + 4 * DAY))
    assert sorted(found.where(wanted).collect(), key=str) == sorted(whole.where(wanted).collect(), key=str)
    assert found.where(F.col("user").isNull()).count() == 0
    events = spark.read.format("amqpgate").option("table", "events").load(str(folder))
    assert events.count() == read(spark, str(folder), "events").records
    # A file that is damaged is named, or left out.
    write(tmp_path, "usage", table_of("usage", [usage("a", START)]), gateway="a")
    (cut,) = write(tmp_path, "usage", table_of("usage", [usage("b", START)]), gateway="b")
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(PySparkException, match=f"{cut} is cut off or damaged"):
        spark.read.format("amqpgate").load(str(tmp_path)).collect()
    skipping = spark.read.format("amqpgate").option("damaged", "skip").load(str(tmp_path))
    assert [row.record_id for row in skipping.collect()] == ["a"]


def test_days_and_equal_texts_choose_files() -> None:
    """Without Spark: what is pushed down, and what of it Spark judges again."""
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, IsNotNull, LessThan

    reader = AuditSource({"path": "/srv"}).reader(StructType())
    asked = [
        EqualTo(("vhost",), "shop"),
        EqualTo(("messages",), 3),
        IsNotNull(("user",)),
        GreaterThanOrEqual(("window_start",), START.replace(tzinfo=None)),
        LessThan(("window_start",), START + DAY),
    ]
    assert list(reader.pushFilters(asked)) == asked[1:]
    assert vars(reader)["_since"] == START - DAY
    assert vars(reader)["_until"] == START + 2 * DAY
    assert vars(reader)["_equal"] == {"vhost": "shop"}


def test_offsets() -> None:
    names = [f"usage/date=2026-11-02/gate-0-5eed-{number:06}.parquet" for number in (1, 2, 3, 7)]
    names += ["usage/date=2026-11-03/gate-1-b-1000000.parquet"]
    offset = offset_of(reversed(names))
    assert offset == {
        "usage/date=2026-11-02/gate-0-5eed-6": "1-3,7-7",
        "usage/date=2026-11-03/gate-1-b-7": "1000000-1000000",
    }
    assert sorted(names_of(offset)) == sorted(names)
    # What is too old is forgotten, and not read again.
    assert list(offset_of([*names, "usage/date=2026-12-03/g-000001.parquet"])) == [
        "usage/date=2026-11-03/gate-1-b-7",
        "usage/date=2026-12-03/g-6",
    ]


def test_a_stream_reads_each_file_once(spark: SparkSession, tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    pipeline.register(spark)

    def run() -> list[str]:
        stream = spark.readStream.format("amqpgate").option("damaged", "skip").load(str(raw))
        query = stream.select("record_id").writeStream.format("parquet")
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.start(str(out)).awaitTermination()
        return sorted(row.record_id for row in spark.read.parquet(str(out)).collect())

    write(raw, "usage", table_of("usage", [usage("b", START + DAY), usage("c", START)]), gateway="g")
    assert run() == ["b", "c"]
    # Later, but with a number and a day before.
    write(raw, "usage", table_of("usage", [usage("a", START)]), gateway="a")
    write(raw, "usage", table_of("usage", [usage("z", START - 40 * DAY)]), gateway="too-old")
    write(raw, "events", table_of("events", [event("e", "denied", START)]))
    assert run() == ["a", "b", "c"]
    assert run() == ["a", "b", "c"]
