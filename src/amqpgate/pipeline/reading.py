"""A folder of audit records as a data frame, and what of it cannot be read.

A folder is what the gateway writes (``records``), what ``compact`` makes of it, or has files of JSON lines.
It may be anywhere that Spark reads, or in an object store (``objects``). What is read is settled at the
start: files that come later are for the next time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Final, TypeAlias
from urllib.parse import unquote

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.frames import F
from amqpgate.pipeline.objects import Objects
from amqpgate.pipeline.spark import explained
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort, arrow_schema

#: The time by which records of a sort are selected.
TIME: Final[dict[Sort, str]] = {"events": "time", "usage": "window_start"}
#: What a line of JSON calls its sort.
LINE: Final[dict[Sort, str]] = {"events": "event", "usage": "usage"}

_PARQUET: Final = re.compile(r"/((events|usage)/(?:date=[^/]+/)?(?:vhost_key=[^/]+/)?[^/]+\.parquet)$")
_JSON: Final = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2|zst|lz4))?$")
_DATE: Final = re.compile(r"/date=(\d{4}-\d\d-\d\d)/")
#: A file of a compacted table. The one with the highest number in a folder is in force.
_NUMBERED: Final = re.compile(r"^(.*/)records-\d{8}\.parquet$")
_KEY: Final = re.compile(r"/vhost_key=([^/]+)/")
#: A file is of the day of its first record. It is rolled within minutes.
_SLACK: Final = timedelta(days=1)
_KEY_LENGTH: Final = 64
_NOT_IN_KEYS: Final = re.compile("[^A-Za-z0-9.-]")
#: The folder of what is of no virtual host, and of those with strange names.
OTHER_VHOSTS: Final = "_"

_CORRUPT: Final = "_corrupt"

#: How many records of which version a file has; None: of none, so they are no audit records.
_Versions: TypeAlias = Counter[int | None]


@attrs.frozen
class Skipped:
    """A file, or lines of one, that is left out."""

    path: str
    why: str


@attrs.frozen(kw_only=True)
class Span:
    """Which records are wanted: from ``since`` on, before ``until`` (both UTC), of one virtual host."""

    since: datetime | None = None
    until: datetime | None = None
    vhost: str | None = None


@attrs.frozen(kw_only=True)
class RecordTable:
    """Records of one sort.

    ``frame`` has the columns of ``records``; ``files`` and ``records`` say how many there are in the files
    that were chosen, of which ``frame`` may have less. ``paths`` are those in Parquet; ``lines`` has the
    records of the others.
    """

    sort: Sort
    frame: DataFrame
    files: int
    records: int
    skipped: tuple[Skipped, ...]
    paths: tuple[str, ...] = ()
    lines: DataFrame | None = None


def schema(sort: Sort) -> StructType:
    """The columns of a sort, as Spark names their types. Files may leave any column out."""
    exact: StructType = from_arrow_schema(arrow_schema(TABLES[sort]))
    for field in exact:
        field.nullable = True
    return exact


def read(
    spark: SparkSession,
    folder: str | Objects,
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
    found = folder.paths() if isinstance(folder, Objects) else list_files(spark, folder)
    parquet, lines = chosen(found, folder, sort, span, leave_out)
    if isinstance(folder, Objects):
        folder.copy([*parquet, *lines])
    parts: list[RecordTable] = []
    if parquet:
        parts.append(_parquet(spark, sort, parquet))
    if lines:
        parts.append(_json(spark, sort, lines))
    nothing = spark.createDataFrame([], schema(sort))
    return RecordTable(
        sort=sort,
        frame=within(reduce(DataFrame.unionByName, [part.frame for part in parts] or [nothing]), sort, span),
        files=sum(part.files for part in parts),
        records=sum(part.records for part in parts),
        skipped=tuple(
            attrs.evolve(skipped, path=folder.name(skipped.path)) if isinstance(folder, Objects) else skipped
            for part in parts
            for skipped in part.skipped
        ),
        paths=tuple(path for part in parts for path in part.paths),
        lines=next((part.lines for part in parts if part.lines is not None), None),
    )


def chosen(
    found: Iterable[str], folder: str | Objects, sort: Sort, span: Span, leave_out: Container[str]
) -> tuple[list[str], list[str]]:
    """Of all files of a folder those of Parquet, and those of JSON lines, that may have what is wanted.

    Raises ``PipelineError`` where none is one of records.
    """
    there = newest(found)
    if not any(_PARQUET.search(path) or _JSON.search(path) for path in there):
        raise PipelineError(
            f"{folder} has no audit records: neither {{events,usage}}/date=*/*.parquet nor *.json, *.jsonl"
        )
    wanted = [path for path in there if _wanted(path, span)]
    parquet = [
        path for path in wanted if (at := _PARQUET.search(path)) and at[2] == sort and at[1] not in leave_out
    ]
    return parquet, [path for path in wanted if _JSON.search(path)]


def key_of(vhost: str) -> str:
    """A virtual host's folder in a compacted table: its name, but cut, and with ``_`` for what a folder's
    name should not have. Several may share it."""
    return _NOT_IN_KEYS.sub("_", vhost[:_KEY_LENGTH]) or OTHER_VHOSTS


def name_of(path: str) -> str:
    """Of a Parquet file: the path below the folder of records."""
    match = _PARQUET.search(path)
    assert match is not None
    return match[1]


def within(frame: DataFrame, sort: Sort, span: Span) -> DataFrame:
    """The records of a span."""
    if span.since is not None:
        frame = frame.filter(F.col(TIME[sort]) >= F.lit(span.since))
    if span.until is not None:
        frame = frame.filter(F.col(TIME[sort]) < F.lit(span.until))
    if span.vhost is not None:
        frame = frame.filter(F.col("vhost") == F.lit(span.vhost))
    return frame


def list_files(spark: SparkSession, folder: str) -> list[str]:
    """All files below it, but those whose names begin with ``_`` or ``.``; sorted."""
    try:
        with_all = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        return sorted(map(_address, with_all.load(literal(folder)).inputFiles()))
    except AnalysisException as error:
        raise PipelineError(f"{folder}: {_why(error)}") from error


def _address(url: str) -> str:
    """As Spark takes it: it quotes what it tells, and writes file: in two ways."""
    return re.sub("^file:/+", "file:///", unquote(url))


def newest(paths: Iterable[str]) -> list[str]:
    """Sorted, without files of a compacted table that another in their folder has replaced."""
    return list(
        {match[1] if (match := _NUMBERED.match(path)) else path: path for path in sorted(paths)}.values()
    )


def literal(path: str) -> str:
    """A path that Spark takes by its letters, and not for a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _why(error: AnalysisException) -> str:
    if error.getCondition() == "PATH_NOT_FOUND":
        return "no such file or folder"
    return str(error).partition("\n")[0]


