"""Raw records into a table of an open format, exactly once.

Three tables: ``events`` and ``usage``, in parts by the day of the record, and ``files`` with what was read.
Files come in batches. Of a batch those records are written that the table does not have in their days,
and one commit makes them the table's; then ``files`` has the batch. A process that dies between both reads
the batch again, and finds its records. Who meets another's commit looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpgate.pipeline.batches import together
from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import (
    TIME,
    Compacted,
    RecordSource,
    Span,
    chosen_of,
    in_groups,
    look_into_all,
    name_of,
    refuse_later,
    refuse_overlap,
    skipped_of,
)
from amqpgate.pipeline.json_lines import LinesSeen, read_lines, readable
from amqpgate.pipeline.lake.table import VERSION, Conflict, Lake, LakeTable
from amqpgate.pipeline.lake.writing import RECORD_ID, add_once, rearrange, write
from amqpgate.pipeline.parts import Damaged, each_once, fitted, records_of
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort, arrow_schema

FILES: Final = "files"
#: What was read: each file once, or again where a process died.
FILES_SCHEMA: Final = pa.schema(
    [
        pa.field("sort", pa.string(), False),
        pa.field("name", pa.string(), False),
        pa.field("records", pa.int64(), False),
        pa.field("time", pa.timestamp("us", tz="UTC"), False),
    ]
)

#: Files that are read together: some 100,000 to a million records.
_BATCH_BYTES: Final = 8 << 20
_BATCH_FILES: Final = 200
#: Bytes of records that are written together, with texts that repeat there once.
_MOST_BYTES: Final = 128 << 20
#: The same of lines of JSON, whose texts are there as often as they are written.
_OF_LINES: Final = 64 << 20
#: How often somebody else may come first.
_TRIES: Final = 20
#: So many files of ``files`` become one.
_MANY: Final = 16


@attrs.frozen
class FileBatch:
    """Records of some files, sorted by id, each once."""

    records: pa.Table
    #: How many each file has, by its name. Of a large file the last batch has it.
    names: dict[str, int]
    skipped: tuple[Skipped, ...]


def compact_into(
    lake: Lake, source: str | RecordSource, tell: Callable[[str], None] = lambda _: None
) -> list[Compacted]:
    """Add to the tables what is new in a folder of raw records. Raises ``PipelineError``."""
    if isinstance(source, str) and lake.address.folder is not None:
        refuse_overlap(source, lake.address.folder)
    if not isinstance(source, str) and source.is_table:
        raise PipelineError(f"{source} is such a table already")
    return [_compact(lake, source, sort, tell) for sort in TABLES]


def _compact(lake: Lake, source: str | RecordSource, sort: Sort, tell: Callable[[str], None]) -> Compacted:
    known = _done(lake, sort)
    parquet, lines = chosen_of(source, sort, Span(), known)
    files = added = 0
    days: set[date] = set()
    skipped: list[Skipped] = []
    # One at a time: all of them are the folder.
    for batch in chain(_batches(source, sort, parquet), _of_lines(source, sort, lines)):
        came, in_days = add(lake, sort, batch.records)
        _note(lake, sort, batch.names)
        files, added = files + len(batch.names), added + came
        days |= in_days
        skipped += batch.skipped
        tell(f"{sort}: {files:,} of {len(parquet):,} new files, {added:,} records")
    changed = _tidy(lake, sort, days)
    return Compacted(
        sort=sort, files=files + len(lines), changed=changed, records=added, skipped=tuple(skipped)
    )


def add(lake: Lake, sort: Sort, records: pa.Table) -> tuple[int, set[date]]:
    """Have these records, which are sorted by id and each once: how many came, and their days."""
    return add_once(lambda: _record_table(lake, sort), records, RECORD_ID, TIME[sort])


def expire(lake: Lake, before: datetime) -> int:
    """Forget what was replaced before that moment: how many files are gone."""
    tables = [lake.load(name) for name in (*TABLES, FILES)]
    return sum(table.expire(before) for table in tables if table is not None)


def _record_table(lake: Lake, sort: Sort) -> LakeTable:
    """That of a sort, with all columns that records have. Raises ``PipelineError`` for one of others."""
    schema = arrow_schema(TABLES[sort])
    table = lake.load(sort)
    if table is None:
        return _created(lake, sort, schema.remove_metadata(), TIME[sort], {VERSION: str(SCHEMA_VERSION)})
    if (version := table.properties.get(VERSION)) != str(SCHEMA_VERSION):
        what = "has no audit records" if version is None else f"has records of schema version {version}"
        raise PipelineError(f"{lake.address}: the table {sort} {what}")
    table.evolve(schema)
    return table


def _created(
    lake: Lake, name: str, schema: pa.Schema, day_of: str | None, properties: dict[str, str]
) -> LakeTable:
    try:
        return lake.create(name, schema, day_of, properties)
    except PipelineError:
        # Another process may have made it at the same time.
        if (table := lake.load(name)) is not None:
            return table
        raise


def _done(lake: Lake, sort: Sort) -> set[str]:
    """Names of files that were read before."""
    table = lake.load(FILES)
    found: set[str] = set()
    for file in table.files() if table is not None else ():
        assert table is not None
        with table.open(file.path) as source:
            rows = pq.read_table(source, columns=["sort", "name"])
        found.update(rows.filter(pc.equal(rows["sort"], sort))["name"].to_pylist())
    return found


def _note(lake: Lake, sort: Sort, names: dict[str, int]) -> None:
    """Remember files whose records are in the table."""
    if not names:
        return
    now = datetime.now(UTC)
    rows = [{"sort": sort, "name": name, "records": count, "time": now} for name, count in names.items()]
    for _ in range(_TRIES):
        table = lake.load(FILES) or _created(lake, FILES, FILES_SCHEMA, None, {})
        there = table.files()
        few = there if len(there) >= _MANY else []
        new = write(table, [_rows(table, few, rows)], None)
        try:
            table.commit([new], few)
        except Conflict:
            table.remove(new.path)
            continue
        return
    raise PipelineError(f"{lake.address}: others changed the table of files {_TRIES} times: run it again")


def _rows(table: LakeTable, files: Iterable[object], rows: list[dict[str, object]]) -> pa.Table:
    """The rows of files, and others."""
    found = [pa.Table.from_pylist(rows, FILES_SCHEMA)]
    for file in files:
        with table.open(file.path) as source:  # type: ignore[attr-defined]
            found.append(pq.read_table(source).cast(FILES_SCHEMA))
    return pa.concat_tables(found)


def _tidy(lake: Lake, sort: Sort, days: set[date]) -> int:
    """Few files of many. Who meets another's commit leaves it to the next time."""
    table = lake.load(sort)
    if table is None or not days:
        return 0
    try:
        return rearrange(table, sort, days)
    except Conflict:
        return 0


