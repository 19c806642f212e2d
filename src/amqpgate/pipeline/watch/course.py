"""The order of things: a batch is settled, read, judged, delivered, and then remembered.

::

    STATE/pending.json   the files and the moment of a batch that is under way
    STATE/state.json     what was read, and what the watch knows, after the last batch

What is in one batch never changes, so whoever begins again tells the same alerts with the same ids.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from amqpgate.pipeline.contract import MOST_OF_GATEWAYS, look_into, whole
from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.folders import TIME, Span
from amqpgate.pipeline.offsets import Offset, names_of, new_names, offset_of
from amqpgate.pipeline.places import LOCAL, local_files
from amqpgate.records import SCHEMA_VERSION, TABLES, Sort, arrow_schema

if TYPE_CHECKING:
    from amqpgate.pipeline.watch.alert import Alert

#: Of a backlog, so many files make a batch, and no more once they have so many bytes in memory.
_FILES: Final = 200
_BYTES: Final = 256 << 20
#: Seconds between tries to deliver, at first and at most.
_SOON, _LATER = 1.0, 60.0


class Undelivered(PipelineError):
    """A sink did not take alerts; it is asked again."""


class Stopped(Exception):
    """Somebody ended it before all was delivered. The next run tells it."""


@attrs.frozen(eq=False)
class Batch:
    """Records that came, and when they were looked for."""

    number: int
    now: datetime
    records: Mapping[Sort, pa.Table]


@attrs.frozen
class Pending:
    """A batch that is under way: files that are read when it is done, and the moment that counts as now."""

    number: int
    now: str
    files: dict[Sort, Offset]


@attrs.frozen
class Done:
    """What is known after the last batch."""

    number: int
    files: dict[Sort, Offset]
    watch: str


Known = TypeVar("Known", Pending, Done)


class Watch(Protocol):
    """What is looked for. It knows only what ``dump`` says."""

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """The records that it needs."""

    def is_due(self, now: datetime) -> bool:
        """Whether it has something to tell although nothing came."""

    def step(self, batch: Batch) -> list[Alert]:
        """What is to be told after a batch."""

    def dump(self) -> str:
        """All that it has to know of after a restart."""

    def load(self, text: str) -> None:
        """Know it again."""


class AlertSink(Protocol):
    """Where alerts go."""

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        """Have the alerts of a batch; they may have come before. Raises ``PipelineError``."""


@attrs.define
class AlertCourse:
    """A watch over a folder that gateways write to.

    ``pause`` waits so many seconds, and says whether to stop; ``tell`` hears of what did not go well.
    """

    folder: str
    watch: Watch
    sinks: Sequence[AlertSink]
    state: Path
    span: Span
    pause: Callable[[float], bool]
    tell: Callable[[str], None]
    _number: int = attrs.field(init=False, default=0)
    _files: dict[Sort, Offset] = attrs.field(init=False, factory=dict)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Know what was done before, and be the only one that goes on with it."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "_lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PipelineError(f"{self.state} is in use by another process") from None
            if (known := _read(self.state / "state.json", Done)) is not None:
                self._number, self._files = known.number, known.files
                self.watch.load(known.watch)
            yield

    def go_on(self, now: datetime) -> bool:
        """Do one batch: that of a process that died, or the next. False: there is nothing to do."""
        pending = _read(self.state / "pending.json", Pending)
        if pending is None or pending.number <= self._number:
            taken = {sort: self._taken(sort, self._new(sort), _BYTES) for sort in self.watch.sorts}
            if not any(names for names, _ in taken.values()) and not self.watch.is_due(now):
                return False
            files = {
                sort: offset_of([*names_of(self._files.get(sort, {})), *names])
                for sort, (names, _) in taken.items()
            }
            pending = Pending(self._number + 1, now.isoformat(), files)
            _write(self.state / "pending.json", pending)
        else:
            taken = {sort: self._taken(sort, self._unread(sort, pending)) for sort in self.watch.sorts}
        batch = Batch(
            pending.number,
            datetime.fromisoformat(pending.now),
            {sort: records for sort, (_, records) in taken.items()},
        )
        alerts = self.watch.step(batch)
        if alerts:
            for sink in self.sinks:
                self._deliver(sink, alerts, batch.number)
        self._number, self._files = batch.number, pending.files
        _write(self.state / "state.json", Done(self._number, self._files, self.watch.dump()))
        return True

    def _new(self, sort: Sort) -> list[str]:
        """The next files, by their names below the folder."""
        if (files := local_files(self.folder)) is None:
            raise PipelineError(f"{self.folder} is not of this machine, or mounted")
        root = str(Path(self.folder.removeprefix(LOCAL)).absolute())
        known = self._files.get(sort, {})
        return new_names((f"{LOCAL}{path}" for path in files), root, sort, known)[:_FILES]

    def _unread(self, sort: Sort, pending: Pending) -> list[str]:
        """The files of a batch that is under way."""
        return sorted(set(names_of(pending.files[sort])).difference(names_of(self._files.get(sort, {}))))

    def _taken(
        self, sort: Sort, names: Sequence[str], enough: float = math.inf
    ) -> tuple[list[str], pa.Table]:
        """Files up to so many bytes of records, and those records of them that are in the span. A file is
        taken whole or not at all."""
        tables = [arrow_schema(TABLES[sort]).empty_table()]
        taken = []
        size = 0
        for name in names:
            if size >= enough:
                break
            taken.append(name)
            path = str(Path(self.folder.removeprefix(LOCAL)).absolute() / name)
            look = look_into(path, sort, most=MOST_OF_GATEWAYS)
            if max(look.versions, default=0) > SCHEMA_VERSION:
                raise PipelineError(f"{path} has records of a later schema version: use a later amqpgate")
            found = look.why or whole(path, sort)
            if isinstance(found, str):
                self.tell(f"skipped: {path}: {found}")
            else:
                size += found.nbytes
                tables.append(self._within(found, sort))
        return taken, pa.concat_tables(tables)

    def _within(self, records: pa.Table, sort: Sort) -> pa.Table:
        if self.span.since is not None:
            records = records.filter(pc.greater_equal(records[TIME[sort]], pa.scalar(self.span.since)))
        if self.span.vhost is not None:
            records = records.filter(pc.equal(records["vhost"], self.span.vhost))
        return records

    def _deliver(self, sink: AlertSink, alerts: Sequence[Alert], number: int) -> None:
        wait = _SOON
        while True:
            try:
                sink.deliver(alerts, number)
            except Undelivered as error:
                self.tell(f"{error}; trying again in {wait:.0f} s")
                if self.pause(wait):
                    raise Stopped from None
                wait = min(2 * wait, _LATER)
            else:
                return


def _read(path: Path, kind: type[Known]) -> Known | None:
    try:
        found = kind(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise PipelineError(f"{path} is damaged: {error}") from error
    return found


def _write(path: Path, what: Pending | Done) -> None:
    unfinished = path.with_name(f"_{path.name}")
    with unfinished.open("w") as out:
        json.dump(attrs.asdict(what), out)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
