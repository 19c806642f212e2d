"""Records in parts: what ``compact`` has Spark move and merge, where rows would take several times as long.

A part has records of one gateway for one folder of the table, packed as they are read. Spark brings the parts
of a folder together, in the order of their first ids, and here they become one file. Ids of a gateway rise,
so few parts overlap, and only those are in memory at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from itertools import chain, groupby, pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpgate.pipeline.batches import together
from amqpgate.pipeline.contract import LATEST, UNIT, decoded_bytes, required
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import OTHER_VHOSTS, TIME, key_of
from amqpgate.pipeline.pages import damage
from amqpgate.pipeline.places import LOCAL
from amqpgate.records import TABLES, Sort, arrow_schema

#: The columns of parts. ``records`` is a stream in Arrow's format.
PACKED: Final = "place string, first string, records binary"

#: Bytes of records that are looked at together: some 100,000 rows as they are read, twice that of a part.
_TOGETHER: Final = 64 << 20
#: Rows that are read together: more than a gateway's file has.
_ROWS: Final = 1 << 16
#: Bytes of a file that is read once.
_FEW: Final = 128 << 20
#: Columns that are no dictionaries here, and may be in a file: few bytes of it then stand for many. In rows
#: that are read together they have so many at most.
_UNIQUE: Final = ("record_id", "body")
_LARGEST: Final = 256 << 20
_LATEST: Final = int(LATEST.timestamp() * 1e6)

_ID: Final = "record_id"
_STREAM: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class Damaged(Exception):
    """A file cannot be read to its end: says why."""


@attrs.frozen(eq=False)
class Part:
    """Records, read when they are needed. No id is smaller than ``first``."""

    first: str
    read: Callable[[], pa.Table]


def pack(batches: Iterable[pa.RecordBatch], sort: Sort) -> Iterator[pa.RecordBatch]:
    """Records as parts."""
    return pack_tables((fitted(table, sort) for table in together(batches, _TOGETHER)), sort)


def pack_files(batches: Iterable[pa.RecordBatch], sort: Sort) -> Iterator[pa.RecordBatch]:
    """Of files on this machine (``path``), the records as parts. Raises ``ValueError`` for a damaged one."""

    def tables() -> Iterator[pa.Table]:
        for path in chain.from_iterable(batch["path"].to_pylist() for batch in batches):
            try:
                yield from records_of(path, sort)
            except Damaged as error:
                raise ValueError(f"{path} {error}") from error

    return pack_tables(tables(), sort)


def pack_tables(tables: Iterable[pa.Table], sort: Sort) -> Iterator[pa.RecordBatch]:
    """The same of tables with the columns of a sort: those of many small files make few parts."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= _TOGETHER:
            yield _packed(_split(pa.concat_tables(held), sort))
            held, size = [], 0
    if held:
        yield _packed(_split(pa.concat_tables(held), sort))


def records_of(path: str, sort: Sort) -> Iterable[pa.Table]:
    """The records of a file on this machine, some at a time of a large one, which is read once before: it is
    taken as a whole, or not at all. Raises ``Damaged``."""
    here = path.removeprefix(LOCAL)
    if (why := damage(here)) is not None:
        raise Damaged(f"is damaged: {why}")
    held: list[pa.Table] = []
    size = 0
    try:
        with opened(here, sort) as file:
            for table in tables_of(file, sort):
                # What a file says of its size is a claim.
                size += table.nbytes
                if size <= _FEW:
                    held.append(table)
                else:
                    held.clear()
    except (OSError, pa.ArrowException) as error:
        raise Damaged("is damaged") from error
    return held if size <= _FEW else _in_turn(path, sort)


def _in_turn(path: str, sort: Sort) -> Iterator[pa.Table]:
    try:
        with opened(path.removeprefix(LOCAL), sort) as file:
            yield from tables_of(file, sort)
    except (OSError, pa.ArrowException) as error:
        raise PipelineError(f"{path} is damaged since it was looked into: {error}") from error


def unpack(batches: Iterable[pa.RecordBatch], sort: Sort) -> Iterator[tuple[str, Iterator[Part]]]:
    """Parts that come sorted by place: by place."""
    rows = (
        (place, Part(first, partial(unpacked, records.as_buffer(), sort)))
        for batch in batches
        for place, first, records in zip(
            batch["place"].to_pylist(), batch["first"].to_pylist(), batch["records"], strict=True
        )
    )
    for place, parts in groupby(rows, key=itemgetter(0)):
        yield place, (part for _, part in parts)


