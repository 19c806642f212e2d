"""What a file of records has to have, in Parquet and in lines of JSON, whichever engine reads it.

Each column that is not ``later`` is there, with its own type; those that are never null have a value in each
record. A file, or a line, that is otherwise is no record, and is named: a missing column that were null in
silence would change answers, and a record without an id would be in a table twice. Columns that no record has
are for others.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from amqpgate.records import SCHEMA_VERSION, TABLES, Sort, arrow_schema

#: How many records of which version a file has.
Versions: TypeAlias = Counter[int]

#: So many columns are named.
_MOST_NAMED: Final = 4
_VERSION: Final = "schema_version"


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
def required(sort: Sort) -> tuple[str, ...]:
    """The columns that are never null."""
    return tuple(field.name for field in attrs.fields(TABLES[sort]) if not field.metadata["null"])


def look_into(source: str | pa.Buffer, sort: Sort, *, widened: bool = False) -> Look:
    """What a Parquet file has, by its footer, and where that is silent by its columns. ``widened``: small
    numbers may have 32 bits, as in tables of Iceberg, which has none smaller."""
    try:
        with pq.ParquetFile(source) as file:
            names = file.schema_arrow.names
            if _VERSION in names and pa.types.is_integer(file.schema_arrow.field(_VERSION).type):
                versions = _versions(file)
                if max(versions, default=0) > SCHEMA_VERSION:
                    return Look(versions)
            if why := misfit(file.schema_arrow, sort, widened=widened) or _without_value(file, sort):
                return Look(why=why)
            return Look(versions, columns=frozenset(names))
    except (pa.ArrowException, OSError):
        return Look(why="is cut off or damaged")


def whole(source: str | pa.Buffer, sort: Sort) -> pa.Table | None:
    """All records of a Parquet file that was looked into, as they are written; none of a damaged one."""
    schema = arrow_schema(TABLES[sort])
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            found = file.read([name for name in schema.names if name in file.schema_arrow.names])
    except (pa.ArrowException, OSError):
        return None
    columns = [
        found[field.name].cast(field.type)
        if field.name in found.column_names
        else pa.nulls(len(found), field.type)
        for field in schema
    ]
    return pa.table(columns, schema)


def is_whole(path: str) -> bool:
    """Whether all of a Parquet file can be read."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number)
    except (pa.ArrowException, OSError):
        return False
    return True


def misfit(found: pa.Schema, sort: Sort, *, widened: bool = False) -> str | None:
    """What is wrong with the columns of a file."""
    wanted = [field for field in attrs.fields(TABLES[sort]) if not field.metadata["later"]]
    missing = [field.name for field in wanted if field.name not in found.names]
    if len(missing) == len(wanted):
        return "has no audit records"
    if missing:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        return f"lacks the columns {', '.join(missing[:_MOST_NAMED])}{more}"
    for field in arrow_schema(TABLES[sort]):
        if field.name not in found.names:
            continue
        type_ = _plain(found.field(field.name).type)
        if type_ != field.type and not (widened and (type_, field.type) == (pa.int32(), pa.int16())):
            return f"has {type_} in the column {field.name}, not {field.type}"
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    """What files say of all kinds of text and bytes."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _without_value(file: pq.ParquetFile, sort: Sort) -> str | None:
    for name in required(sort):
        nulls = sum(
            known.null_count
            if known is not None and known.has_null_count
            else file.read_row_group(number, [name])[name].null_count
            for number, known in enumerate(_statistics(file, name))
        )
        if nulls:
            return f"has no {name} in {nulls} of {file.metadata.num_rows} records"
    return None


def _versions(file: pq.ParquetFile) -> Versions:
    found: Versions = Counter()
    for number, known in enumerate(_statistics(file, _VERSION)):
        if known is not None and known.has_min_max and known.min == known.max:
            found[known.min] += file.metadata.row_group(number).num_rows
            continue
        column = file.read_row_group(number, [_VERSION])[_VERSION]
        found.update({one["values"]: one["counts"] for one in column.drop_null().value_counts().to_pylist()})
    return found


def _statistics(file: pq.ParquetFile, name: str) -> list[pq.Statistics | None]:
    """Of a column, by row group. Columns within others have numbers, too."""
    columns = file.metadata.schema
    at = next(number for number in range(len(columns)) if columns.column(number).path == name)
    return [file.metadata.row_group(number).column(at).statistics for number in range(file.num_row_groups)]
