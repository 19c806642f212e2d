"""The pages of a Parquet file, held against their checksums. DuckDB reads them without.

A column of a row group is a run of pages. Before each stands its header, in the compact protocol of Thrift:
numbers of fields, and values whose kinds say where they end. Headers have no checksum; how many values they
claim is held against the footer.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

#: Kinds of values in the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = (*range(1, 11), 12)
_INTEGERS: Final = (_I16, _I32, _I64)
#: Fields of a header: its kind, its size unpacked and in the file, its checksum.
_KIND, _UNPACKED, _SIZE, _CRC = range(1, 5)
#: The header of each kind of page that has values, in the field of that number: how many it has comes first.
_DATA: Final = {0: 5, 3: 8}
#: Structures within structures.
_DEEPEST: Final = 4
_LONGEST: Final = 64
#: How long a header is, with the least and the greatest of its values: mostly; and at most, as Arrow has it.
_HEADERS: Final = (1 << 10, 1 << 16, 1 << 24)
#: A page is unpacked as a whole by all who read it. Gateways and ``compact`` write some of 1 MiB, and DuckDB
#: of 100 MB.
_LARGEST: Final = 256 << 20
#: Bytes of a file that are read together.
_PART: Final = 1 << 20

_Fields: TypeAlias = "dict[int, int | _Fields]"


@attrs.frozen
class _Page:
    """What is said of a page, and the checksum that it has."""

    crc: int | None
    found: int
    values: int
    unpacked: int


def damage(source: str | pa.Buffer) -> str | None:
    """What is wrong with the pages of a file, if anything is: also one that would take too much memory."""
    try:
        footer = pq.read_metadata(source)
        with open(source, "rb", _PART) if isinstance(source, str) else pa.BufferReader(source) as file:
            size = file.seek(0, os.SEEK_END)
            for group in map(footer.row_group, range(footer.num_row_groups)):
                for column in map(group.column, range(group.num_columns)):
                    if not 0 <= column.total_compressed_size <= size:
                        return f"more bytes than the file has in the column {column.path_in_schema}"
                    if (why := _damage_of(file, column)) is not None:
                        return f"{why} in the column {column.path_in_schema}"
    except (pa.ArrowException, OSError) as error:
        return str(error).partition("\n")[0]
    return None


def _damage_of(file: BinaryIO, column: pq.ColumnChunkMetaData) -> str | None:
    values = unpacked = 0
    try:
        begin = column.dictionary_page_offset or column.data_page_offset
        for page in _pages(file, begin, begin + column.total_compressed_size):
            if page.crc is not None and page.found != page.crc & 0xFFFFFFFF:
                return "a page has another checksum"
            if page.unpacked > _LARGEST:
                return f"a page of {page.unpacked >> 20} MiB, more than {_LARGEST >> 20},"
            values += page.values
            unpacked += page.unpacked
    except (LookupError, TypeError, ValueError):
        return "a page has no header"
    if unpacked > column.total_uncompressed_size:
        return "pages are larger than is said"
    return None if values == column.num_values else "pages have another number of values"


def _pages(file: BinaryIO, at: int, end: int) -> Iterator[_Page]:
    """Those in these bytes. Raises ``LookupError``, ``TypeError`` or ``ValueError`` where there are none."""
    while at < end:
        fields, at = _header(file, at, end)
        size = _whole(fields[_SIZE])
        if not 0 <= size <= end - at:
            raise ValueError("a page that is longer than its column")
        number = _DATA.get(_whole(fields[_KIND]))
        values = 0 if number is None else _whole(_within(fields[number])[1])
        crc = _whole(fields[_CRC]) if _CRC in fields else None
        file.seek(at)
        yield _Page(crc, 0 if crc is None else _checksum(file, size), values, _whole(fields[_UNPACKED]))
        at += size


def _header(file: BinaryIO, at: int, end: int) -> tuple[_Fields, int]:
    """That of a page, and where it ends."""
    for most in _HEADERS:
        file.seek(at)
        content = file.read(min(most, end - at))
        try:
            fields, length = _fields(content, 0)
        except IndexError:
            continue
        return fields, at + length
    raise ValueError("a header without end")


def _checksum(file: BinaryIO, left: int) -> int:
    """Of the bytes that come."""
    found = 0
    while left:
        if not (part := file.read(min(left, _PART))):
            raise ValueError("a file that became shorter")
        found, left = zlib.crc32(part, found), left - len(part)
    return found


def _whole(value: int | _Fields) -> int:
    if not isinstance(value, int):
        raise TypeError("a structure where a number is to be")
    return value


def _within(value: int | _Fields) -> _Fields:
    if isinstance(value, int):
        raise TypeError("a number where a structure is to be")
    return value


def _fields(content: bytes, at: int, depth: int = 0) -> tuple[_Fields, int]:
    """The whole numbers of a structure and of those within, by field; and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("structures are too deep")
    found: _Fields = {}
    number = 0
    while byte := content[at]:
        at += 1
        kind = byte & 15
        if byte >> 4:
            number += byte >> 4
        else:
            number, at = _integer(content, at)
        if kind in _INTEGERS:
            found[number], at = _integer(content, at)
        elif kind == _STRUCT:
            found[number], at = _fields(content, at, depth + 1)
        elif kind not in (_TRUE, _FALSE):  # which are their own value
            at = _end_of(content, at, kind)
    return found, at + 1


def _end_of(content: bytes, at: int, kind: int) -> int:
    """Where a value ends that nobody asks for."""
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(content, at)
        return at + length
    raise ValueError(f"a value of kind {kind}")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < _LONGEST:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number that is too long")


def _integer(content: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(content, at)
    return value >> 1 ^ -(value & 1), at