def merge(new: Iterable[Part], old: Path | None, sort: Sort, made: Path) -> None:
    """Write a file with the records of parts, which are sorted, and of a file: by id, and each once."""
    with ExitStack() as stack:
        parts: list[Iterable[Part]] = [new]
        if old:
            file = stack.enter_context(opened(old, sort))
            parts.append(sorted(parts_of(file, sort), key=attrgetter("first")))
        # Spark may run a task twice, even at the same time.
        unfinished = made.with_name(f"_{uuid4().hex}")
        made.parent.mkdir(parents=True, exist_ok=True)
        writer = pq.ParquetWriter(
            unfinished, _schema(sort), compression="zstd", store_schema=False, write_page_checksum=True
        )
        with writer:
            for table in merged(heapq.merge(*parts, key=attrgetter("first"))):
                writer.write_table(table, row_group_size=len(table))
        unfinished.replace(made)


def merged(parts: Iterable[Part]) -> Iterator[pa.Table]:
    """The records of sorted parts, by id, and each once."""
    held: list[pa.Table] = []
    size, enough = 0, _TOGETHER
    coming = iter(parts)
    following = next(coming, None)
    while following is not None:
        held.append(following.read())
        size += held[-1].nbytes
        following = next(coming, None)
        if following is not None and size < enough:
            continue
        table = each_once(held)
        smaller = pc.less(table[_ID], following.first) if following else None
        end = len(table) if smaller is None else pc.sum(smaller, min_count=0).as_py()
        if end:
            yield table.slice(0, end)
        held = [table.slice(end)]
        size = held[0].nbytes
        # What overlaps with all that comes would be sorted with each part again.
        enough = _TOGETHER + 2 * size


def _split(table: pa.Table, sort: Sort) -> dict[str, list[pa.Table]]:
    """By place and gateway."""
    table = table.unify_dictionaries().combine_chunks()
    places, found = _places(table, sort)
    gateways = table["gateway"].combine_chunks()
    codes = found * (1 + len(gateways.dictionary)) + gateways.indices.fill_null(-1).to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    if len(ends):
        table = table.take(pa.array(order))
    parts: dict[str, list[pa.Table]] = {}
    for begin, end in pairwise([0, *ends.tolist(), len(table)]):
        if begin < end:
            parts.setdefault(places[found[order[begin]]], []).append(table.slice(begin, end - begin))
    return parts


def _places(table: pa.Table, sort: Sort) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Folders of the table, and of each record in which of them it is."""
    days = pc.dictionary_encode(table[TIME[sort]].combine_chunks().cast(pa.date32()))
    dates = [f"date={day}" for day in days.dictionary.to_pylist()]
    numbers = days.indices.to_numpy().astype(np.int64)
    if sort == "events":
        return dates, numbers
    names = table["vhost"].combine_chunks()
    keys = [*map(key_of, names.dictionary.to_pylist()), OTHER_VHOSTS]
    none = len(keys) - 1
    # Who may not open a virtual host can name as many as he likes.
    opened = pc.equal(table["operation"], "connection.open").combine_chunks().fill_null(False)
    named = np.where(opened.to_numpy(zero_copy_only=False), none, names.indices.fill_null(none).to_numpy())
    distinct = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    pairs = numbers * len(distinct) + np.array([distinct[key] for key in keys])[named]
    # Of all days and keys only those that are there together.
    there, found = np.unique(pairs, return_inverse=True)
    known = [*distinct]
    places = [f"{dates[pair // len(known)]}/vhost_key={known[pair % len(known)]}" for pair in there.tolist()]
    return places, found


def _packed(parts: dict[str, list[pa.Table]]) -> pa.RecordBatch:
    rows = [(place, part) for place, several in parts.items() for part in several]
    return pa.record_batch(
        {
            "place": pa.array([place for place, _ in rows], pa.string()),
            "first": pa.array([pc.min(part[_ID]).as_py() for _, part in rows], pa.string()),
            "records": pa.array([_bytes(part) for _, part in rows], pa.binary()),
        }
    )


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    table = _plain(table)
    with pa.ipc.new_stream(sink, table.schema, options=_STREAM) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries that have more in them than the column."""
    for number, name in enumerate(table.column_names):
        values = table[name].chunk(0)
        if pa.types.is_dictionary(values.type) and len(values.dictionary) > len(values):
            table = table.set_column(number, name, values.dictionary_decode())
    return table


