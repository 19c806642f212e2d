"""Records in lines of JSON, read by Python whichever engine asks: so all take the same lines for records.

A file is read block by block and handed on batch by batch, however long it is. Lines have a longest length,
and packed files a largest size: whoever writes to the folder chooses what is in them.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO, Final, NoReturn, TypeAlias, cast

import attrs
import pyarrow

from amqpgate.pipeline.contract import DAMAGED, GONE, LATEST, Skipped, Versions, required
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import LINE, refuse_gone
from amqpgate.pipeline.places import LOCAL
from amqpgate.records import TABLES, Sort, arrow_schema

#: Bytes of a line. A gateway's longest have a body of 1 MiB, which is a third longer as base64, and headers.
LONGEST: Final = 8 << 20
#: A packed file unpacks to at most so many times its size: a gateway's records to 20 or 30 times, the same
#: one again and again to 400.
MOST_UNPACKED: Final = 500
#: So many bytes it may always have.
ALWAYS_UNPACKED: Final = 1 << 30

_BLOCK: Final = 1 << 20
#: What a batch has at most, about.
_ROWS, _BYTES = 10_000, 16 << 20
_BOM: Final = b"\xef\xbb\xbf"

#: A line's number and its bytes; None of one that is too long. Blank ones are left out.
_Line: TypeAlias = "tuple[int, bytes | None]"


@attrs.define
class LinesSeen:
    """How many records of which version were in the lines so far, how many lines are no record of any sort,
    and which is the first of those."""

    versions: Versions = attrs.field(factory=Counter)
    wrong: int = 0
    first: int | None = None

    def skipped(self, path: str) -> tuple[Skipped, ...]:
        """What is told of a file with these."""
        if not self.wrong:
            return ()
        where = "" if self.first is None else f", the first is line {self.first}"
        return (Skipped(path, f"{self.wrong} lines are no audit records{where}"),)


def damage(path: str) -> str | None:
    """Why a file of this machine cannot be read to its end, if so. One that is packed is unpacked for that:
    of a damaged one nothing is taken, as of Parquet."""
    here = path.removeprefix(LOCAL)
    try:
        most = max(ALWAYS_UNPACKED, MOST_UNPACKED * os.stat(here).st_size)
        with pyarrow.input_stream(here, compression="detect") as file:
            if not isinstance(file, pyarrow.CompressedInputStream):
                return None
            while block := file.read(_BLOCK):
                most -= len(block)
                if most < 0:
                    return f"unpacks to more than {MOST_UNPACKED} times its size"
    except FileNotFoundError:
        return GONE
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    except (OSError, pyarrow.ArrowException):
        return DAMAGED
    return None


def readable(paths: Iterable[str]) -> tuple[list[str], tuple[Skipped, ...]]:
    """Files of this machine that can be read to their ends, and the others. Raises ``PipelineError`` for one
    that is gone."""
    whys = {path: damage(path) for path in paths}
    refuse_gone(whys)
    broken = (Skipped(path, why) for path, why in whys.items() if why is not None)
    return [path for path, why in whys.items() if why is None], tuple(broken)


def read_lines(path: str, sort: Sort, seen: LinesSeen) -> Iterator[pyarrow.RecordBatch]:
    """The records of a sort in a file of this machine. Raises ``PipelineError`` where it cannot be read."""
    try:
        with pyarrow.input_stream(path.removeprefix(LOCAL), compression="detect") as file:
            yield from batches_of(_lines(cast("BinaryIO", file)), sort, seen)
    except (OSError, pyarrow.ArrowException) as error:
        raise PipelineError(f"{path} {DAMAGED}: {error}") from error


def batches_of(
    lines: Iterable[tuple[int | None, bytes | None]], sort: Sort, seen: LinesSeen
) -> Iterator[pyarrow.RecordBatch]:
    """The records of a sort in lines, which have numbers where somebody knows them."""
    schema = arrow_schema(TABLES[sort])
    rows: list[dict[str, object]] = []
    size = 0
    for number, line in lines:
        try:
            row = _row(line, sort)
        except (ValueError, KeyError, TypeError, RecursionError):
            if not seen.wrong:
                seen.first = number
            seen.wrong += 1
            continue
        if row is None:
            continue
        seen.versions[cast("int", row["schema_version"])] += 1
        rows.append(row)
        size += len(line or b"")
        if len(rows) == _ROWS or size > _BYTES:
            yield pyarrow.RecordBatch.from_pylist(rows, schema)
            rows, size = [], 0
    if rows:
        yield pyarrow.RecordBatch.from_pylist(rows, schema)


def _lines(file: BinaryIO) -> Iterator[_Line]:
    number, rest, is_long = 0, b"", False
    while block := file.read(_BLOCK):
        if not number and not rest:
            block = block.removeprefix(_BOM)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            number += 1
            if is_long:
                yield number, None
            elif not line.isspace() and line:
                yield number, line
            is_long = False
        if len(rest) > LONGEST:
            rest, is_long = b"", True
    if is_long or rest.strip():
        yield number + 1, None if is_long else rest


def _row(line: bytes | None, sort: Sort) -> dict[str, object] | None:
    """A record's columns; None of another sort. Raises for what is no record."""
    if line is None or len(line) > LONGEST:
        raise ValueError("too long")
    said = _JSON.decode(line.decode())
    if said["record"] != LINE[sort]:
        if said["record"] not in LINE.values():
            raise ValueError("of others")
        return None
    row: dict[str, object] = {}
    for name, plain, take, is_required in _columns(sort):
        value = said.get(name)
        if value is None:
            if is_required:
                raise ValueError("no record")
        elif type(value) is not plain:
            value = take(value)
        row[name] = value
    if b"\\u" in line:
        # JSON may name half a character, which no table can hold.
        "".join(value for value in row.values() if isinstance(value, str)).encode()
    return row


