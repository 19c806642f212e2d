"""Audit records as a data source: ``spark.read.format("amqpgate").load(folder)``, and ``readStream``.

Options: ``table`` is ``usage`` (default) or ``events``; ``damaged`` is ``fail`` (default) or ``skip``. Files
are read on the executors, each by the contract of what a record is; the folder is one that driver and
executors see. Of filters, days choose the files, and equal texts the rows.

A stream's offset says which files were read (`offsets`): so a file that comes late, or out of order, is
read, and each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles

from amqpgate.pipeline.contract import UNIT, look_into
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import TIME, Span, chosen, refuse_later
from amqpgate.pipeline.json_lines import LinesSeen, read_lines, readable
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.source import LakeSource
from amqpgate.pipeline.offsets import Offset, names_of, new_names, offset_of
from amqpgate.pipeline.pages import damage
from amqpgate.pipeline.places import LOCAL, local_files
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FILES_OF_A_BATCH: Final = 1_000
_FILES_OF_A_TASK: Final = 8
#: Zones differ from UTC by less; what a filter without one says is taken so far on either side.
_SLACK: Final = timedelta(days=1)


class AuditSource(DataSource):
    """The records of one sort in a folder."""

    @classmethod
    def name(cls) -> str:
        """As ``format`` takes it."""
        return "amqpgate"

    def schema(self) -> StructType:
        """The columns of the sort."""
        from amqpgate.pipeline.reading import schema

        return schema(self._sort)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Of what is there."""
        return AuditReader(self._folder, self._sort, self._skips)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Of what comes."""
        return AuditStreamReader(self._folder, self._sort, self._skips)

    @property
    def _folder(self) -> str:
        if not (folder := self.options.get("path")):
            raise PipelineError('load() needs a folder: spark.read.format("amqpgate").load("/srv/audit")')
        return folder

    @property
    def _sort(self) -> Sort:
        sort = self.options.get("table", "usage")
        if sort not in TABLES:
            raise PipelineError(f"the option table is {' or '.join(TABLES)}, not {sort}")
        return cast("Sort", sort)

    @property
    def _skips(self) -> bool:
        return self.options.get("damaged", "fail") == "skip"


class AuditReader(DataSourceReader):
    """The files of a folder, or of a table of an open format."""

    def __init__(self, folder: str, sort: Sort, skips: bool) -> None:
        self._folder, self._sort, self._skips = folder, sort, skips
        self._since: datetime | None = None
        self._until: datetime | None = None
        self._equal: dict[str, str] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what chooses files, and what texts are equal to; Spark judges times again."""
        for filter_ in filters:
            match filter_:
                case EqualTo(attribute=(name,), value=str(value)) if name not in self._equal:
                    self._equal[name] = value
                    continue
                case GreaterThan(attribute=(name,), value=datetime() as moment) if name == TIME[self._sort]:
                    self._since = _later(self._since, moment)
                case GreaterThanOrEqual(attribute=(name,), value=datetime() as moment) if (
                    name == TIME[self._sort]
                ):
                    self._since = _later(self._since, moment)
                case LessThan(attribute=(name,), value=datetime() as moment) if name == TIME[self._sort]:
                    self._until = _earlier(self._until, moment)
                case LessThanOrEqual(attribute=(name,), value=datetime() as moment) if (
                    name == TIME[self._sort]
                ):
                    self._until = _earlier(self._until, moment)
            yield filter_

    def partitions(self) -> Sequence[InputPartition]:
        """Some files for each task."""
        span = Span(since=self._since, until=self._until, vhost=self._equal.get("vhost"))
        address = address_of(self._folder)
        if address is not None:
            if address.folder is None:
                raise PipelineError(f"{self._folder} is not of this machine: use the format's own reader")
            parquet, lines = LakeSource(open_lake(address)).chosen(self._sort, span, frozenset())
        else:
            parquet, lines = chosen(_listed(self._folder), self._folder, self._sort, span, frozenset())
        return _tasks([*parquet, *lines]) or [InputPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of some files."""
        return _records(partition.value, self._sort, self._equal, self._skips)


class AuditStreamReader(DataSourceStreamReader):
    """The files that gateways add to a folder."""

    def __init__(self, folder: str, sort: Sort, skips: bool) -> None:
        self._folder, self._sort, self._skips = folder, sort, skips

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Nothing was read."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Of a backlog, so many files make a batch."""
        return ReadMaxFiles(_FILES_OF_A_BATCH)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """What was read, and what comes next."""
        new = new_names(_listed(self._folder), self._folder, self._sort, start)
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else len(new)
        return offset_of([*names_of(start), *new[:most]])

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The files of a batch."""
        root = self._folder.removeprefix(LOCAL).rstrip("/")
        new = sorted(set(names_of(end)) - set(names_of(start)))
        return _tasks([f"{LOCAL}{root}/{name}" for name in new])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of some files."""
        return _records(partition.value, self._sort, {}, self._skips)


# -- files -----------------------------------------------------------------------------------


def _listed(folder: str) -> list[str]:
    if (files := local_files(folder)) is None:
        raise PipelineError(f"{folder} is not of this machine, or mounted")
    return [f"{LOCAL}{path}" for path in files]


def _tasks(paths: Sequence[str]) -> list[InputPartition]:
    return [
        InputPartition(tuple(paths[place : place + _FILES_OF_A_TASK]))
        for place in range(0, len(paths), _FILES_OF_A_TASK)
    ]


def _records(
    paths: Iterable[str], sort: Sort, equal: Mapping[str, str], skips: bool
) -> Iterator[pa.RecordBatch]:
    """Rows of files whose texts are equal to these."""
    for path in paths:
        for table in _tables(path, sort, skips):
            for name, value in equal.items():
                table = table.filter(pc.equal(table[name], value))
            yield from table.to_batches()


def _tables(path: str, sort: Sort, skips: bool) -> Iterator[pa.Table]:
    schema = arrow_schema(TABLES[sort])
    here = path.removeprefix(LOCAL)
    if not path.endswith(".parquet"):
        yield from _lines(path, sort, skips)
        return
    look = look_into(here, sort, widened=True)
    if max(look.versions, default=0) > SCHEMA_VERSION:
        raise PipelineError(f"{path} has records of a later schema version: use a later amqpgate")
    if look.why is not None:
        if skips:
            return
        raise PipelineError(f"{path} {look.why}")
    if (damaged := damage(here)) is not None:
        if skips:
            return
        raise PipelineError(f"{path} is damaged: {damaged}")
    try:
        with pq.ParquetFile(here, page_checksum_verification=True, coerce_int96_timestamp_unit=UNIT) as file:
            for batch in file.iter_batches(columns=[name for name in schema.names if name in look.columns]):
                columns = [
                    batch[field.name].cast(field.type)
                    if field.name in look.columns
                    else pa.nulls(len(batch), field.type)
                    for field in schema
                ]
                yield pa.table(columns, _nullable(schema))
    except (OSError, pa.ArrowException) as error:
        # Some of it is with Spark already.
        raise PipelineError(f"{path} is damaged") from error


def _lines(path: str, sort: Sort, skips: bool) -> Iterator[pa.Table]:
    in_order, broken = readable([path])
    seen = LinesSeen()
    for batch in (batch for here in in_order for batch in read_lines(here, sort, seen)):
        refuse_later({path: seen.versions})
        yield pa.Table.from_batches([batch]).cast(_nullable(batch.schema))
    if (wrong := (*broken, *seen.skipped(path))) and not skips:
        raise PipelineError(f"{path} {wrong[0].why}" if broken else f"{path}: {wrong[0].why}")


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _later(known: datetime | None, moment: datetime) -> datetime:
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _SLACK
    return since if known is None else max(known, since)


def _earlier(known: datetime | None, moment: datetime) -> datetime:
    until = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) + _SLACK
    return until if known is None else min(known, until)