def unpacked(records: pa.Buffer, sort: Sort) -> pa.Table:
    """The records of a part."""
    with pa.ipc.open_stream(records) as stream:
        return fitted(stream.read_all(), sort)


def opened(path: str | Path | pa.NativeFile, sort: Sort) -> pq.ParquetFile:
    """A file whose texts that repeat are read as dictionaries, and whose pages are checked."""
    metadata = pq.read_metadata(path)
    there = {name for name in metadata.schema.names if _schema(sort).get_field_index(name) >= 0}
    repeating = [
        name for name in there if name in _UNIQUE or pa.types.is_dictionary(_schema(sort).field(name).type)
    ]
    # Of large columns not all is in memory.
    return pq.ParquetFile(
        path,
        metadata=metadata,
        read_dictionary=repeating,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit=UNIT,
        buffer_size=1 << 20,
    )


def tables_of(file: pq.ParquetFile, sort: Sort) -> Iterator[pa.Table]:
    """Records of a file, some at a time. Raises ``ArrowException`` where it is damaged, and ``Damaged`` where
    its records are none, whatever its statistics say."""
    names = [name for name in _schema(sort).names if name in file.schema_arrow.names]
    batches = (_checked(batch, sort) for batch in file.iter_batches(_ROWS, columns=names))
    for table in together(batches, _TOGETHER):
        yield fitted(table, sort)


def _checked(batch: pa.RecordBatch, sort: Sort) -> pa.RecordBatch:
    # Places in a dictionary are not looked at before.
    batch.validate(full=True)
    for name in required(sort):
        if batch[name].null_count:
            raise Damaged(f"has a record without {name}")
    for field in _schema(sort):
        if pa.types.is_timestamp(field.type) and field.name in batch.schema.names:
            ends = pc.min_max(batch[field.name].cast(pa.int64())).as_py()
            if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < _LATEST:
                raise Damaged(f"has a time in {field.name} that is none")
    for name in _UNIQUE:
        if name in batch.schema.names and decoded_bytes(batch[name]) > _LARGEST:
            raise Damaged(f"has more than {_LARGEST >> 20} MiB of {name} in {len(batch):,} records")
    return batch


def parts_of(file: pq.ParquetFile, sort: Sort) -> Iterator[Part]:
    """Row groups."""
    at = file.metadata.schema.names.index(_ID)
    for number in range(file.num_row_groups):
        known = file.metadata.row_group(number).column(at).statistics
        first = known.min if known and known.has_min_max else ""
        yield Part(first, partial(row_group, file, number, sort))


def row_group(file: pq.ParquetFile, number: int, sort: Sort) -> pa.Table:
    """Records of one row group."""
    return fitted(file.read_row_group(number), sort)


def each_once(tables: list[pa.Table]) -> pa.Table:
    """The records by id, and each once."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    ids = table[_ID].combine_chunks()
    if len(ids) > 1 and not pc.all(pc.less(ids[:-1], ids[1:])).as_py():
        table = table.sort_by(_ID)
        ids = table[_ID].combine_chunks()
        other = pc.not_equal(ids[:-1], ids[1:])
        table = table.filter(pa.concat_arrays([pa.array([True]), other]))
    return table


@cache
def _schema(sort: Sort) -> pa.Schema:
    """The columns of a sort, any of which may be null; of texts that repeat each is there once."""
    exact = arrow_schema(TABLES[sort])
    texts = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field(field.name, texts if field.type == pa.string() and field.name != _ID else field.type)
            for field in exact
        ],
        exact.metadata,
    )


def fitted(table: pa.Table, sort: Sort) -> pa.Table:
    """With the columns of the sort: older files have none of what came later."""

    def column(field: pa.Field) -> pa.Array | pa.ChunkedArray:
        if field.name not in table.column_names:
            return pa.nulls(len(table), field.type)
        found = table[field.name]
        return found if found.type == field.type else found.cast(field.type)

    return pa.table([column(field) for field in _schema(sort)], _schema(sort))
