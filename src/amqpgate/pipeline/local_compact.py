"""Raw records into a compacted table, in this process: what `compact` does with Spark.

Parts go to a file as they are read, and then those of each place are merged. In memory are the records that
are read or merged at the moment, and of all parts where they are.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, Self

import attrs
import pyarrow as pa

from amqpgate.pipeline.compacted import exchange, locked, merge_into, note, read_before, workplace
from amqpgate.pipeline.contract import Skipped, Versions, look_into
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import (
    Compacted,
    RecordSource,
    Span,
    chosen_of,
    in_groups,
    refuse_gone,
    refuse_later,
    refuse_overlap,
)
from amqpgate.pipeline.json_lines import LinesSeen, read_lines, readable
from amqpgate.pipeline.parts import Damaged, Part, fitted, pack_tables, records_of, unpacked
from amqpgate.pipeline.places import LOCAL
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort

#: So many files are read, and places merged, at once: each takes some 200 MB.
_AT_ONCE: Final = min(4, os.cpu_count() or 1)
#: Files that are read before their records are merged: some 40 million records, whose parts are on the disk.
_MOST_BYTES: Final = 1 << 30
_MOST_FILES: Final = 10_000
#: Files that a thread reads together: some 250,000 records. Of many small ones each would be a part.
_TAKEN_BYTES: Final = 8 << 20
_TAKEN_FILES: Final = 200
#: No place begins with ``_``.
_PARTS: Final = "_parts"


@attrs.frozen
class _Taken:
    """What became of a file."""

    path: str
    #: Its records, but for lines that are none, are parts.
    is_read: bool
    versions: Versions
    skipped: tuple[Skipped, ...]


def compact(
    source: str | RecordSource,
    table: Path,
    tell: Callable[[str], None] = lambda _: None,
    *,
    is_followed: bool = False,
) -> list[Compacted]:
    """Add to the table what is new in a folder of raw records, some files after others: what ends it leaves
    what was added before. Files of JSON lines are read each time.

    A file that is damaged inside ends it, or, where the folder ``is_followed``, is left out and looked into
    again the next time. Raises ``PipelineError``.
    """
    refuse_overlap(source, table)
    with locked(table):
        return [_compact(source, table, sort, tell, is_followed) for sort in TABLES]


def _compact(
    source: str | RecordSource, table: Path, sort: Sort, tell: Callable[[str], None], is_followed: bool
) -> Compacted:
    parquet, lines = chosen_of(source, sort, Span(), read_before(table, sort))
    of_lines = frozenset(lines)
    is_table = not isinstance(source, str) and source.is_table
    take = partial(_take, of_lines=of_lines, widened=is_table, is_followed=is_followed)
    files = 0
    skipped: list[Skipped] = []
    gains: Counter[str] = Counter()
    for some in in_groups(source, [*parquet, *lines], _MOST_BYTES, _MOST_FILES):
        if not isinstance(source, str):
            source.copy(some)
        with _PartsFile(workplace(table, sort) / _PARTS, sort) as parts, _threads() as pool:
            taken: list[_Taken] = []
            for found in pool.map(partial(take, parts), in_groups(source, some, _TAKEN_BYTES, _TAKEN_FILES)):
                taken += found
                tell(f"{sort}: reading, {len(taken):,} of {len(some):,} files")
            refuse_later({one.path: one.versions for one in taken})
            places = parts.places()
            merge = pool.map(lambda place: merge_into(table, sort, place, parts.of(place)), places)
            for number, _ in enumerate(merge, 1):
                tell(f"{sort}: merging, {number:,} of {len(places):,} files")
        gains.update(exchange(table, sort, places))
        read = [one.path for one in taken if one.is_read]
        note(table, sort, [path for path in read if path not in of_lines])
        files += len(read)
        skipped += [each for one in taken for each in one.skipped]
        if not isinstance(source, str):
            source.drop(some)
        tell(f"{sort}: {files:,} of {len(parquet) + len(lines):,} files, {gains.total():,} records")
    if not isinstance(source, str):
        skipped = [Skipped(source.name(each.path), each.why) for each in skipped]
    return Compacted(
        sort=sort, files=files, changed=len(gains), records=gains.total(), skipped=tuple(skipped)
    )


def _take(
    parts: _PartsFile, paths: Iterable[str], *, of_lines: Container[str], widened: bool, is_followed: bool
) -> list[_Taken]:
    """The records of some files: what became of each."""
    taken: list[_Taken] = []

    def tables() -> Iterator[pa.Table]:
        for path in paths:
            if is_followed and not Path(path.removeprefix(LOCAL)).exists():
                # Whoever removes old files goes on meanwhile.
                taken.append(_Taken(path, is_read=False, versions=Counter(), skipped=()))
                continue
            if path in of_lines:
                _, broken = readable([path])
                seen = LinesSeen()
                for batch in () if broken else read_lines(path, parts.sort, seen):
                    yield fitted(pa.Table.from_batches([batch]), parts.sort)
                taken.append(_Taken(path, not broken, seen.versions, (*broken, *seen.skipped(path))))
                continue
            look = look_into(path.removeprefix(LOCAL), parts.sort, widened=widened)
            refuse_gone({path: look.why})
            why = look.why
            if why is None and max(look.versions, default=0) <= SCHEMA_VERSION:
                try:
                    yield from records_of(path, parts.sort)
                except Damaged as error:
                    if not is_followed:
                        raise PipelineError(f"compacting the {parts.sort}: {path} {error}") from error
                    why = str(error)
            taken.append(
                _Taken(path, why is None, look.versions, () if why is None else (Skipped(path, why),))
            )

    parts.add(pack_tables(tables(), parts.sort))
    return taken


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Some, which end what they are at when something fails, and no more."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _PartsFile:
    """Parts on a disk. Threads may add to it at the same time, and then read it."""

    def __init__(self, path: Path, sort: Sort) -> None:
        self.sort = sort
        self._file = path.open("xb+")
        self._lock = Lock()
        #: By place of each part the first id, where it begins, and its bytes.
        self._found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, packed: Iterable[pa.RecordBatch]) -> None:
        """Have these parts."""
        for batch in packed:
            with self._lock:
                for place, first, records in zip(*batch.columns, strict=True):
                    content = records.as_buffer()
                    self._found[place.as_py()].append((first.as_py(), self._file.tell(), content.size))
                    self._file.write(content)
                self._file.flush()

    def places(self) -> list[str]:
        """Those that parts are for."""
        return sorted(self._found)

    def of(self, place: str) -> Iterator[Part]:
        """The parts of a place, sorted."""
        for first, at, size in sorted(self._found[place]):
            yield Part(first, partial(self._read, at, size))

    def _read(self, at: int, size: int) -> pa.Table:
        return unpacked(pa.py_buffer(os.pread(self._file.fileno(), size, at)), self.sort)
