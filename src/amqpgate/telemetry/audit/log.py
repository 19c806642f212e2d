"""The audit log as the gateway sees it: it takes records at once, and a thread of its own writes them."""

from __future__ import annotations

import secrets
import time as clock
from collections.abc import Callable, Mapping
from sys import getsizeof
from typing import TYPE_CHECKING, Final, Unpack

from amqpgate.config.audit import Audit
from amqpgate.records import EventKind, Origin, Sort
from amqpgate.telemetry.audit.lines import LineSink
from amqpgate.telemetry.audit.messages import WaitingMessages
from amqpgate.telemetry.audit.pieces import EVENT_BYTES, ROW_BYTES, Pieces, Waiting
from amqpgate.telemetry.audit.rows import AuditRow, Columns, Sums
from amqpgate.telemetry.audit.writer import Sink, Writer
from amqpgate.values import frozen

if TYPE_CHECKING:
    from amqpgate.telemetry.audit.outlets.counts import OutletCounts
    from amqpgate.telemetry.audit.outlets.fan_out import Outlets

_COLUMNS = frozenset(Columns.__annotations__)


@frozen
class Counts:
    """A reading of the counters, by sort of record where two are given: events, usage."""

    #: Bytes that wait, as ``maxQueue`` counts them.
    queued_bytes: int
    queued: tuple[int, int]
    written: tuple[int, int]
    #: Lost: they could not be written until the end of `AuditLog.stop`, or a defect.
    dropped: tuple[int, int]
    #: Times that writing failed; it is tried again.
    failed_writes: int
    #: Times that somebody asked for room and there was none.
    waits: int
    #: Windows that were not handed over at their end, because the writer was behind, but summed on.
    late_windows: int
    #: What became of records for those who get them beside, by name.
    outlets: Mapping[str, OutletCounts]


#: Parts of the queue. What is captured in bulk may fill so much of it, and may come in bulk again once no
#: more than that waits. The rest is for who causes an event at a time: a flood on the data path makes records
#: faster than they can be written, and would have the whole queue again each time that there is room.
BULK: Final = 0.75
BULK_AGAIN: Final = 0.5

#: Seconds that those have at least who get records beside.
_LAST: Final = 1.0


