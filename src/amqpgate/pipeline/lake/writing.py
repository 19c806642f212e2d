"""Records as files of a table: sorted by id, each once, with checksums; and few files of many small ones."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime
from itertools import chain
from operator import attrgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import TIME
from amqpgate.pipeline.lake.table import Conflict, LakeTable, NewFile, TableFile
from amqpgate.pipeline.parts import Part, merged, opened, parts_of
from amqpgate.records import Sort

#: The column that tells records apart.
RECORD_ID: Final = "record_id"
#: Rows that a reader may pass over by their ids and times.
_ROW_GROUP: Final = 100_000
#: How often somebody else may come first.
_TRIES: Final = 20
#: Files below are small; so many of a day are made one, which is no larger than that.
_SMALL: Final = 64 << 20
_MANY: Final = 8
_TOGETHER: Final = 256 << 20


def write(
    table: LakeTable, rows: Iterable[pa.Table], day: date | None, bounds: Sequence[str] = ()
) -> NewFile:
    """A new file with these rows, which is not the table's yet. ``bounds``: columns whose least and greatest
    values readers are told."""
    path = table.path_for(day)
    coming = iter(rows)
    first = next(coming)
    wanted = [field for field in table.schema if field.name in first.column_names]
    schema = pa.schema([_as_written(field, first.schema.field(field.name)) for field in wanted])
    records, found = 0, _Bounds(bounds)
    with table.create(path) as out:
        writer = pq.ParquetWriter(
            out, schema, compression="zstd", store_schema=False, write_page_checksum=True
        )
        with writer:
            for part in chain([first], coming):
                fitted = pa.table([part[field.name].cast(field.type) for field in schema], schema)
                writer.write_table(fitted, row_group_size=_ROW_GROUP)
                records += len(part)
                found.take(part)
    with table.open(path) as file:
        size = file.size()
    return NewFile(path, records, size, day, found.text())


def add_once(load: Callable[[], LakeTable], rows: pa.Table, id_: str, time: str) -> tuple[int, set[date]]:
    """Have these rows, which are sorted by id and each once: how many came, and their days.

    ``load`` gives the table as it is, again when somebody else came first. Raises ``PipelineError``.
    """
    parts = dict(by_day(rows, time)) if len(rows) else {}
    for _ in range(_TRIES):
        table = load()
        new = {day: left for day, part in parts.items() if len(left := unknown(table, [day], part, id_))}
        if not new:
            return 0, set()
        written = [write(table, [left], day, (id_, time)) for day, left in new.items()]
        count = sum(file.records for file in written)
        try:
            table.commit(written, notes={"amqpgate.records": str(count)})
        except Conflict:
            for file in written:
                table.remove(file.path)
            continue
        return count, set(new)
    raise PipelineError(f"others changed the table {_TRIES} times: run it again")


def unknown(table: LakeTable, days: Iterable[date], records: pa.Table, id_: str) -> pa.Table:
    """Those of the records, which are sorted by id, that the table does not have in these days."""
    ids = records[id_].to_pylist()
    wanted = set(days)
    known: list[pa.Array] = []
    for file in table.files():
        if file.day in wanted:
            with table.open(file.path) as source:
                known += _known(pq.ParquetFile(source, page_checksum_verification=True), ids, id_)
    if not known:
        return records
    return records.filter(pc.invert(pc.is_in(records[id_], pa.concat_arrays(known))))


def _known(file: pq.ParquetFile, ids: Sequence[str], id_: str) -> Iterator[pa.Array]:
    """Which of the ids are in a file. Only row groups are read that may have some."""
    at = file.metadata.schema.names.index(id_)
    for number in range(file.num_row_groups):
        known = file.metadata.row_group(number).column(at).statistics
        begin, end = 0, len(ids)
        if known and known.has_min_max:
            begin, end = bisect_left(ids, known.min), bisect_right(ids, known.max)
        if begin < end:
            wanted = pa.array(ids[begin:end])
            for batch in file.iter_batches(row_groups=[number], columns=[id_]):
                there = batch[id_].cast(pa.string())
                yield there.filter(pc.is_in(there, wanted))


def by_day(records: pa.Table, time: str) -> Iterator[tuple[date, pa.Table]]:
    """The records of each UTC day."""
    days = records[time].cast(pa.date32())
    found = pc.unique(days).to_pylist()
    for day in sorted(found):
        yield day, records if len(found) == 1 else records.filter(pc.equal(days, pa.scalar(day)))


def rearrange(table: LakeTable, sort: Sort, days: Iterable[date]) -> int:
    """Make one file of many small ones of a day: how many were replaced. Raises ``Conflict``."""
    wanted = set(days)
    small: dict[date, list[TableFile]] = defaultdict(list)
    for file in table.files():
        if file.day in wanted and file.day is not None and file.size < _SMALL:
            small[file.day].append(file)
    replaced = 0
    for day, files in small.items():
        together = list(_up_to(_TOGETHER, files))
        if len(files) >= _MANY and len(together) > 1:
            with ExitStack() as stack:
                sources = [opened(stack.enter_context(table.open(file.path)), sort) for file in together]
                parts = heapq.merge(*(_sorted_parts(one, sort) for one in sources), key=attrgetter("first"))
                new = write(table, merged(parts), day, (RECORD_ID, TIME[sort]))
            table.commit([new], together, rearranged=True)
            replaced += len(together)
    return replaced


def join_small(table: LakeTable, days: Iterable[date]) -> None:
    """The same for a table of few rows, in memory. Raises ``Conflict``."""
    for day in set(days):
        small = [file for file in table.files() if file.day == day and file.size < _SMALL]
        if len(small) >= _MANY:
            rows = pa.concat_tables(pq.read_table(table.open(file.path)) for file in small)
            table.commit([write(table, [rows], day)], small, rearranged=True)


def _sorted_parts(file: pq.ParquetFile, sort: Sort) -> list[Part]:
    return sorted(parts_of(file, sort), key=attrgetter("first"))


def _up_to(most: int, files: Iterable[TableFile]) -> Iterator[TableFile]:
    size = 0
    for file in sorted(files, key=attrgetter("size")):
        size += file.size
        if size > most:
            return
        yield file


def _as_written(field: pa.Field, found: pa.Field) -> pa.Field:
    """The table's column; a text that repeats stays a dictionary until it is written."""
    repeats = pa.types.is_dictionary(found.type) and pa.types.is_string(field.type)
    return field.with_type(found.type) if repeats else field


class _Bounds:
    """The least and the greatest values of columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self._found: dict[str, tuple[object, object] | None] = dict.fromkeys(names)

    def take(self, rows: pa.Table) -> None:
        for name, known in self._found.items():
            here = pc.min_max(rows[name])
            least, greatest = here["min"].as_py(), here["max"].as_py()
            if least is not None:
                self._found[name] = (
                    (least, greatest) if known is None else (min(known[0], least), max(known[1], greatest))
                )

    def text(self) -> Mapping[str, tuple[str, str]]:
        return {name: (_text(known[0]), _text(known[1])) for name, known in self._found.items() if known}


def _text(value: object) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else str(value)
