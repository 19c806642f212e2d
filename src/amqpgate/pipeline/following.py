"""Records as they come: Structured Streaming over a folder that gateways write to.

Each batch has files that were not in one before, as the checkpoint knows, across restarts, too. A batch that
was cut short comes again, with the same number and the same records. A file is read whole before a record of
it goes on: one that is damaged, if only in part, is left out as a whole, and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import pyarrow as pa
from pyspark.accumulators import AddingAccumulatorParam
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from amqpgate.pipeline.contract import MOST_OF_GATEWAYS, Skipped, look_into, whole
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.parts import PACKED, pack
from amqpgate.pipeline.reading import literal, schema
from amqpgate.records import SCHEMA_VERSION, Sort

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator, AccumulatorParam

#: Files that were left out since the start.
Skips: TypeAlias = "Accumulator[tuple[Skipped, ...]]"

#: Of a backlog, so many files make a batch.
_FILES_PER_BATCH: Final = 1_000
#: Files that are older than the newest by more are not looked for.
_OLDEST: Final = "30d"
#: Of tuples, which are not among the types that it says.
_SUM: Final = AddingAccumulatorParam(())  # type: ignore[type-var]
_FILES: Final = "path string, modificationTime timestamp, length bigint, content binary"


def skips(spark: SparkSession) -> Skips:
    """None so far. What Spark's workers leave out comes together in it, again if a task runs again."""
    return spark.sparkContext.accumulator((), cast("AccumulatorParam[tuple[Skipped, ...]]", _SUM))


def stream(spark: SparkSession, folder: str, sort: Sort, skipped: Skips) -> DataFrame:
    """The records of a sort, as Parquet files with them come.

    Raises ``PipelineError``; a record of a later version ends the query.
    """
    return _files(spark, folder, sort).mapInArrow(partial(_records, sort=sort, skipped=skipped), schema(sort))


def stream_parts(spark: SparkSession, folder: str, sort: Sort, skipped: Skips) -> DataFrame:
    """The same as parts, for a table."""
    return _files(spark, folder, sort).mapInArrow(partial(_parts, sort=sort, skipped=skipped), PACKED)


def _files(spark: SparkSession, folder: str, sort: Sort) -> DataFrame:
    """Each whole: Spark's own reader would hand on what is before the damage in one."""
    options = {
        "maxFilesPerTrigger": str(_FILES_PER_BATCH),
        "maxFileAge": _OLDEST,
        "pathGlobFilter": "*.parquet",
        "recursiveFileLookup": "true",
    }
    try:
        read = spark.readStream.format("binaryFile").schema(_FILES).options(**options)
        return read.load(literal(f"{folder.rstrip('/')}/{sort}")).select("path", "content")
    except AnalysisException as error:
        raise PipelineError(f"{folder} has no folder {sort} that can be followed") from error


def _records(batches: Iterator[pa.RecordBatch], sort: Sort, skipped: Skips) -> Iterator[pa.RecordBatch]:
    for table in _whole(batches, sort, skipped):
        yield from table.to_batches()


def _parts(batches: Iterator[pa.RecordBatch], sort: Sort, skipped: Skips) -> Iterator[pa.RecordBatch]:
    for table in _whole(batches, sort, skipped):
        yield from pack(table.to_batches(), sort)


def _whole(batches: Iterator[pa.RecordBatch], sort: Sort, skipped: Skips) -> Iterator[pa.Table]:
    """The records of each file that is in order."""
    for batch in batches:
        for name, content in zip(batch["path"].to_pylist(), batch["content"], strict=True):
            path = re.sub("^file:/+", "file:///", name)
            source = content.as_buffer()
            look = look_into(source, sort, most=MOST_OF_GATEWAYS)
            if later := [version for version in look.versions if version > SCHEMA_VERSION]:
                raise ValueError(
                    f"records of schema version {later[0]} in {path}; "
                    f"this amqpgate reads none later than {SCHEMA_VERSION}"
                )
            table = look.why or whole(source, sort)
            if isinstance(table, str):
                skipped.add((Skipped(path, table),))
            else:
                yield table


def follow(
    frame: DataFrame, each: Callable[[DataFrame, int], None], checkpoint: str, every: float | None
) -> StreamingQuery:
    """Call ``each`` with every batch and its number, every so many seconds; None: until nothing is left."""
    query = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
    if every is None:
        return query.trigger(availableNow=True).start()
    return query.trigger(processingTime=f"{every} seconds").start()
