"""Folders of records, whole and broken, as data frames."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.testing import assertDataFrameEqual

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.json_lines import LinesSeen, read_lines
from amqpgate.pipeline.reading import Span, read, schema
from amqpgate.records import TABLES, Sort, Usage, later_last
from tests.support.audit_records import START, Traffic, event, frame_of, lines, table_of, usage, write

DAY = timedelta(days=1)


def ids(frame: DataFrame) -> list[str]:
    return sorted(row.record_id for row in frame.select("record_id").collect())


def test_the_schema_is_that_of_the_records() -> None:
    types = {field.name: field.dataType for field in schema("usage")}
    assert list(types)[:3] == ["record_id", "schema_version", "gateway"]
    assert types["window_start"] == T.TimestampType()
    assert types["messages"] == T.LongType()
    assert types["passive"] == T.BooleanType()
    assert {field.name: field.dataType for field in schema("events")}["body"] == T.BinaryType()


def test_what_was_written_is_read(spark: SparkSession, tmp_path: Path) -> None:
    written = Traffic(services=3).usage(300)
    write(tmp_path, "usage", written, per_file=100)
    table = read(spark, str(tmp_path), "usage")
    assert (table.files, table.records, table.skipped) == (3, 300, ())
    expected = spark.createDataFrame(written.to_pandas(), schema("usage"))
    assertDataFrameEqual(table.frame, expected)


@attrs.frozen(kw_only=True, field_transformer=later_last)
class WithTenant(Usage):
    """Usage as a later amqpgate has it."""

    tenant: str | None = attrs.field(
        default=None, metadata={"kind": "string", "doc": "of the user", "null": True, "later": True}
    )


def test_a_column_that_came_later_is_null_in_older_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "usage", table_of("usage", [usage("old", START)]))
    (tmp_path / "old").write_text("\n".join(lines("usage", [usage("line", START)])))
    monkeypatch.setitem(TABLES, "usage", WithTenant)  # type: ignore[arg-type]
    new = WithTenant(**attrs.asdict(usage("new", START)), tenant="t")
    write(tmp_path, "usage", table_of("usage", [new]), gateway="gate-1")
    frame = read(spark, str(tmp_path), "usage").frame
    assert frame.columns[-1] == "tenant"
    found = {row.record_id: row.tenant for row in frame.select("record_id", "tenant").collect()}
    assert found == {"old": None, "new": "t"}
    (line,) = read_lines(str(tmp_path / "old"), "usage", LinesSeen())
    assert line["tenant"].to_pylist() == [None]


def test_json_lines_are_the_same_records(spark: SparkSession, tmp_path: Path) -> None:
    records = {
        "usage": [usage("u1", START, 7, routing_key="a.b"), usage("u2", START)],
        "events": [
            event("e1", "message", START + timedelta(microseconds=1), body=b"\x00\xff", user="a\u2028b")
        ],
    }
    text = "\n".join(line for sort, some in records.items() for line in lines(sort, some))
    (tmp_path / "pod.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    for sort, some in records.items():
        table = read(spark, str(tmp_path), sort)
        assert (table.files, table.records, table.skipped) == (1, len(some), ())
        assertDataFrameEqual(table.frame, frame_of(spark, sort, some))
    assert ids(read(spark, str(tmp_path / "pod.jsonl.gz"), "usage").frame) == ["u1", "u2"]


def test_parquet_and_json_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "usage", table_of("usage", [usage("u1", START)]))
    (tmp_path / "more.json").write_text("\n".join(lines("usage", [usage("u2", START)])))
    assert ids(read(spark, str(tmp_path), "usage").frame) == ["u1", "u2"]


def test_a_span_is_from_until_and_one_virtual_host(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        usage("before", START - timedelta(microseconds=1)),
        usage("first", START),
        usage("other", START, vhost="shop"),
        usage("last", START + DAY - timedelta(microseconds=1)),
        usage("after", START + DAY),
    ]
    # The first file began the evening before, and goes on into the span.
    write(tmp_path, "usage", table_of("usage", records), per_file=2)
    write(tmp_path, "usage", table_of("usage", [usage("old", START - 9 * DAY)]), gateway="gate-1")
    table = read(spark, str(tmp_path), "usage", Span(since=START, until=START + DAY, vhost="/"))
    assert ids(table.frame) == ["first", "last"]
    assert table.files == 3


@pytest.mark.parametrize("sort", ["events", "usage"])
def test_a_day_without_records_is_an_empty_table(spark: SparkSession, tmp_path: Path, sort: Sort) -> None:
    write(tmp_path, "usage", table_of("usage", [usage("u1", START)]))
    table = read(spark, str(tmp_path), sort, Span(since=datetime(2027, 1, 1, tzinfo=UTC)))
    assert (table.files, table.records, table.skipped) == (0, 0, ())
    assert table.frame.schema == schema(sort)
    assert table.frame.isEmpty()


def test_a_wrong_path_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none: no such file or folder$"):
        read(spark, str(tmp_path / "none"), "usage")


def test_a_folder_without_records_says_what_was_expected(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(PipelineError, match="has no audit records: neither"):
        read(spark, str(tmp_path), "usage")


def test_names_are_taken_by_their_letters(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20[c]{d}*é"
    write(folder, "usage", table_of("usage", [usage("u1", START)]), gateway="gate 1%")
    write(tmp_path / "a b%20c", "usage", table_of("usage", [usage("u2", START)]))
    assert ids(read(spark, str(folder), "usage").frame) == ["u1"]


def test_files_that_are_being_written_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (path,) = write(tmp_path, "usage", table_of("usage", [usage("u1", START)]))
    path.with_name(f"_{path.name}").write_bytes(path.read_bytes()[:100])
    table = read(spark, str(tmp_path), "usage")
    assert (ids(table.frame), table.skipped) == (["u1"], ())


@pytest.mark.parametrize("kept", [0, 3, 300, -1])
def test_a_file_that_is_cut_off_is_named_and_the_rest_is_read(
    spark: SparkSession, tmp_path: Path, kept: int
) -> None:
    broken, *_ = write(tmp_path, "usage", Traffic(services=3).usage(300), per_file=100)
    broken.write_bytes(broken.read_bytes()[:kept])
    table = read(spark, str(tmp_path), "usage")
    assert (table.files, table.records, table.frame.count()) == (2, 200, 200)
    (skipped,) = table.skipped
    assert skipped.path == f"file://{broken}"
    assert skipped.why == "is cut off or damaged"


def test_when_all_are_cut_off_nothing_is_left(spark: SparkSession, tmp_path: Path) -> None:
    (path,) = write(tmp_path, "usage", table_of("usage", [usage("u1", START)]))
    path.write_bytes(b"PAR1")
    table = read(spark, str(tmp_path), "usage")
    assert (table.files, len(table.skipped), table.frame.count()) == (0, 1, 0)


def test_parquet_of_others_is_named(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "usage", table_of("usage", [usage("u1", START)]))
    pq.write_table(pa.table({"a": [1]}), tmp_path / "usage" / "other.parquet")
    table = read(spark, str(tmp_path), "usage")
    assert ids(table.frame) == ["u1"]
    assert [skipped.why for skipped in table.skipped] == ["has no audit records"]


def test_lines_that_are_no_records_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    whole, other = lines("usage", [usage("u1", START), usage("u2", START)])
    (event_line,) = lines("events", [event("e1", "admin", START)])
    wrong = other.replace('"messages": 1', '"messages": "many"')
    timeless = other.replace('"window_start"', '"window_stop"')
    text = [whole, other[:200], '{"level": "info"}', event_line, "hello", wrong, timeless, ""]
    (tmp_path / "pod.json").write_text("\n".join(text))
    table = read(spark, str(tmp_path), "usage")
    assert (ids(table.frame), table.records) == (["u1"], 1)
    assert [skipped.why for skipped in table.skipped] == ["5 lines are no audit records, the first is line 2"]
    assert table.frame.filter("messages = 1").count() == 1


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_records_of_a_later_version_are_refused(spark: SparkSession, tmp_path: Path, form: str) -> None:
    write(tmp_path, "usage", table_of("usage", [usage("u1", START)]))
    later = [usage("u2", START, schema_version=2), usage("u3", START)]
    files = 2 if form == "parquet" else 1
    if form == "parquet":
        (path,) = write(tmp_path, "usage", table_of("usage", later), gateway="gate-1")
    else:
        path = tmp_path / "later.json"
        path.write_text("\n".join(lines("usage", later)))
    with pytest.raises(PipelineError) as raised:
        read(spark, str(tmp_path), "usage")
    assert str(raised.value) == (
        f"file://{path} has records of schema version 2 (1 of {files} files have later ones than 1, "
        "which is all that this amqpgate reads): use a later amqpgate"
    )


def test_a_later_column_of_the_same_version_is_ignored(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of("usage", [usage("u1", START)])
    write(tmp_path, "usage", table.append_column("weather", pa.array(["fine"])))
    write(tmp_path, "usage", table.drop_columns(["more_keys"]), gateway="gate-1")
    assert read(spark, str(tmp_path), "usage").frame.schema == schema("usage")
    assert read(spark, str(tmp_path), "usage").frame.count() == 2
