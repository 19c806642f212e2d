"""Frames of the local engine: what the comparison of both engines does not meet in its records."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpgate.pipeline import local
from amqpgate.pipeline import local_functions as F
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.local_columns import Window
from amqpgate.pipeline.local_frames import SqlFrame, SqlSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ODD = ["O'Brien", 'a "b" c', "nul\0within", "\0", "", "\\", "-- ;", "\u202e\u4e2d", "{0} $1 %s ?"]


def texts(duck: SqlSession, values: list[str | None]) -> SqlFrame:
    return duck.createDataFrame([(value,) for value in values], "name string")


def values(frame: SqlFrame) -> list[object]:
    return [row[0] for row in frame.collect()]


@pytest.mark.parametrize("text", ODD)
def test_values_come_back_as_they_are_and_find_themselves(text: str, duck: SqlSession) -> None:
    frame = texts(duck, [text, "other"])
    assert values(frame) == [text, "other"]
    assert values(frame.where(F.col("name") == text)) == [text]
    assert values(frame.where(F.col("name").eqNullSafe(F.lit(text)))) == [text]


@pytest.mark.parametrize("name", ['a"b', "O'Brien", "all", "select", "\u4e2d", "a b"])
def test_names_of_columns_are_no_sql(name: str, duck: SqlSession) -> None:
    frame = texts(duck, ["x"]).withColumnsRenamed({"name": name}).withColumn("more", F.lit(1))
    assert frame.columns == [name, "more"]
    assert frame.orderBy(name).limit(1).drop("more").collect()[0][name] == "x"


def test_null_comes_first_where_it_rises_and_last_where_it_falls(duck: SqlSession) -> None:
    frame = texts(duck, ["b", None, "a"])
    assert values(frame.orderBy("name")) == [None, "a", "b"]
    assert values(frame.orderBy(F.desc("name"))) == ["b", "a", None]
    assert values(frame.orderBy(F.desc_nulls_first("name"))) == [None, "b", "a"]


def test_the_first_rows_are_those_of_the_order_and_keep_it(duck: SqlSession) -> None:
    frame = duck.range(50_000).orderBy(F.desc("id")).limit(3)
    assert values(frame.withColumn("more", F.col("id") + 1)) == [49_999, 49_998, 49_997]
    assert (frame.count(), frame.isEmpty(), frame.limit(0).isEmpty()) == (3, False, True)


def test_what_is_summed_up_and_used_twice_is_computed_once(duck: SqlSession) -> None:
    summed = duck.range(10).groupBy((F.col("id") % 2).alias("odd")).agg(F.sum("id").alias("sum"))
    both = summed.where(F.col("odd") == 0).union(summed.where(F.col("odd") == 1))
    assert both.sql().count("AS MATERIALIZED") == 1
    assert sorted((row.odd, row.sum) for row in both.collect()) == [(0, 20), (1, 25)]
    scanned = duck.range(10)
    assert " AS MATERIALIZED" not in scanned.union(scanned).sql()


def test_columns_that_are_replaced_do_not_see_each_other(duck: SqlSession) -> None:
    (row,) = duck.range(1).withColumns({"id": F.col("id") + 5, "more": F.col("id") + 1}).collect()
    assert (row.id, row["more"], row[1]) == (5, 1, 1)
    with pytest.raises(AttributeError):
        _ = row.other


@pytest.mark.parametrize("seconds", [0, 1, -1, 253_402_300_799])
@pytest.mark.parametrize("micros", [0, 1, 999_999])
def test_seconds_are_whole_and_those_below(seconds: int, micros: int, duck: SqlSession) -> None:
    time = F.call_function("make_timestamptz", F.lit(seconds * 1_000_000 + micros).cast("bigint"))
    frame = duck.range(1).select(
        F.unix_seconds(time).alias("seconds"), F.timestamp_seconds(F.unix_seconds(time)).alias("time")
    )
    assert frame.collect()[0].seconds == seconds
    assert local.times_of(frame) == ("time",)  # type: ignore[arg-type]


def test_joins_keep_and_leave_out_what_spark_does(duck: SqlSession) -> None:
    left, right = texts(duck, ["a", "b", None]), texts(duck, ["a", None]).withColumn("more", F.lit(7))
    assert values(left.join(right, ["name"])) == ["a"]
    assert values(left.join(right, ["name"], "left_semi")) == ["a"]
    assert sorted(map(str, values(left.join(right, ["name"], "left_anti")))) == ["None", "b"]
    assert {(row.name, row.more) for row in left.join(right, ["name"], "left").collect()} == {
        ("a", 7),
        ("b", None),
        (None, None),
    }


def test_lists_have_no_null_and_begin_with_0(duck: SqlSession) -> None:
    every = F.collect_list("name")
    frame = texts(duck, ["b", None, "a"]).agg(
        F.sort_array(every).alias("all"),
        F.get(F.sort_array(every), F.lit(0)).alias("first"),
        F.get(every, F.lit(9)).alias("none"),
        F.size(F.transform(every, lambda one: F.concat(one, F.lit("!")))).alias("many"),
    )
    (row,) = frame.collect()
    assert (row.all, row.first, row.none, row.many) == (["a", "b"], "a", None, 2)
    (row,) = texts(duck, []).agg(F.collect_list("name").alias("all")).collect()
    assert row.all == []


def test_places_are_counted_within_a_window(duck: SqlSession) -> None:
    place = F.row_number().over(Window.partitionBy(F.col("id") % 2).orderBy(F.desc("id")))
    frame = duck.range(4).withColumn("place", place)
    assert sorted((row.id, row.place) for row in frame.collect()) == [(0, 2), (1, 2), (2, 1), (3, 1)]


def test_values_that_no_plan_has_are_refused() -> None:
    with pytest.raises(TypeError, match="no value of a plan"):
        F.lit(object())


def test_moments_are_those_of_any_time_zone(duck: SqlSession) -> None:
    moment = datetime(2026, 11, 29, 23, 59, 59, 999_999, UTC)
    assert values(duck.range(1).select(F.lit(moment).alias("time"))) == [moment]


def test_rows_come_some_at_a_time_while_others_are_asked_for(duck: SqlSession) -> None:
    """There may be millions: usage by the hour has one for each hour and user."""
    rows = local.rows_of(cast("DataFrame", duck.range(3_000_000)))
    before = pa.total_allocated_bytes()
    assert next(rows) == {"id": 0}
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert values(duck.range(2)) == [0, 1]
    assert next(rows) == {"id": 1}


def test_who_needs_more_memory_than_there_is_hears_of_the_other_engine() -> None:
    session = local.start()
    session.connection.execute("SET memory_limit = '10 MB'")
    with pytest.raises(PipelineError, match="use --engine spark"), local.explained():
        session.connection.execute("SELECT list(range) FROM range(10000000)").fetchall()
    session.stop()


def test_nothing_stays_of_what_was_read_from_files(duck: SqlSession, tmp_path: Path) -> None:
    """Of each small file it would be tens of KiB."""
    pq.write_table(pa.table({"user": ["a"]}), tmp_path / "a.parquet")
    schema = pa.schema([("user", pa.string())])
    frame = local.files_of(duck, [(f"{tmp_path}/a.parquet", frozenset(schema.names))], schema)
    assert values(cast("SqlFrame", frame)) == ["a"]
    kept = duck.connection.execute(
        "SELECT tag FROM duckdb_memory() WHERE tag = 'EXTERNAL_FILE_CACHE' AND memory_usage_bytes > 0"
    )
    assert kept.fetchall() == []


def test_memory_is_bounded_and_the_rest_is_where_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settings() -> tuple[str, str]:
        session = local.start()
        sql = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
        found: tuple[str, str] = session.connection.execute(sql).fetchall()[0]
        session.stop()
        return found

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(local, "MOST_MEMORY", "1 GiB")
    most, folder = settings()
    assert (most, Path(folder).parent) == ("1.0 GiB", tmp_path)
    # DuckDB takes less by itself where there is less.
    monkeypatch.setattr(local, "MOST_MEMORY", "1000000 GiB")
    most, other = settings()
    assert local._gibibytes(most) < 1_000_000
    assert folder != other


def test_many_small_batches_are_few_to_duckdb(duck: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a statement: 100,000 files of lines would take a quarter of an hour."""
    parts = [pa.record_batch({"x": pa.array([number], pa.int64())}) for number in range(100)]
    seen: list[int] = []
    real = local.together

    def noted(batches: Iterable[pa.RecordBatch], enough: int, most: int) -> Iterator[pa.Table]:
        for table in real(batches, 40 * 8, most):
            seen.append(len(table))
            yield table

    monkeypatch.setattr(local, "together", noted)
    frame = local.frame_of_batches(duck, parts[0].schema, iter(parts))
    assert sorted(row["x"] for row in local.rows_of(frame)) == [*range(100)]
    assert seen == [32, 32, 32, 4]
    monkeypatch.setattr(local, "_MOST", 1_000)
    local.frame_of_batches(duck, parts[0].schema, iter(parts))
    assert seen[4:] == [40, 40, 20]
