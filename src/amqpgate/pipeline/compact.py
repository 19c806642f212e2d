"""Raw records into a compacted table, with Spark: its tasks move parts, and merge those of a place.

`local_compact` does it in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.compacted import exchange, locked, merge_into, note, read_before, workplace
from amqpgate.pipeline.folders import Compacted, RecordSource, RecordTable, refuse_overlap
from amqpgate.pipeline.parts import PACKED, pack, pack_files, unpack
from amqpgate.pipeline.reading import literal, read, schema
from amqpgate.pipeline.spark import explained
from amqpgate.records import TABLES, Sort

#: So many files, of 50,000 records at most, are read by one task.
_FILES_OF_A_TASK: Final = 8


def compact(spark: SparkSession, source: str | RecordSource, table: Path) -> list[Compacted]:
    """Add to the table what is new in a folder of raw records.

    Parquet files are read once, for they never change; files of JSON lines each time. The table is a folder
    that this process and all of Spark's see. Raises ``PipelineError``.
    """
    refuse_overlap(source, table)
    with locked(table):
        return [_compact(spark, source, table, sort) for sort in TABLES]


def _compact(spark: SparkSession, source: str | RecordSource, table: Path, sort: Sort) -> Compacted:
    new = read(spark, source, sort, leave_out=read_before(table, sort))
    gains = add(parts_of(new), table, sort) if new.files else {}
    note(table, sort, new.paths)
    return Compacted(
        sort=sort, files=new.files, changed=len(gains), records=sum(gains.values()), skipped=new.skipped
    )


def add(parts: DataFrame, table: Path, sort: Sort) -> dict[str, int]:
    """Merge parts into the table: how many records it has more, by folder that changed.

    What is there already changes nothing. To be called with the table ``locked``.
    """
    workplace(table, sort)
    with explained(f"compacting the {sort}"):
        places = [row.place for row in merged(parts, table.absolute(), sort).collect()]
    return exchange(table, sort, places)


def parts_of(new: RecordTable) -> DataFrame:
    """What was found, in parts."""
    sort, spark = new.sort, new.frame.sparkSession
    # Spark would read them row by row.
    here = [(path,) for path in new.paths if path.startswith("file:")]
    there = [path for path in new.paths if not path.startswith("file:")]
    parts = [spark.createDataFrame([], PACKED)]
    if here:
        files = spark.createDataFrame(here, "path string").repartition(1 + len(here) // _FILES_OF_A_TASK)
        parts.append(files.mapInArrow(partial(pack_files, sort=sort), PACKED))
    if there:
        parts.append(packed(spark.read.schema(schema(sort)).parquet(*map(literal, there)), sort))
    if new.lines is not None:
        parts.append(packed(new.lines, sort))
    return reduce(DataFrame.unionByName, parts)


def packed(records: DataFrame, sort: Sort) -> DataFrame:
    """Records as parts."""
    return records.mapInArrow(partial(pack, sort=sort), PACKED)


def merged(parts: DataFrame, table: Path, sort: Sort) -> DataFrame:
    """Each ``place`` of the parts; with a file for it in the workplace."""

    def merge_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place, new in unpack(batches, sort):
            merge_into(table, sort, place, new)
            yield pa.record_batch({"place": [place]})

    ordered = parts.repartition("place").sortWithinPartitions("place", "first")
    return ordered.mapInArrow(merge_all, "place string")
