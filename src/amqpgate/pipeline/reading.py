"""A folder of audit records as a data frame, and what of it cannot be read.

A folder is what the gateway writes (``records``), what ``compact`` makes of it, or has files of JSON lines.
It may be anywhere that Spark reads, or in an object store (``objects``). What is read is settled at the
start: files that come later are for the next time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Final
from urllib.parse import unquote

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from amqpgate.pipeline.contract import Look, Skipped, required
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import (
    RecordSource,
    RecordTable,
    Span,
    chosen,
    look_into_all,
    refuse_later,
    skipped_of,
    within,
)
from amqpgate.pipeline.frames import F
from amqpgate.pipeline.json_lines import (
    LOOK,
    LinesSeen,
    looks_of_files,
    looks_of_lines,
    readable,
    rows_of_files,
    rows_of_lines,
)
from amqpgate.pipeline.places import LOCAL, local_files
from amqpgate.pipeline.spark import explained
from amqpgate.records import TABLES, Sort, arrow_schema

#: So many files of lines are read by one task.
_FILES_OF_A_TASK: Final = 8


def schema(sort: Sort) -> StructType:
    """The columns of a sort, as Spark names their types. Older files have none of what came later."""
    exact: StructType = from_arrow_schema(arrow_schema(TABLES[sort]))
    for field in exact:
        field.nullable = True
    return exact


def read(
    spark: SparkSession,
    folder: str | RecordSource,
    sort: Sort,
    span: Span | None = None,
    *,
    leave_out: Container[str] = frozenset(),
) -> RecordTable:
    """The records of one sort that are in a folder, or in one file of JSON lines.

    Files that are cut off, and lines that are no records, are left out and named. A folder without any record
    is an error; one without records of this sort or span is not. ``leave_out`` has ``name_of`` Parquet files.
    Raises ``PipelineError``.
    """
    span = span or Span()
    source = None if isinstance(folder, str) else folder
    if isinstance(folder, str):
        parquet, lines = chosen(list_files(spark, folder), folder, sort, span, leave_out)
    else:
        parquet, lines = folder.chosen(sort, span, leave_out)
        folder.copy([*parquet, *lines])
    parts: list[RecordTable] = []
    if parquet:
        parts.append(_parquet(spark, sort, parquet, widened=source is not None and source.is_table))
    if lines:
        parts.append(_json(spark, sort, lines))
    nothing = spark.createDataFrame([], schema(sort))
    return RecordTable(
        sort=sort,
        frame=within(reduce(DataFrame.unionByName, [part.frame for part in parts] or [nothing]), sort, span),
        files=sum(part.files for part in parts),
        records=sum(part.records for part in parts),
        skipped=tuple(
            attrs.evolve(skipped, path=source.name(skipped.path)) if source else skipped
            for part in parts
            for skipped in part.skipped
        ),
        paths=tuple(path for part in parts for path in part.paths),
        lines=next((part.lines for part in parts if part.lines is not None), None),
    )


def list_files(spark: SparkSession, folder: str) -> list[str]:
    """All files below it, but those whose names begin with ``_`` or ``.``; sorted. Spark, which follows links
    around in circles, is not asked for those of this machine."""
    with suppress(PipelineError):
        if (files := local_files(folder)) is not None:
            return [f"{LOCAL}{path}" for path in files]
    try:
        with_all = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        return sorted(map(_address, with_all.load(literal(folder)).inputFiles()))
    except AnalysisException as error:
        raise PipelineError(f"{folder}: {_why(error)}") from error


def _address(url: str) -> str:
    """As Spark takes it: it quotes what it tells, and writes file: in two ways."""
    return re.sub("^file:/+", "file:///", unquote(url))


def literal(path: str) -> str:
    """A path that Spark takes by its letters, and not for a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _why(error: AnalysisException) -> str:
    if error.getCondition() == "PATH_NOT_FOUND":
        return "no such file or folder"
    return str(error).partition("\n")[0]


