"""Records as Parquet files, as `amqpgate.records` names them."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from array import array
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from amqpgate.records import TABLES, Sort, arrow_schema
from amqpgate.telemetry.audit.pieces import Column, Piece, Repeated
from amqpgate.telemetry.audit.stream import FILE_MODE, Stream, sync_folder

log = logging.getLogger(__name__)

#: A file is closed at so many bytes, so that making it Parquet stays within memory whatever is in it.
_ROLL_BYTES: Final = 32 << 20

_SCHEMAS: Final = {sort: arrow_schema(table) for sort, table in TABLES.items()}


class ParquetSink:
    """Appends to a stream for each sort, and makes a Parquet file of it when it is due."""

    def __init__(
        self, folder: Path, gateway: str, boot: str, *, roll_records: int, roll_interval: float
    ) -> None:
        self._folder, self._name, self._gateway = folder, f"{gateway}-{boot}", gateway
        self._roll_records, self._roll_interval = roll_records, roll_interval
        self._streams: dict[Sort, Stream] = {}
        #: When they were begun, by the monotonic clock.
        self._begun: dict[Sort, float] = {}
        self._numbers: dict[Sort, int] = dict.fromkeys(TABLES, 0)

    def start(self) -> None:
        """``OSError`` where no file can be written."""
        # With the first list pyarrow imports pandas, where that is installed: now, not while others run.
        pa.array([""])
        for sort in TABLES:
            folder = self._folder / sort
            folder.mkdir(exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass

    def recover(self) -> None:
        """Make Parquet of what dead processes of this gateway have left."""
        ours = re.compile(rf"_{re.escape(self._gateway)}-[0-9a-f]{{12}}-[0-9]{{6,}}\.(arrows|parquet)")
        for sort in TABLES:
            for path in sorted(self._folder.glob(f"{sort}/date=*/_*")):
                if ours.fullmatch(path.name) is None:
                    continue
                try:
                    _salvage(path)
                except (OSError, pa.ArrowException) as error:
                    log.warning("audit: %s is left as it is: %s", path, error)

    def write(self, piece: Piece) -> None:
        """Append the piece to a file that outlives this process."""
        batch = batch_of(piece)
        stream = self._streams.get(piece.sort)
        if stream is not None and self._is_full(stream):
            self._roll(piece.sort)
            stream = None
        if stream is None:
            stream = self._begin(piece)
        stream.append(batch)

    def settle(self) -> float | None:
        """Wait for the disk; make Parquet of what is due."""
        due = None
        for sort, stream in list(self._streams.items()):
            stream.sync()
            left = self._begun[sort] + self._roll_interval - time.monotonic()
            if left <= 0 or self._is_full(stream):
                self._roll(sort)
            else:
                due = left if due is None else min(due, left)
        return due

    def close(self) -> None:
        """Make Parquet of all there is."""
        for sort in list(self._streams):
            self._roll(sort)

    def _is_full(self, stream: Stream) -> bool:
        return stream.records >= self._roll_records or stream.byte_count >= _ROLL_BYTES

    def _begin(self, piece: Piece) -> Stream:
        day = datetime.fromtimestamp(piece.begins, UTC).date()
        folder = self._folder / piece.sort / f"date={day}"
        _make_folder(folder)
        # One that could not be begun may have left a file, so its number is not taken again.
        self._numbers[piece.sort] += 1
        name = f"_{self._name}-{self._numbers[piece.sort]:06d}.arrows"
        stream = Stream.create(folder / name, _SCHEMAS[piece.sort])
        self._streams[piece.sort] = stream
        self._begun[piece.sort] = time.monotonic()
        return stream

    def _roll(self, sort: Sort) -> None:
        stream = self._streams[sort]
        if stream.records:
            _make_parquet(stream.table(), stream.path)
        del self._streams[sort]
        stream.discard()


def batch_of(piece: Piece) -> pa.RecordBatch:
    """The columns of its table. ``ValueError`` or ``TypeError`` where a value does not fit."""
    schema = _SCHEMAS[piece.sort]
    return pa.record_batch([_arrow(piece.columns[field.name], field.type) for field in schema], schema=schema)


def _arrow(column: Column, kind: pa.DataType) -> pa.Array:
    if isinstance(column, Repeated):
        # A thirtieth of the time of a list's.
        return pa.repeat(pa.scalar(column.value, kind), len(column))
    if not isinstance(column, array):
        return pa.array(column, kind)
    if column.typecode == "d":
        # By the functions of pyarrow a window of few rows, as most are, takes twice as long.
        column = array("q", [round(seconds * 1e6) for seconds in column])
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])


def _make_folder(folder: Path) -> None:
    """A folder of one day. What is above must be there: where a volume was, it would be on another."""
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
        sync_folder(folder.parent.parent)


def _make_parquet(table: pa.Table, stream: Path) -> None:
    """Make the file that readers see in the place of this stream: at once, and so that it lasts."""
    path, hidden = _parquet_of(stream), stream.with_suffix(".parquet")
    _make_folder(path.parent)
    # Like the stream, it is not for everybody: bodies may be in it.
    os.close(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
    # What it cannot write whole, it removes.
    parquet.write_table(table, hidden, compression="zstd", write_page_checksum=True)
    with open(hidden, "rb") as file:
        os.fsync(file.fileno())
    hidden.replace(path)
    sync_folder(path.parent)


def _parquet_of(stream: Path) -> Path:
    return stream.with_name(f"{stream.stem[1:]}.parquet")


def _salvage(path: Path) -> None:
    """Make Parquet of what a dead process left, unless it did so itself, and remove the rest."""
    if path.suffix == ".parquet":
        # Not even begun anew: of its stream, if there is one, it is made again.
        if not path.with_suffix(".arrows").exists():
            path.unlink(missing_ok=True)
        return
    stream = Stream.of_the_dead(path)
    if stream is None:
        return
    done = _parquet_of(path)
    try:
        table = None if done.exists() else stream.whole()
        if table is not None:
            _make_parquet(table, path)
            log.info("audit: %d records of a process that ended without it are in %s", table.num_rows, done)
    except BaseException:
        stream.close()
        raise
    stream.discard()
