"""Jobs over records, on either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import attrs
import pyarrow as pa

from amqpgate.pipeline import local, local_reading, reading, spark
from amqpgate.pipeline.frames import Engine, engine, rows_of
from amqpgate.pipeline.reading import RecordTable, Span, schema
from amqpgate.records import Record, Sort
from tests.support.audit_records import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpgate.pipeline.folders import RecordSource
    from amqpgate.pipeline.local_frames import SqlSession


@attrs.frozen
class Plans:
    """An engine, and its session."""

    name: Engine
    session: SparkSession | SqlSession

    def frame(self, sort: Sort, records: Iterable[Record] | pa.Table) -> DataFrame:
        """The records as the engine's frame."""
        table = records if isinstance(records, pa.Table) else table_of(sort, records)
        if self.name == "local":
            return local.frame_of(cast("SqlSession", self.session), table)
        return cast("SparkSession", self.session).createDataFrame(table, schema(sort))

    def explained(self, files: list[str]) -> AbstractContextManager[None]:
        """As verbs do it."""
        return local.explained(files) if self.name == "local" else spark.explained("Spark")

    def read(self, folder: Path | RecordSource, sort: Sort, span: Span | None = None) -> RecordTable:
        """Records in a folder, or elsewhere."""
        source = str(folder) if isinstance(folder, Path) else folder
        with engine(self.name):
            if self.name == "local":
                return local_reading.read(cast("SqlSession", self.session), source, sort, span)
            return reading.read(cast("SparkSession", self.session), source, sort, span)

    def rows_of(self, table: RecordTable) -> list[Any]:
        """The records of one."""
        with engine(self.name):
            return [SimpleNamespace(**row) for row in rows_of(table.frame)]

    def rows(
        self, job: Callable[[DataFrame], DataFrame], sort: Sort, records: Iterable[Record] | pa.Table
    ) -> list[Any]:
        """What a job answers, with attributes of its columns' names; times are UTC."""
        with engine(self.name):
            rows = list(rows_of(job(self.frame(sort, records))))
        return [SimpleNamespace(**row) for row in rows]
