"""What a file of records has to have, in Parquet and in lines of JSON, whichever engine reads it.

Each column that is not ``later`` is there, with its own type; those that are never null have a value in each
record. A file, or a line, that is otherwise is no record, and is named: a missing column that were null in
silence would change answers, and a record without an id would be in a table twice. Columns that no record has
are for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from amqpgate.pipeline.pages import damage
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort, arrow_schema

#: How many records of which version a file has.
Versions: TypeAlias = Counter[int]

#: Why a file is left out that ends too early, or has bytes that nobody has written.
DAMAGED: Final = "is cut off or damaged"
#: Why a file cannot be read that was there when its folder was listed.
GONE: Final = "is gone"
#: Times of records are before, and from 1970 on: so they are times in every zone and program.
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)

#: Of times of records. Those of 96 bits, which say no zone and are UTC, are read as such.
UNIT: Final = "us"
#: Records of a gateway's file: it is closed at 32 MiB, of which a record has more than 32 bytes.
MOST_OF_GATEWAYS: Final = 1 << 20

#: Bytes of them, with texts that repeat as often as they do.
_MOST_BYTES: Final = 256 << 20

#: What columns of tables may have in the place of what.
_WIDER: Final = ((pa.int32(), pa.int16()), (pa.timestamp(UNIT), pa.timestamp(UNIT, tz="UTC")))
#: So many columns are named.
_MOST_NAMED: Final = 4
_VERSION: Final = "schema_version"
#: Bytes of a column that are read together.
_PART: Final = 1 << 20


@attrs.frozen
class Skipped:
    """A file, or lines of one, that is left out."""

    path: str
    why: str


@attrs.frozen
class Look:
    """What a file has, or why it is left out. Only one that is read has its ``columns``."""

    versions: Versions = attrs.field(factory=Counter)
    why: str | None = None
    columns: frozenset[str] = frozenset()


@cache
def _schema(sort: Sort) -> pa.Schema:
    return arrow_schema(TABLES[sort])


@cache
def required(sort: Sort) -> tuple[str, ...]:
    """The columns that are never null."""
    return tuple(field.name for field in attrs.fields(TABLES[sort]) if not field.metadata["null"])


def look_into(source: str | pa.Buffer, sort: Sort, *, widened: bool = False, most: int | None = None) -> Look:
    """What a Parquet file has, by its footer, and where that is silent by its columns. ``widened``: small
    numbers may have 32 bits, as in tables of Iceberg, which has none smaller, and times 96, as Spark writes
    them into tables of Delta. ``most``: records that it may have, for whoever has all of them in memory."""
    try:
        with pq.ParquetFile(source, coerce_int96_timestamp_unit=UNIT) as file:
            found = file.schema_arrow
            names = found.names
            if most is not None and file.metadata.num_rows > most:
                return Look(why=f"has {file.metadata.num_rows:,} records, which no file of a gateway has")
            if _VERSION in names and pa.types.is_integer(found.field(_VERSION).type):
                versions = _versions(file, source)
                if max(versions, default=0) > SCHEMA_VERSION:
                    return Look(versions)
            why = misfit(found, sort, widened=widened)
            if why := why or _without_value(file, source, sort) or _out_of_time(file, source, sort):
                return Look(why=why)
            return Look(versions, columns=_columns(tuple(names)))
    except FileNotFoundError:
        return Look(why=GONE)
    except UnicodeEncodeError:
        return Look(why="has a name that is not UTF-8")
    except PermissionError as error:
        return Look(why=f"cannot be read: {error.strerror}")
    except (pa.ArrowException, OSError):
        return Look(why=DAMAGED)


def whole(source: str | pa.Buffer, sort: Sort) -> pa.Table | str:
    """All records of a Parquet file that was looked into, as they are written; or why it is left out."""
    if (why := damage(source)) is not None:
        return f"is damaged: {why}"
    too_much = f"has more than {_MOST_BYTES >> 20} MiB of records, which no file of a gateway has"
    schema = _schema(sort)
    parts = [schema.empty_table()]
    size = 0
    try:
        with _in_parts(source) as file:
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            if sum(group.total_byte_size for group in groups) > _MOST_BYTES:
                return too_much
            names = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=names):
                size += sum(map(decoded_bytes, batch.columns))
                if size > _MOST_BYTES:
                    return too_much
                columns = [
                    batch[field.name].cast(field.type)
                    if field.name in names
                    else pa.nulls(len(batch), field.type)
                    for field in schema
                ]
                parts.append(pa.table(columns, schema))
    except (pa.ArrowException, OSError):
        return "is damaged"
    return pa.concat_tables(parts)


def is_whole(path: str) -> bool:
    """Whether all of a Parquet file can be read."""
    try:
        with _in_parts(path) as file:
            for batch in file.iter_batches():
                batch.validate(full=True)
    except (pa.ArrowException, OSError):
        return False
    return True


def _in_parts(source: str | pa.Buffer) -> pq.ParquetFile:
    """A file whose pages are checked. Of a column there is a page at a time, and a text that repeats is there
    once, in a dictionary: a few bytes can stand for a billion long ones."""
    metadata = pq.read_metadata(source)
    # Of the first row group: the ``schema`` of a footer refers back to it.
    group = metadata.row_group(0) if metadata.num_row_groups else None
    columns = map(group.column, range(group.num_columns)) if group else ()
    texts = [column.path_in_schema for column in columns if column.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=texts,
        page_checksum_verification=True,
        buffer_size=_PART,
        coerce_int96_timestamp_unit=UNIT,
    )


def decoded_bytes(column: pa.Array) -> int:
    """What it takes without a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    # It loads numpy, which verbs on DuckDB do without.
    import pyarrow.compute as pc

    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths).as_py() or 0) + 4 * len(column)


