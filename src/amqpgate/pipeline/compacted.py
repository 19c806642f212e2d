"""Raw records as a table of few files: one per day, and of usage one per day and virtual host.

::

    TABLE/events/date=2026-11-22/records-00000007.parquet
    TABLE/usage/date=2026-11-22/vhost_key=orders/records-00000007.parquet

A file is replaced by one with the next number, and ``reading`` takes the highest of a folder. So its readers
have the old or the new one at every moment, also after a crash; and one that knows a file which is gone by
then is told, where it would read another under the same name in part. Each record is in the table once,
whatever is added how often. The day is that of the record, not of the file it came in.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import name_of, newest
from amqpgate.pipeline.parts import Part, merge
from amqpgate.records import Sort

#: Names that begin with ``_`` are no records to readers.
_UNFINISHED: Final = "_unfinished"
_LOCK: Final = "_lock"
_FILE: Final = "records-{:08}.parquet"
_FILES: Final = "records-????????.parquet"
#: Its name before it has its number.
_MADE: Final = "records.parquet"


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Be the only one that changes the table, and clear away what another left when it crashed."""
    table.mkdir(parents=True, exist_ok=True)
    with (table / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"{table} is being compacted by another process") from None
        _clear(table)
        try:
            yield
        finally:
            _clear(table)


def read_before(table: Path, sort: Sort) -> set[str]:
    """Names of the Parquet files that are in the table."""
    ledger = _ledger(table, sort)
    return set(ledger.read_text().splitlines()) if ledger.exists() else set()


def note(table: Path, sort: Sort, paths: Iterable[str]) -> None:
    """Remember Parquet files. Only after their records are in the table: without their lines they are read,
    and their records found there, again."""
    names = set(map(name_of, paths))
    if names:
        _replace_text(_ledger(table, sort), "\n".join(sorted(names.union(read_before(table, sort)))) + "\n")


def workplace(table: Path, sort: Sort) -> Path:
    """An empty folder for what is not in the table yet. It goes with the lock."""
    folder = table.absolute() / _UNFINISHED / sort
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def merge_into(table: Path, sort: Sort, place: str, parts: Iterable[Part]) -> None:
    """Make the next file of a folder in the workplace: what it has, and parts, which are sorted."""
    merge(parts, _in_force(table / sort / place), sort, table / _UNFINISHED / sort / place / _MADE)


def exchange(table: Path, sort: Sort, places: Iterable[str]) -> dict[str, int]:
    """Put the files of the workplace where the table has them: how many records came, by folder that changed.

    What is there already changes nothing.
    """
    made = table / _UNFINISHED / sort
    gains = ((place, _exchange(made / place, table / sort / place)) for place in places)
    return {place: gain for place, gain in gains if gain}


def _ledger(table: Path, sort: Sort) -> Path:
    return table / f"_{sort}.txt"


def _exchange(part: Path, place: Path) -> int:
    """Put the file of a folder where the table has it; how many records it has more than that."""
    new, old = part / _MADE, _in_force(place)
    gain: int = pq.read_metadata(new).num_rows - (pq.read_metadata(old).num_rows if old else 0)
    assert gain >= 0, f"{place} would lose records"
    if gain:
        place.mkdir(parents=True, exist_ok=True)
        _sync(new)
        new.replace(place / _FILE.format(1 + (int(old.stem[-8:]) if old else 0)))
        _sync(place)
        if old:
            old.unlink()
    return gain


def _in_force(place: Path) -> Path | None:
    return max(place.glob(_FILES), default=None)


def _clear(table: Path) -> None:
    """What a crash has left."""
    shutil.rmtree(table / _UNFINISHED, ignore_errors=True)
    files = {str(path) for path in table.rglob(_FILES)}
    for replaced in files.difference(newest(files)):
        Path(replaced).unlink()


def _replace_text(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}~")
    unfinished.write_text(text)
    _sync(unfinished)
    unfinished.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """What was written there outlives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