def _wanted(path: str, span: Span) -> bool:
    """Whether the file of that day and folder may have records of the span."""
    key = _KEY.search(path)
    if span.vhost is not None and key is not None and key[1] not in (key_of(span.vhost), OTHER_VHOSTS):
        return False
    if (match := _DATE.search(path)) is None:
        return True
    day = date.fromisoformat(match[1])
    if span.since is not None and day < (span.since - _SLACK).astimezone(UTC).date():
        return False
    return span.until is None or day <= span.until.astimezone(UTC).date()


def _parquet(spark: SparkSession, sort: Sort, paths: Sequence[str]) -> RecordTable:
    """A file that is cut off has no footer, and so nothing of it can be read."""
    look = spark.read.option("ignoreCorruptFiles", "true").schema("schema_version smallint")
    seen = _versions(look.parquet(*map(literal, paths)), sort, F.col("schema_version"))
    whole = {path: None for path in paths if any(seen.get(path, ()))}
    chosen = spark.read.schema(schema(sort))
    return RecordTable(
        sort=sort,
        frame=chosen.parquet(*map(literal, whole)) if whole else spark.createDataFrame([], schema(sort)),
        files=len(whole),
        records=sum(seen[path].total() for path in whole),
        skipped=tuple(
            Skipped(path, "has no audit records" if path in seen else "is cut off or damaged")
            for path in paths
            if path not in whole
        ),
        paths=tuple(whole),
    )


def _json(spark: SparkSession, sort: Sort, paths: Sequence[str]) -> RecordTable:
    """Both sorts may be in one file, and lines of others."""
    columns = schema(sort)
    known = StructType([StructField("record", StringType()), *columns, StructField(_CORRUPT, StringType())])
    # Not by `read.json`, to which a line is in order if those of its columns are that a job looks at.
    line = F.from_json("value", known, {"columnNameOfCorruptRecord": _CORRUPT})
    lines = (
        spark.read.text([literal(path) for path in paths])
        .filter(F.trim("value") != "")
        .select(line.alias("line"), "_metadata")
    )
    mine = F.col("line.record") == LINE[sort]
    whole = F.col(f"line.{_CORRUPT}").isNull() & F.col("line.record").isin(*LINE.values())
    needed = F.col("line.record_id").isNotNull() & F.col(f"line.{TIME[sort]}").isNotNull()
    whole = F.coalesce(whole & (~mine | needed), F.lit(False))
    seen = _versions(lines.filter(mine | ~whole), sort, F.when(whole, F.col("line.schema_version")))
    records = lines.filter(whole & mine).select("line.*").select(*columns.names)
    return RecordTable(
        sort=sort,
        frame=records,
        lines=records,
        files=len(paths),
        records=sum(versions.total() - versions[None] for versions in seen.values()),
        skipped=tuple(
            Skipped(path, f"{versions[None]} lines are no audit records")
            for path, versions in sorted(seen.items())
            if versions[None]
        ),
    )


def _versions(frame: DataFrame, sort: Sort, version: Column) -> Mapping[str, _Versions]:
    """By file. Raises ``PipelineError`` for records of a later version than this program knows."""
    counted = frame.groupBy(F.col("_metadata.file_path").alias("path"), version.alias("version")).count()
    found: dict[str, _Versions] = defaultdict(Counter)
    with explained(f"looking into the {sort}"):
        for path, number, records in counted.collect():
            found[_address(path)][number] += records
    refuse_later(found)
    return found


def refuse_later(found: Mapping[str, _Versions]) -> None:
    """Raises ``PipelineError`` if a file has records of a later version than this program knows."""
    if later := {
        path: number
        for path, some in sorted(found.items())
        for number in some
        if (number or 0) > SCHEMA_VERSION
    }:
        path, number = next(iter(later.items()))
        raise PipelineError(
            f"{path} has records of schema version {number} ({len(later)} of {len(found)} files have "
            f"later ones than {SCHEMA_VERSION}, which is all that this amqpgate reads): use a later amqpgate"
        )