class AuditLog:
    """Use it from one thread, but for `stop`. No method but `start` raises what the disk says."""

    def __init__(
        self,
        sink: Sink,
        pieces: Pieces,
        *,
        max_queue: int,
        on_room: Callable[[], None] = lambda: None,
        outlets: Outlets | None = None,
    ) -> None:
        """``max_queue`` in bytes. ``on_room`` is called by a thread of the log's once there is room again
        after `has_room` was false, or `has_room_for_bulk`: pass it on, with ``TrioToken.run_sync_soon``.
        ``outlets`` are those that the sink puts into."""
        self._outlets = outlets
        self._writer = Writer(sink, pieces, self._made_room)
        self._on_room = on_room
        self._max_queue = max_queue
        self._sums = Sums()
        #: Bytes handed over; those that have left again are the writer's to count.
        self._taken = 0
        self._wanted = self._wanted_in_bulk = False
        self._waits = self._late = 0
        #: Those that a defect kept from the writer.
        self._lost: dict[Sort, int] = {"events": 0, "usage": 0}
        self._closed_at = clock.time()

    def start(self) -> None:
        """Start the thread, which first salvages what dead processes left.

        ``OSError`` where nothing can be written.
        """
        self._closed_at = clock.time()
        self._writer.start()

    def stop(self, patience: float = 10.0) -> bool:
        """Write all there is, and end the threads: whether that was done in ``patience`` seconds. Blocks.

        Close the last window before. What could not be written is dropped, counted and logged.
        """
        until = clock.monotonic() + patience
        if self._sums.rows:
            # What nobody closed ends with what was last in it.
            self._sums.close(self._closed_at, max(self._sums.end, *self._sums.last))
            self._hand_over()
        is_done = self._writer.stop(patience)
        if self._outlets is not None:
            # They get a second where the writer had all the time.
            is_done &= self._outlets.stop(max(until, clock.monotonic() + _LAST))
        return is_done

    @property
    def has_room(self) -> bool:
        """False: an event must wait until ``on_room``, and with it whoever causes it."""
        if self._longest() < self._max_queue:
            return True
        self._wanted = True
        # The writer may have made room between the look and the wish.
        if self._longest() < self._max_queue:
            return True
        self._waits += 1
        return False

    @property
    def has_room_for_bulk(self) -> bool:
        """False: what would be captured in bulk is to come one by one until ``on_room``."""
        if self._longest() < BULK * self._max_queue:
            return True
        self._wanted_in_bulk = True
        # The writer may have made room between the look and the wish.
        return self._longest() < BULK * self._max_queue

    def event(
        self,
        origin: Origin | None,
        kind: EventKind,
        time: float | None = None,
        /,
        **columns: Unpack[Columns],
    ) -> None:
        """Record an event, at ``time`` (epoch seconds) or now.

        It is taken even without room: ask `has_room` before.
        ``TypeError`` for a column that there is not.
        """
        if not _COLUMNS.issuperset(columns):
            raise TypeError(f"events have no columns {sorted(set(columns) - _COLUMNS)}")
        byte_count = EVENT_BYTES
        for value in columns.values():
            if isinstance(value, str):
                byte_count += len(value) if value.isascii() else getsizeof(value)
            elif isinstance(value, bytes):
                byte_count += len(value)
        self._taken += byte_count
        self._writer.put(Waiting(origin, kind, clock.time() if time is None else time, columns, byte_count))

    def messages(self, waiting: WaitingMessages) -> None:
        """Record messages, an event each; as `event`."""
        self._taken += waiting.byte_count
        self._writer.put_messages(waiting)

    def usage(
        self,
        row: AuditRow,
        requests: int,
        messages: int,
        byte_count: int,
        first: float,
        last: float,
        largest: int = 0,
    ) -> None:
        """Count what was done with ``row`` in this window; ``first`` and ``last`` in epoch seconds.

        ``largest`` is that of the bodies, in bytes.
        """
        self._sums.add(row, requests, messages, byte_count, first, last, largest)

    def lose(self, sort: Sort) -> None:
        """Count a record that could not be made, because of a defect."""
        self._lost[sort] += 1

    def close_window(self, start: float, end: float) -> None:
        """Hand the usage over to the writer; epoch seconds.

        While that is behind, it stays here and is summed up with the next window's.
        """
        self._closed_at = end
        if not self._sums.rows:
            return
        self._sums.close(start, end)
        if self._writer.windows or (self._outlets is not None and self._outlets.held >= self._max_queue):
            self._late += 1
        else:
            self._hand_over()

    @property
    def is_down(self) -> bool:
        """Whether records are not written because of a defect, or can neither be written nor wait."""
        if self._outlets is not None and self._outlets.is_down:
            return True
        return self._writer.is_down or (self._writer.is_failing and self._held() >= self._max_queue)

    def counts(self) -> Counts:
        """What became of all records so far."""
        writer = self._writer
        events, usage = writer.queued()
        return Counts(
            queued_bytes=self._held(),
            queued=(events, usage + self._late_rows()),
            written=(writer.written["events"], writer.written["usage"]),
            dropped=(
                writer.dropped["events"] + self._lost["events"],
                writer.dropped["usage"] + self._lost["usage"],
            ),
            failed_writes=writer.failures,
            waits=self._waits,
            late_windows=self._late,
            outlets={} if self._outlets is None else self._outlets.counts(),
        )

    def _hand_over(self) -> None:
        self._taken += ROW_BYTES * len(self._sums.rows)
        self._writer.put_window(self._sums)
        self._sums = Sums()

    def _held(self) -> int:
        """Bytes that wait."""
        return self._taken - self._writer.released + ROW_BYTES * self._late_rows()

    def _longest(self) -> int:
        """Bytes that wait, in the longest of the queues that somebody is held up for."""
        return self._held() if self._outlets is None else max(self._held(), self._outlets.held)

    def _late_rows(self) -> int:
        """Rows that are summed on because the writer is behind; those of a window in time do not wait."""
        return len(self._sums.rows) if self._writer.windows else 0

    def _made_room(self) -> None:
        held = self._longest()
        is_wanted = self._wanted and held < self._max_queue
        is_wanted_in_bulk = self._wanted_in_bulk and held <= BULK_AGAIN * self._max_queue
        if is_wanted:
            self._wanted = False
        if is_wanted_in_bulk:
            self._wanted_in_bulk = False
        if is_wanted or is_wanted_in_bulk:
            self._on_room()


def open_log(settings: Audit, on_room: Callable[[], None] = lambda: None) -> AuditLog:
    """The log that the settings describe, not started. ``on_room`` as of `AuditLog`."""
    boot = secrets.token_hex(6)
    pieces, sink = Pieces(settings.name, boot), _sink_of(settings, boot)
    if not settings.sinks:
        assert sink is not None
        return AuditLog(sink, pieces, max_queue=settings.max_queue, on_room=on_room)
    # Of use where somebody gets records beside.
    from amqpgate.telemetry.audit.outlets.fan_out import FanOut, Outlets
    from amqpgate.telemetry.audit.outlets.opening import outlets_of

    def made_room() -> None:
        log._made_room()

    some = outlets_of(settings, made_room)
    log = AuditLog(
        FanOut(sink, some), pieces, max_queue=settings.max_queue, on_room=on_room, outlets=Outlets(some)
    )
    return log


def _sink_of(settings: Audit, boot: str) -> Sink | None:
    if settings.format is None:
        return None
    if settings.format == "json":
        return LineSink()
    # Large, and there only with an extra.
    from amqpgate.telemetry.audit.parquet import ParquetSink

    assert settings.folder is not None
    return ParquetSink(
        settings.folder,
        settings.name,
        boot,
        roll_records=settings.roll_records,
        roll_interval=settings.roll_interval,
    )