@cache
def _columns(sort: Sort) -> tuple[tuple[str, type | None, Callable[[object], object], bool], ...]:
    """Each column's name, of which type a value is as it should be, what makes one of others, and whether all
    records have one. Known once: a record has some forty."""
    needed = required(sort)
    return tuple(
        [(field.name, *_reader(field.type), field.name in needed) for field in arrow_schema(TABLES[sort])]
    )


def _reader(kind: pyarrow.DataType) -> tuple[type | None, Callable[[object], object]]:
    if pyarrow.types.is_timestamp(kind):
        return None, _time
    if pyarrow.types.is_binary(kind):
        return None, _bytes
    if pyarrow.types.is_integer(kind):
        return None, partial(_whole, beyond=1 << kind.bit_width - 1)
    plain = bool if pyarrow.types.is_boolean(kind) else str
    return plain, partial(_other, plain)


def _time(value: object) -> datetime:
    moment = datetime.fromisoformat(cast("str", value))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not _EARLIEST <= moment < LATEST:
        raise ValueError(f"{value} is no time of a record")
    return moment


def _bytes(value: object) -> bytes:
    return base64.b64decode(cast("str", value), validate=True)


def _whole(value: object, *, beyond: int) -> int:
    if type(value) is not int:
        return _other(int, value)
    if not -beyond <= value < beyond:
        raise ValueError(f"{value} is too large")
    return value


def _other(plain: type, value: object) -> NoReturn:
    raise TypeError(f"{value!r} is no {plain.__name__}")


def _object(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    """Programs differ on which of two values with one name counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_EARLIEST: Final = datetime.fromtimestamp(0, UTC)
_JSON: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)


# -- for Spark -------------------------------------------------------------------------------

#: What is in a file, or in some of its lines: how many records of a version; of none where that is null.
LOOK: Final = "path string, version int, records bigint, first bigint"


def looks_of_files(batches: Iterable[pyarrow.RecordBatch], sort: Sort) -> Iterator[pyarrow.RecordBatch]:
    """``LOOK`` of files (``path``)."""
    for path in _paths(batches):
        seen = LinesSeen()
        for _ in read_lines(path, sort, seen):
            pass
        yield _look(path, seen)


def rows_of_files(batches: Iterable[pyarrow.RecordBatch], sort: Sort) -> Iterator[pyarrow.RecordBatch]:
    """The records of files."""
    for path in _paths(batches):
        yield from read_lines(path, sort, LinesSeen())


def looks_of_lines(batches: Iterable[pyarrow.RecordBatch], sort: Sort) -> Iterator[pyarrow.RecordBatch]:
    """``LOOK`` of lines (``path``, ``value``)."""
    for path, lines in _by_path(batches):
        seen = LinesSeen()
        for _ in batches_of(lines, sort, seen):
            pass
        yield _look(path, seen)


def rows_of_lines(batches: Iterable[pyarrow.RecordBatch], sort: Sort) -> Iterator[pyarrow.RecordBatch]:
    """The records of lines."""
    for _, lines in _by_path(batches):
        yield from batches_of(lines, sort, LinesSeen())


def _paths(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        yield from batch["path"].to_pylist()


def _by_path(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[str, Iterator[tuple[None, bytes]]]]:
    """Lines with neither numbers nor blanks, of one file after another."""
    for batch in batches:
        pairs = zip(batch["path"].to_pylist(), batch["value"].to_pylist(), strict=True)
        for path, some in groupby(pairs, key=itemgetter(0)):
            yield path, ((None, line) for _, line in some if line.strip())


def _look(path: str, seen: LinesSeen) -> pyarrow.RecordBatch:
    rows = [{"path": path, "version": version, "records": count} for version, count in seen.versions.items()]
    if seen.wrong:
        rows.append({"path": path, "records": seen.wrong, "first": seen.first})
    return pyarrow.RecordBatch.from_pylist(rows, _LOOK)


_LOOK: Final = pyarrow.schema(
    [
        ("path", pyarrow.string()),
        ("version", pyarrow.int32()),
        ("records", pyarrow.int64()),
        ("first", pyarrow.int64()),
    ]
)
