"""Raw records as a table of few files: one per day, and of usage one per day and virtual host.

::

    TABLE/events/date=2026-11-22/records-00000007.parquet
    TABLE/usage/date=2026-11-22/vhost_key=orders/records-00000007.parquet

A file is replaced by one with the next number, and ``reading`` takes the highest of a folder. So its readers
have the old or the new one at every moment, also after a crash; and one that knows a file which is gone by
then is told, where it would read another under the same name in part. Each record is in the table once,
whatever is added how often. The day is that of the record, not of the file it came in.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Compacted, RecordSource, RecordTable, name_of, newest, refuse_overlap
from amqpgate.pipeline.parts import PACKED, merge, pack, pack_files, unpack
from amqpgate.pipeline.reading import literal, read, schema
from amqpgate.pipeline.spark import explained
from amqpgate.records import TABLES, Sort

#: Names that begin with ``_`` are no records to readers.
_UNFINISHED: Final = "_unfinished"
_LOCK: Final = "_lock"
_FILE: Final = "records-{:08}.parquet"
_FILES: Final = "records-????????.parquet"
#: Its name before it has its number.
_MADE: Final = "records.parquet"

#: So many files, of 50,000 records at most, are read by one task.
_FILES_OF_A_TASK: Final = 8


def compact(spark: SparkSession, source: str | RecordSource, table: Path) -> list[Compacted]:
    """Add to the table what is new in a folder of raw records.

    Parquet files are read once, for they never change; files of JSON lines each time. The table is a folder
    that this process and all of Spark's see. Raises ``PipelineError``.
    """
    if isinstance(source, str):
        refuse_overlap(source, table)
    with locked(table):
        return [_compact(spark, source, table, sort) for sort in TABLES]


def _compact(spark: SparkSession, source: str | RecordSource, table: Path, sort: Sort) -> Compacted:
    ledger = table / f"_{sort}.txt"
    known = set(ledger.read_text().splitlines()) if ledger.exists() else set()
    new = read(spark, source, sort, leave_out=known)
    changed, records = add(parts_of(new), table, sort) if new.files else (0, 0)
    if new.paths:
        # Only after its records are in the table: without this line they are read, and found there, again.
        _replace_text(ledger, "\n".join(sorted(known.union(map(name_of, new.paths)))) + "\n")
    return Compacted(sort=sort, files=new.files, changed=changed, records=records, skipped=new.skipped)


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Be the only one that changes the table, and clear away what another left when it crashed."""
    table.mkdir(parents=True, exist_ok=True)
    with (table / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"{table} is being compacted by another process") from None
        _clear(table)
        try:
            yield
        finally:
            _clear(table)


def add(parts: DataFrame, table: Path, sort: Sort) -> tuple[int, int]:
    """Merge parts into the table: how many of its files changed, and how many records it has more.

    What is there already changes nothing. To be called with the table ``locked``.
    """
    unfinished = table.absolute() / _UNFINISHED / sort
    shutil.rmtree(unfinished, ignore_errors=True)
    with explained(f"compacting the {sort}"):
        places = [row.place for row in merged(parts, table.absolute(), sort).collect()]
    gains = [_exchange(unfinished / place, table / sort / place) for place in places]
    return sum(gain > 0 for gain in gains), sum(gains)


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
    """Each ``place`` of the parts; with a file for it below ``_unfinished``."""

    def merge_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place, new in unpack(batches, sort):
            made = table / _UNFINISHED / sort / place / _MADE
            merge(new, _in_force(table / sort / place), sort, made)
            yield pa.record_batch({"place": [place]})

    ordered = parts.repartition("place").sortWithinPartitions("place", "first")
    return ordered.mapInArrow(merge_all, "place string")


def _exchange(part: Path, place: Path) -> int:
    """Put the file of a folder where the table has it; how many records it has more than that."""
    new, old = part / _MADE, _in_force(place)
    gain: int = pq.read_metadata(new).num_rows - (pq.read_metadata(old).num_rows if old else 0)
    assert gain >= 0, f"{place} would lose records"
    if gain:
        place.mkdir(parents=True, exist_ok=True)
        _sync(new)
        new.replace(place / _FILE.format(1 + (int(old.stem[-8:]) if old else 0)))
        _sync(place)
        if old:
            old.unlink()
    return gain


def _in_force(place: Path) -> Path | None:
    return max(place.glob(_FILES), default=None)


def _clear(table: Path) -> None:
    """What a crash has left."""
    shutil.rmtree(table / _UNFINISHED, ignore_errors=True)
    files = {str(path) for path in table.rglob(_FILES)}
    for replaced in files.difference(newest(files)):
        Path(replaced).unlink()


def _replace_text(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}~")
    unfinished.write_text(text)
    _sync(unfinished)
    unfinished.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """What was written there outlives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
