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

import pyarrow as pa
import pyarrow.parquet as pq

from amqpgate.pipeline.contract import look_into
from amqpgate.pipeline.errors import PassingError, PipelineError
from amqpgate.pipeline.folders import NUMBERED, name_of, newest
from amqpgate.pipeline.pages import damage
from amqpgate.pipeline.parts import Part, merge
from amqpgate.records import Sort

#: Names that begin with ``_`` are no records to readers.
_UNFINISHED: Final = "_unfinished"
_LOCK: Final = "_lock"
_FILE: Final = "records-{:08}.parquet"
_FILES: Final = "records-????????.parquet"
#: Folders with such files.
_PLACES: Final = ("events/date=*", "usage/date=*/vhost_key=*")
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
            raise PassingError(f"{table} is being compacted by another process") from None
        _clear(table)
        try:
            yield
        finally:
            _clear(table)


def read_before(table: Path, sort: Sort) -> set[str]:
    """Names of the Parquet files that are in the table."""
    ledger = _ledger(table, sort)
    # What is none is read again, and found there.
    names = ledger.read_text(errors="replace").split("\n") if ledger.exists() else []
    return {name for name in names if not NUMBERED.match(f"/{name}")}


def note(table: Path, sort: Sort, paths: Iterable[str]) -> None:
    """Remember Parquet files. Only after their records are in the table: without their lines they are read,
    and their records found there, again."""
    # Files of compacted tables are called alike, and replaced: they are read each time.
    names = {name_of(path) for path in paths if not NUMBERED.match(path)}
    if names:
        _replace_text(_ledger(table, sort), "\n".join(sorted(names.union(read_before(table, sort)))) + "\n")


def workplace(table: Path, sort: Sort) -> Path:
    """An empty folder for what is not in the table yet. It goes with the lock."""
    folder = table.absolute() / _UNFINISHED / sort
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def merge_into(table: Path, sort: Sort, place: str, parts: Iterable[Part]) -> None:
    """Make the next file of a folder in the workplace: what it has, and parts, which are sorted.

    Raises ``PipelineError`` where the file that it has is damaged.
    """
    old = _in_force(table / sort / place)
    try:
        merge(parts, old, sort, table / _UNFINISHED / sort / place / _MADE)
    except (pa.ArrowException, OSError, ValueError) as error:
        if old is not None and (why := look_into(str(old), sort).why or damage(str(old))) is not None:
            raise PipelineError(f"{old} is a file of the table, and cannot be read: {why}") from error
        raise


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
        following = place / _FILE.format(1 + (int(old.stem[-8:]) if old else 0))
        # Whatever was seen: what has that name would be lost.
        assert not following.exists(), f"{following} is there already"
        new.replace(following)
        _sync(place)
        if old:
            old.unlink()
    return gain


def _in_force(place: Path) -> Path | None:
    """Raises ``OSError`` for a folder that cannot be listed: as an empty one, its file would be replaced."""
    try:
        names = os.listdir(place)
    except FileNotFoundError:
        return None
    return max((place / name for name in names if NUMBERED.match(f"/{name}")), default=None)


def _clear(table: Path) -> None:
    """What a crash has left in the folders of a table; others may have files of such names, too."""
    shutil.rmtree(table / _UNFINISHED, ignore_errors=True)
    files = {str(path) for pattern in _PLACES for path in table.glob(f"{pattern}/{_FILES}")}
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
