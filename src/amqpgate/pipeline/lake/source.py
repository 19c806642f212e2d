"""Tables of audit records for the verbs: the files of one version, those of the wanted days."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date
from pathlib import Path
from shutil import copyfileobj
from typing import Final

import attrs

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import Span, name_of
from amqpgate.pipeline.lake.table import VERSION, Lake, LakeTable, TableFile
from amqpgate.pipeline.places import LOCAL
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort

_AT_ONCE: Final = 8


@attrs.define
class LakeSource:
    """The tables of a place, as they were when they were first looked at.

    Files of a store are copied below ``into``; without that, readers are told where they are.
    """

    lake: Lake
    into: Path | None = None
    tell: Callable[[str], None] = lambda _: None
    _tables: dict[Sort, LakeTable | None] = attrs.field(init=False, factory=dict)
    #: By the path that readers are told.
    _files: dict[str, tuple[LakeTable, TableFile]] = attrs.field(init=False, factory=dict)

    def __str__(self) -> str:
        return str(self.lake.address)

    @property
    def folder(self) -> Path | None:
        """That of this machine with the tables."""
        return self.lake.address.folder

    @property
    def is_table(self) -> bool:
        """Yes."""
        return True

    @property
    def size(self) -> int:
        """Of all files of both sorts, in bytes."""
        return sum(file.size for sort in TABLES for file in self._files_of(sort))

    def chosen(self, sort: Sort, span: Span, leave_out: Container[str]) -> tuple[list[str], list[str]]:
        """Paths of the files with the days of the span. Raises ``PipelineError`` where no table is."""
        table = self._table(sort)
        if table is None:
            return [], []
        found = {
            self._path(sort, table, file): (table, file)
            for file in self._files_of(sort)
            if _wanted(file.day, span)
        }
        self._files |= found
        return sorted(path for path in found if name_of(path) not in leave_out), []

    def copy(self, paths: Iterable[str]) -> None:
        """Have these here."""
        if self.into is None or self.lake.address.folder is not None:
            return
        missing = [path for path in paths if not Path(path.removeprefix(LOCAL)).exists()]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for number, _ in enumerate(pool.map(self._copy, missing), 1):
                self.tell(f"copying {number:,} of {len(missing):,} files")

    def drop(self, paths: Iterable[str]) -> None:
        """Remove these where they are copies."""
        copies = [path for path in paths if self.into and path.startswith(f"{LOCAL}{self.into}/")]
        for path in copies:
            Path(path.removeprefix(LOCAL)).unlink()

    def size_of(self, path: str) -> int:
        """Of one file."""
        return self._files[path][1].size

    def name(self, path: str) -> str:
        """Where the file is."""
        table, file = self._files[path]
        return table.address_of(file)

    def _table(self, sort: Sort) -> LakeTable | None:
        if not self._tables:
            found = {name: self.lake.load(name) for name in TABLES}
            if not any(found.values()):
                raise PipelineError(f"{self}: has no tables of audit records")
            for name, table in found.items():
                _refuse_others(str(self), name, table)
            self._tables = found
        return self._tables[sort]

    def _files_of(self, sort: Sort) -> Iterator[TableFile]:
        table = self._table(sort)
        yield from table.files() if table is not None else ()

    def _path(self, sort: Sort, table: LakeTable, file: TableFile) -> str:
        address = table.address_of(file)
        if self.lake.address.folder is not None or address.startswith((LOCAL, "/")):
            return f"{LOCAL}{address.removeprefix(LOCAL)}"
        if self.into is None:
            # As Spark calls them.
            return f"s3a://{address.removeprefix('s3://')}" if address.startswith("s3://") else address
        return f"{LOCAL}{self.into}/{sort}/{file.day}-{address.rpartition('/')[2]}"

    def _copy(self, path: str) -> None:
        table, file = self._files[path]
        made = Path(path.removeprefix(LOCAL))
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            with table.open(file.path) as source, made.open("wb") as target:
                copyfileobj(source, target, 1 << 20)
        except OSError as error:
            raise PipelineError(f"{table.address_of(file)}: {error}") from error


def _wanted(day: date | None, span: Span) -> bool:
    if day is None:
        return True
    if span.since is not None and day < span.since.astimezone(UTC).date():
        return False
    return span.until is None or day <= span.until.astimezone(UTC).date()


def _refuse_others(place: str, name: Sort, table: LakeTable | None) -> None:
    if table is None:
        return
    version = table.properties.get(VERSION)
    if version is None:
        raise PipelineError(f"{place}: the table {name} was not made by compact")
    if int(version) > SCHEMA_VERSION:
        raise PipelineError(
            f"{place}: the table {name} has records of schema version {version}, later than "
            f"{SCHEMA_VERSION}, which is all that this amqpgate reads: use a later amqpgate"
        )