def _parquet(spark: SparkSession, sort: Sort, paths: Sequence[str], *, widened: bool) -> RecordTable:
    seen = look_into_all((path for path in paths if path.startswith(LOCAL)), sort, widened=widened)
    if there := [path for path in paths if path not in seen]:
        seen |= _look_elsewhere(spark, sort, there)
    refuse_later({path: look.versions for path, look in seen.items()})
    whole = tuple(path for path in paths if seen[path].why is None)
    chosen = spark.read.schema(schema(sort))
    return RecordTable(
        sort=sort,
        frame=chosen.parquet(*map(literal, whole)) if whole else spark.createDataFrame([], schema(sort)),
        files=len(whole),
        records=sum(seen[path].versions.total() for path in whole),
        skipped=skipped_of(seen),
        paths=whole,
    )


def _look_elsewhere(spark: SparkSession, sort: Sort, paths: Sequence[str]) -> dict[str, Look]:
    """Of files that only Spark reads: what columns have a value in each record.

    A file that is cut off has no footer, and so nothing of it can be read.
    """
    needed = StructType([field for field in schema(sort) if field.name in required(sort)])
    rows = spark.read.option("ignoreCorruptFiles", "true").schema(needed).parquet(*map(literal, paths))
    without = F.concat_ws(", ", *(F.when(F.col(name).isNull(), F.lit(name)) for name in needed.names))
    counted = rows.groupBy(
        F.col("_metadata.file_path").alias("path"), without.alias("without"), F.col("schema_version")
    ).count()
    looks = {path: Look(why="has no records, or columns of other types, or is damaged") for path in paths}
    found: dict[str, Counter[int]] = defaultdict(Counter)
    lacking: dict[str, str] = {}
    with explained(f"looking into the {sort}"):
        for path, columns, version, records in counted.collect():
            found[_address(path)][version or 0] += records
            if columns:
                lacking[_address(path)] = f"has no {columns} in {records} records"
    return looks | {path: Look(versions, lacking.get(path)) for path, versions in found.items()}


def _json(spark: SparkSession, sort: Sort, paths: Sequence[str]) -> RecordTable:
    """Both sorts may be in one file, and lines of others. Python reads them on the executors, as it does for
    DuckDB: files that all see by itself, others line by line from Spark."""
    broken: tuple[Skipped, ...] = ()
    if paths[0].startswith(LOCAL):
        in_order, broken = readable(paths)
        rows = [(path,) for path in in_order]
        source = spark.createDataFrame(rows, "path string").repartition(1 + len(rows) // _FILES_OF_A_TASK)
        look, read = looks_of_files, rows_of_files
    else:
        in_order = [*paths]
        text = spark.read.text([literal(path) for path in paths])
        source = text.select(F.col("_metadata.file_path").alias("path"), F.col("value").cast("binary"))
        look, read = looks_of_lines, rows_of_lines
    seen = _seen(source.mapInArrow(partial(look, sort=sort), LOOK), sort)
    refuse_later({path: one.versions for path, one in seen.items()})
    records = source.mapInArrow(partial(read, sort=sort), schema(sort))
    return RecordTable(
        sort=sort,
        frame=records,
        lines=records,
        files=len(in_order),
        records=sum(one.versions.total() for one in seen.values()),
        skipped=(*broken, *(each for path, one in sorted(seen.items()) for each in one.skipped(path))),
    )


def _seen(looks: DataFrame, sort: Sort) -> Mapping[str, LinesSeen]:
    """By file, of the looks at its parts."""
    found: dict[str, LinesSeen] = defaultdict(LinesSeen)
    with explained(f"looking into the {sort}"):
        for path, version, records, first in looks.collect():
            one = found[_address(path)]
            if version is not None:
                one.versions[version] += records
            else:
                one.wrong, one.first = one.wrong + records, first
    return found