# -- what is new -----------------------------------------------------------------------------


def _batches(source: str | RecordSource, sort: Sort, paths: Sequence[str]) -> Iterator[FileBatch]:
    """Of Parquet files, in their order."""
    for some in in_groups(source, paths, _BATCH_BYTES, _BATCH_FILES):
        if not isinstance(source, str):
            source.copy(some)
        seen = look_into_all(some, sort)
        refuse_later({path: look.versions for path, look in seen.items()})
        skipped = [*skipped_of(seen)]
        held: list[pa.Table] = []
        size = 0
        names: dict[str, int] = {}
        for path in some:
            if seen[path].why is not None:
                continue
            try:
                tables = records_of(path, sort)
            except Damaged as error:
                skipped.append(Skipped(path, str(error)))
                continue
            count = 0
            for table in tables:
                held.append(table)
                count += len(table)
                size += held[-1].nbytes
                if size > _MOST_BYTES:
                    yield FileBatch(_sorted(held, sort), names, ())
                    held, size, names = [], 0, {}
            names[name_of(path)] = count
        if not isinstance(source, str):
            skipped = [Skipped(source.name(one.path), one.why) for one in skipped]
            source.drop(some)
        yield FileBatch(_sorted(held, sort), names, tuple(skipped))


def _of_lines(source: str | RecordSource, sort: Sort, paths: Sequence[str]) -> Iterator[FileBatch]:
    """Of files of JSON lines, which are read each time."""
    for path in paths:
        if not isinstance(source, str):
            source.copy([path])
        name = path if isinstance(source, str) else source.name(path)
        in_order, broken = readable([path])
        seen = LinesSeen()
        batches = (batch for here in in_order for batch in read_lines(here, sort, seen))
        for records in together(batches, _OF_LINES):
            refuse_later({path: seen.versions})
            yield FileBatch(_sorted([fitted(records, sort)], sort), {}, ())
        skipped = (Skipped(name, one.why) for one in (*broken, *seen.skipped(path)))
        yield FileBatch(_sorted([], sort), {}, tuple(skipped))


def _sorted(tables: list[pa.Table], sort: Sort) -> pa.Table:
    empty = fitted(arrow_schema(TABLES[sort]).empty_table(), sort)
    return each_once([empty, *tables])
