"""Records as they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from amqpgate.pipeline.compact import add
from amqpgate.pipeline.compacted import locked
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.following import Skips, follow, skips, stream, stream_parts
from amqpgate.pipeline.jobs.usage import usage_by
from amqpgate.pipeline.reading import read
from tests.support.audit_records import START, event, frame_of, table_of, usage, write
from tests.support.inprocess import eventually

MINUTE = timedelta(minutes=1)


@pytest.fixture
def skipped(spark: SparkSession) -> Skips:
    return skips(spark)


def run(frame: DataFrame, checkpoint: Path) -> dict[int, list[tuple[object, ...]]]:
    """The rows of each batch, until nothing is left to do."""
    found: dict[int, list[tuple[object, ...]]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        if rows := [tuple(row) for row in batch.collect()]:
            found[number] = rows

    follow(frame, keep, str(checkpoint), None).awaitTermination()
    return found


def test_each_file_comes_once_across_restarts(spark: SparkSession, skipped: Skips, tmp_path: Path) -> None:
    raw, checkpoint = tmp_path / "raw", tmp_path / "checkpoint"
    for number in range(3):
        write(raw, "usage", table_of("usage", [usage(f"u{number}", START)]), gateway=f"gate-{number}")
        (rows,) = run(stream(spark, str(raw), "usage", skipped).select("record_id"), checkpoint).values()
        assert rows == [(f"u{number}",)]
    assert run(stream(spark, str(raw), "usage", skipped).select("record_id"), checkpoint) == {}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def damage(path: Path) -> None:
    """The last of its pages: a reader that goes on has most of the records by then."""
    content = bytearray(path.read_bytes())
    last = pq.read_metadata(path).row_group(2).column(0)
    start = (last.dictionary_page_offset or last.data_page_offset) + last.total_compressed_size // 2
    content[start : start + 40] = bytes(40)
    path.write_bytes(content)


def without_ids(path: Path) -> None:
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["record_id"]), path)


BROKEN = {
    cut: "is cut off or damaged",
    damage: "is damaged",
    without_ids: "lacks the columns record_id",
}


@pytest.mark.parametrize("breaking", BROKEN)
def test_a_file_that_is_broken_anywhere_is_named_and_left_out_as_a_whole(
    spark: SparkSession, skipped: Skips, tmp_path: Path, breaking: Callable[[Path], None]
) -> None:
    raw = tmp_path / "a b%20c"
    for name, ids in (("broken", range(3_000)), ("whole", range(3_000, 3_010))):
        (path,) = write(
            raw, "usage", table_of("usage", [usage(f"{one}", START) for one in ids]), gateway=name
        )
        pq.write_table(pq.read_table(path, partitioning=None), path, row_group_size=1_000)
    breaking(broken := raw / "usage" / "date=2026-11-02" / "broken-000001.parquet")
    frame = stream(spark, str(raw), "usage", skipped).groupBy().agg(F.sum("messages"), F.count("*"))
    found: list[tuple[object, ...]] = []
    options = {"checkpointLocation": str(tmp_path / "checkpoint")}
    query = frame.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query.outputMode("complete").options(**options).trigger(availableNow=True).start().awaitTermination()
    assert [tuple(row) for row in found] == [(10, 10)]
    (found_broken,) = set(skipped.value)
    assert found_broken.path == f"file://{broken}"
    assert found_broken.why.startswith(BROKEN[breaking])


def test_records_of_a_later_version_end_it(spark: SparkSession, skipped: Skips, tmp_path: Path) -> None:
    write(tmp_path / "raw", "usage", table_of("usage", [usage("u", START, schema_version=2)]))
    with pytest.raises(StreamingQueryException, match=r"records of schema version 2 in file:.*parquet; this"):
        run(stream(spark, str(tmp_path / "raw"), "usage", skipped), tmp_path / "checkpoint")


def test_a_folder_that_is_not_there_is_named(spark: SparkSession, skipped: Skips, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="has no folder usage that can be followed"):
        stream(spark, str(tmp_path), "usage", skipped)


def test_a_table_grows_with_what_comes(spark: SparkSession, skipped: Skips, tmp_path: Path) -> None:
    raw, table = tmp_path / "raw", tmp_path / "table"

    def add_batch(batch: DataFrame, _number: int) -> None:
        add(batch, table, "usage")

    with locked(table):
        for number in range(2):
            # u-0 comes again in the second file.
            records = [usage(f"u-{each}", START) for each in range(number + 1)]
            write(raw, "usage", table_of("usage", records), gateway=f"gate-{number}")
            parts = stream_parts(spark, str(raw), "usage", skipped)
            query = follow(parts, add_batch, str(tmp_path / "checkpoint"), None)
            query.awaitTermination()
    rows = read(spark, str(table), "usage").frame.select("record_id").collect()
    assert sorted(row.record_id for row in rows) == ["u-0", "u-1"]


def test_a_signal_for_the_whole_group_ends_it_quietly(tmp_path: Path) -> None:
    """As service managers send it: Spark's own process gets it, too."""
    write(tmp_path / "raw", "usage", table_of("usage", [usage("u", START)]))
    write(tmp_path / "raw", "events", table_of("events", [event("e", "admin", START)]))
    verb = [sys.executable, "-m", "amqpgate", "audit", "compact", str(tmp_path / "raw"), str(tmp_path / "t")]
    with subprocess.Popen(
        [*verb, "--follow", "--every", "0.2", "--engine", "spark"],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        eventually(
            lambda: any(tmp_path.glob("t/usage/*/*/*.parquet")) or process.poll() is not None, timeout=120
        )
        os.killpg(process.pid, signal.SIGTERM)
        said, _ = process.communicate()
    assert (process.returncode, said) == (0, b"")


def test_usage_is_told_once_its_time_is_over(spark: SparkSession, skipped: Skips, tmp_path: Path) -> None:
    """As a batch job would, and late records within the watermark are in it."""
    raw, checkpoint = tmp_path / "raw", tmp_path / "checkpoint"
    batches = [
        [usage("1", START, 60), usage("2", START + 6 * MINUTE, 6)],
        [usage("3", START, 60, session="2"), usage("4", START + 90 * MINUTE, 1)],
        [usage("5", START, 1_000), usage("6", START + 300 * MINUTE, 1)],
    ]
    told: list[tuple[object, ...]] = []
    for number, records in enumerate(batches):
        write(raw, "usage", table_of("usage", records), gateway=f"gate-{number}")
        frame = stream(spark, str(raw), "usage", skipped).withWatermark("window_start", "10 minutes")
        told += [row for rows in run(usage_by(frame, "hour"), checkpoint).values() for row in rows]
    # Record 5 is later than the watermark, and record 6 is not told yet.
    on_time = [record for records in batches for record in records if record.record_id not in "56"]
    expected = [tuple(row) for row in usage_by(frame_of(spark, "usage", on_time), "hour").collect()]
    assert sorted(told, key=str) == sorted(expected, key=str)