@lru_cache(maxsize=16)
def _columns(names: tuple[str, ...]) -> frozenset[str]:
    """Once for all files that have the same."""
    return frozenset(names)


def misfit(found: pa.Schema, sort: Sort, *, widened: bool = False) -> str | None:
    """What is wrong with the columns of a file."""
    wanted = [field for field in attrs.fields(TABLES[sort]) if not field.metadata["later"]]
    missing = [field.name for field in wanted if field.name not in found.names]
    if len(missing) == len(wanted):
        return "has no audit records"
    if missing:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        return f"lacks the columns {', '.join(missing[:_MOST_NAMED])}{more}"
    # Engines differ on which of them is meant, and Spark does not tell large letters from small ones.
    names = Counter(map(str.lower, found.names))
    for field in _schema(sort):
        if field.name not in found.names:
            continue
        if names[field.name] > 1:
            return f"has the column {field.name} twice"
        type_ = _plain(found.field(field.name).type)
        if type_ != field.type and not (widened and (type_, field.type) in _WIDER):
            return f"has {type_} in the column {field.name}, not {field.type}"
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    """What files say of all kinds of text and bytes."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _without_value(file: pq.ParquetFile, source: str | pa.Buffer, sort: Sort) -> str | None:
    for name in required(sort):
        nulls = sum(
            known.null_count
            if known is not None and known.has_null_count
            else sum(column.null_count for column in _column(source, number, name))
            for number, known in enumerate(_statistics(file, name))
        )
        if nulls:
            return f"has no {name} in {nulls} of {file.metadata.num_rows} records"
    return None


def _out_of_time(file: pq.ParquetFile, source: str | pa.Buffer, sort: Sort) -> str | None:
    """Whether a time is none that programs know."""
    latest = int(LATEST.timestamp() * 1e6)
    for name in (field.name for field in _schema(sort) if pa.types.is_timestamp(field.type)):
        for number, known in enumerate(_statistics(file, name)):
            if known is not None and known.has_min_max:
                least, most = known.min_raw, known.max_raw
            else:
                # It loads numpy, and files of gateways say so themselves.
                import pyarrow.compute as pc

                ends = [pc.min_max(part.cast(pa.int64())).as_py() for part in _column(source, number, name)]
                least = min((end["min"] for end in ends if end["min"] is not None), default=0)
                most = max((end["max"] for end in ends if end["max"] is not None), default=0)
            if not 0 <= least <= most < latest:
                return f"has a time before 1970 or after {LATEST.year - 1} in the column {name}"
    return None


def _versions(file: pq.ParquetFile, source: str | pa.Buffer) -> Versions:
    found: Versions = Counter()
    for number, known in enumerate(_statistics(file, _VERSION)):
        if known is not None and known.has_min_max and known.min == known.max:
            found[known.min] += file.metadata.row_group(number).num_rows
            continue
        for column in _column(source, number, _VERSION):
            counts = column.drop_null().value_counts().to_pylist()
            found.update({one["values"]: one["counts"] for one in counts})
    return found


def _column(source: str | pa.Buffer, number: int, name: str) -> Iterator[pa.Array]:
    """Of a row group."""
    with _in_parts(source) as file:
        for batch in file.iter_batches(row_groups=[number], columns=[name]):
            yield batch[name]


def _statistics(file: pq.ParquetFile, name: str) -> list[pq.Statistics | None]:
    """Of a column, by row group. Columns within others have numbers, too."""
    # The ``schema`` of a footer refers back to it: it would stay until Python looks for cycles.
    at = file.reader.column_paths.index([name])
    return [file.metadata.row_group(number).column(at).statistics for number in range(file.num_row_groups)]
