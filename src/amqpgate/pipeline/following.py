"""Records as they come: Structured Streaming over a folder that gateways write to.

Each batch has files that were not in one before, as the checkpoint knows, across restarts, too. A batch that
was cut short comes again, with the same number and the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.reading import literal, schema
from amqpgate.records import SCHEMA_VERSION, Sort

#: Of a backlog, so many files make a batch.
_FILES_PER_BATCH: Final = 1_000
#: Files that are older than the newest by more are not looked for.
_OLDEST: Final = "30d"


def stream(spark: SparkSession, folder: str, sort: Sort) -> DataFrame:
    """The records of a sort, as Parquet files with them come.

    Files that are cut off are left out, and named in Spark's log. Raises ``PipelineError``; a record of a
    later version ends the query.
    """
    options = {
        "maxFilesPerTrigger": str(_FILES_PER_BATCH),
        "maxFileAge": _OLDEST,
        "ignoreCorruptFiles": "true",
    }
    columns = schema(sort)
    try:
        read = spark.readStream.schema(columns).options(**options)
        frame = read.parquet(literal(f"{folder.rstrip('/')}/{sort}"))
    except AnalysisException as error:
        raise PipelineError(f"{folder} has no folder {sort} that can be followed") from error
    later = F.raise_error(
        F.format_string(
            f"records of schema version %d in %s; this amqpgate reads none later than {SCHEMA_VERSION}",
            "schema_version",
            F.col("_metadata.file_path"),
        )
    )
    known = F.when(F.col("schema_version") <= SCHEMA_VERSION, F.lit(True)).otherwise(later)
    return frame.filter(F.col("schema_version").isNotNull() & known).select(*columns.names)


def follow(
    frame: DataFrame, each: Callable[[DataFrame, int], None], checkpoint: str, every: float | None
) -> StreamingQuery:
    """Call ``each`` with every batch and its number, every so many seconds; None: until nothing is left."""
    query = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
    if every is None:
        return query.trigger(availableNow=True).start()
    return query.trigger(processingTime=f"{every} seconds").start()
