"""Which files of a folder of audit records have what is wanted, for either engine and without both.

A folder is what the gateway writes (``records``), what ``compact`` makes of it, or has files of JSON lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import attrs

from amqpgate.pipeline.contract import GONE, Look, Skipped, look_into
from amqpgate.pipeline.errors import PassingError, PipelineError
from amqpgate.pipeline.frames import F
from amqpgate.pipeline.pages import damage
from amqpgate.pipeline.places import LOCAL, local_files, local_path, local_size
from amqpgate.records import SCHEMA_VERSION, Sort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The time by which records of a sort are selected.
TIME: Final[dict[Sort, str]] = {"events": "time", "usage": "window_start"}
#: What a line of JSON calls its sort.
LINE: Final[dict[Sort, str]] = {"events": "event", "usage": "usage"}

_PARQUET: Final = re.compile(r"/((events|usage)/(?:date=[^/]+/)?(?:vhost_key=[^/]+/)?[^/]+\.parquet)$")
_JSON: Final = re.compile(r"\.(json|jsonl|ndjson)(\.(gz|bz2|zst|lz4))?$")
_DATE: Final = re.compile(r"/date=(\d{4}-\d\d-\d\d)/")
#: A file of a compacted table. The one with the highest number in a folder is in force.
NUMBERED: Final = re.compile(r"^(.*/)records-\d{8}\.parquet$")
_KEY: Final = re.compile(r"/vhost_key=([^/]+)/")
#: A file is of the day of its first record: it goes on into the next day, and has earlier ones, too. It is
#: rolled within minutes.
_SLACK: Final = timedelta(days=1)
_KEY_LENGTH: Final = 64
_NOT_IN_KEYS: Final = re.compile("[^A-Za-z0-9.-]")
#: The folder of what is of no virtual host, and of those with strange names.
OTHER_VHOSTS: Final = "_"

#: So many files of this machine are looked into at once.
_AT_ONCE: Final = 4
#: So many wait for that: each takes 2 KiB meanwhile.
_WAITING: Final = 1_000

_Found = TypeVar("_Found")


@attrs.frozen(kw_only=True)
class Span:
    """Which records are wanted: from ``since`` on, before ``until`` (both UTC), of one virtual host."""

    since: datetime | None = None
    until: datetime | None = None
    vhost: str | None = None


class RecordSource(Protocol):
    """Records that are not simply in a folder: readers have copies of the files, or their addresses."""

    @property
    def folder(self) -> Path | None:
        """That of this machine which it is, if so."""

    @property
    def size(self) -> int:
        """Of all files, in bytes."""

    @property
    def is_table(self) -> bool:
        """Whether it is a table of an open format, whose numbers may be wider."""

    def chosen(self, sort: Sort, span: Span, leave_out: Container[str]) -> tuple[list[str], list[str]]:
        """Paths of Parquet files, and those of JSON lines, that may have what is wanted."""

    def copy(self, paths: Iterable[str]) -> None:
        """Have these here."""

    def drop(self, paths: Iterable[str]) -> None:
        """Their copies are of no use any more."""

    def size_of(self, path: str) -> int:
        """Of one of them, in bytes."""

    def name(self, path: str) -> str:
        """What a path is a copy of."""


@attrs.frozen(kw_only=True)
class RecordTable:
    """Records of one sort.

    ``frame`` has the columns of ``records``; ``files`` and ``records`` say how many there are in the files
    that were chosen, of which ``frame`` may have less. ``paths`` are those in Parquet; ``lines`` has the
    records of the others.
    """

    sort: Sort
    frame: DataFrame
    files: int
    records: int
    skipped: tuple[Skipped, ...]
    paths: tuple[str, ...] = ()
    lines: DataFrame | None = None


@attrs.frozen(kw_only=True)
class Compacted:
    """What was done: new files that were read, files of the table that changed, records that came to it."""

    sort: Sort
    files: int
    changed: int
    records: int
    skipped: tuple[Skipped, ...]


def refuse_overlap(source: str | RecordSource, table: Path) -> None:
    """Raise ``PipelineError`` where one folder is in the other: records would be there twice."""
    folder = local_path(source) if isinstance(source, str) else source.folder
    if folder is None:
        return
    raw, made = folder.resolve(), table.resolve()
    if raw.is_relative_to(made) or made.is_relative_to(raw):
        raise PipelineError(f"{table} and {source} are in one another: the table must be apart")


def chosen(
    found: Iterable[str], folder: object, sort: Sort, span: Span, leave_out: Container[str]
) -> tuple[list[str], list[str]]:
    """Of all files of a folder those of Parquet, and those of JSON lines, that may have what is wanted.

    Raises ``PipelineError`` where none is one of records.
    """
    there = newest(found)
    if not any(_PARQUET.search(path) or _JSON.search(path) for path in there):
        raise PassingError(
            f"{folder} has no audit records: neither {{events,usage}}/date=*/*.parquet nor *.json, *.jsonl"
        )
    wanted = [path for path in there if _wanted(path, span)]
    parquet = [
        path for path in wanted if (at := _PARQUET.search(path)) and at[2] == sort and at[1] not in leave_out
    ]
    return parquet, [path for path in wanted if _JSON.search(path)]


def chosen_of(
    source: str | RecordSource, sort: Sort, span: Span, leave_out: Container[str]
) -> tuple[list[str], list[str]]:
    """The same of a folder of this machine, or of what is elsewhere."""
    if not isinstance(source, str):
        return source.chosen(sort, span, leave_out)
    if (files := local_files(source)) is None:
        raise PipelineError(f"{source} is neither of this machine nor s3://")
    return chosen((f"{LOCAL}{path}" for path in files), source, sort, span, leave_out)


def in_groups(
    source: str | RecordSource, paths: Iterable[str], most_bytes: int, most_files: int
) -> Iterator[list[str]]:
    """Files that were chosen, not too many at a time."""
    waiting: list[str] = []
    size = 0
    for path in paths:
        own = local_size(path) if isinstance(source, str) else source.size_of(path)
        if waiting and (size + own > most_bytes or len(waiting) == most_files):
            yield waiting
            waiting, size = [], 0
        waiting.append(path)
        size += own
    if waiting:
        yield waiting


def key_of(vhost: str) -> str:
    """A virtual host's folder in a compacted table: its name, but cut, and with ``_`` for what a folder's
    name should not have. Several may share it."""
    return _NOT_IN_KEYS.sub("_", vhost[:_KEY_LENGTH]) or OTHER_VHOSTS


def name_of(path: str) -> str:
    """Of a Parquet file: the path below the folder of records. Tables of others name no two files alike."""
    match = _PARQUET.search(path)
    return match[1] if match else path.rpartition("/")[2]


def newest(paths: Iterable[str]) -> list[str]:
    """Sorted, without files of a compacted table that another in their folder has replaced."""
    return list(
        {match[1] if (match := NUMBERED.match(path)) else path: path for path in sorted(paths)}.values()
    )


def within(frame: DataFrame, sort: Sort, span: Span) -> DataFrame:
    """The records of a span."""
    if span.since is not None:
        frame = frame.filter(F.col(TIME[sort]) >= F.lit(span.since))
    if span.until is not None:
        frame = frame.filter(F.col(TIME[sort]) < F.lit(span.until))
    if span.vhost is not None:
        frame = frame.filter(F.col("vhost") == F.lit(span.vhost))
    return frame


def _wanted(path: str, span: Span) -> bool:
    """Whether the file of that day and folder may have records of the span."""
    key = _KEY.search(path)
    if span.vhost is not None and key is not None and key[1] not in (key_of(span.vhost), OTHER_VHOSTS):
        return False
    if (match := _DATE.search(path)) is None:
        return True
    try:
        day = date.fromisoformat(match[1])
    except ValueError:
        # It is no day: what is in it is looked at.
        return True
    if span.since is not None and day < (span.since - _SLACK).astimezone(UTC).date():
        return False
    return span.until is None or day <= (span.until + _SLACK).astimezone(UTC).date()


def look_into_all(paths: Iterable[str], sort: Sort, *, widened: bool = False) -> dict[str, Look]:
    """Parquet files of this machine, by the path that starts with file://. Raises ``PipelineError`` for one
    that is gone: what has replaced it would be missing."""
    look = partial(look_into, sort=sort, widened=widened)
    found = dict(_of_each(look, list(paths)))
    refuse_gone({path: look.why for path, look in found.items()})
    return found


def refuse_gone(found: Mapping[str, str | None]) -> None:
    """Raises ``PipelineError`` if a file is gone since its folder was listed."""
    if gone := next((path for path, why in found.items() if why == GONE), None):
        raise PassingError(f"{gone} {GONE} since its folder was listed: run it again")


def refuse_damaged(paths: Iterable[str]) -> None:
    """Raises ``PipelineError`` if a page of one of these Parquet files of this machine is not as it was
    written."""
    for path, why in _of_each(damage, list(paths)):
        if why is not None:
            raise PipelineError(f"{path} is damaged: {why}")


def _of_each(function: Callable[[str], _Found], paths: Sequence[str]) -> Iterator[tuple[str, _Found]]:
    """What a function finds in each file, some of them at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for begin in range(0, len(paths), _WAITING):
            some = paths[begin : begin + _WAITING]
            yield from zip(some, pool.map(lambda path: function(path.removeprefix(LOCAL)), some), strict=True)


def skipped_of(seen: Mapping[str, Look]) -> tuple[Skipped, ...]:
    """Those that are left out."""
    return tuple(Skipped(path, look.why) for path, look in sorted(seen.items()) if look.why is not None)


def refuse_later(found: Mapping[str, Iterable[int | None]]) -> None:
    """Raises ``PipelineError`` if a file has records of a later version than this program knows."""
    if later := {
        path: number
        for path, some in sorted(found.items())
        for number in some
        if (number or 0) > SCHEMA_VERSION
    }:
        path, number = next(iter(later.items()))
        raise PipelineError(
            f"{path} has records of schema version {number} ({len(later)} of {len(found)} files have "
            f"later ones than {SCHEMA_VERSION}, which is all that this amqpgate reads): use a later amqpgate"
        )
