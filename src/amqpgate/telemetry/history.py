"""An hour of a gateway in numbers: a ring for each process, which a row goes into every five seconds.

A row has one number for each of `SERIES`, and how long brokers took to confirm, as counts by `BUCKETS`:
those of several processes are added up before a percentile is taken. It stands in its slot of the hour, by
the wall clock, so that the rows of several processes meet. Where a process has written nothing for a slot
there is a gap, and what stands there from an hour ago is nobody's. The memory may be shared: one process
writes a ring, any may read it, and a process that is started again goes on where the one before it ended.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.time_slices import TimeSlices
from amqpgate.values import define

#: What is kept.
MINUTES: Final = 60
#: Seconds of a slot, and slots of a ring: one is written while the oldest may still be told.
STEP: Final = 5
SLOTS: Final = MINUTES * 60 // STEP + 1
#: Seconds after which all have written the row of a slot: they look once a second.
_LATE: Final = 2

#: What a row has, with what it means.
SERIES: Final[dict[str, str]] = {
    "published": "Messages from clients a second.",
    "delivered": "Messages to clients a second.",
    "published_bytes": "Bytes of their bodies a second.",
    "delivered_bytes": "Bytes of their bodies a second.",
    "refused": "Messages from clients a second that were not passed on.",
    "denied": "Operations a second that policies denied.",
    "throttled": "Times a second that a rate limit made a side wait.",
    "waiting": "Sessions that waited for a rate limit.",
    "sessions": "Sessions.",
    "buffered": "Bytes that waited to be sent.",
    "lag": "Seconds that the event loop was late, at most.",
    "cpu": "Cores in use.",
    "memory": "Bytes of resident memory.",
}
#: Of one process the worst, and not the sum.
_WORST: Final = frozenset({"lag"})
#: Upper bounds in seconds: a percentile is at most a quarter off, from 0.1 ms to 9 s.
BUCKETS: Final = tuple(1e-4 * 1.25**number for number in range(52))
PERCENTILES: Final = {"confirm_p50": 0.5, "confirm_p99": 0.99}

#: The slot's number since 1970, the series, and the counts.
_ROW: Final = struct.Struct(f"=I{len(SERIES)}f{len(BUCKETS) + 1}H")
_SLOT: Final = struct.Struct("=I")
_MOST: Final = 0xFFFF
_WORSTS: Final = tuple(name in _WORST for name in SERIES)
#: Bytes of a ring.
RING: Final = SLOTS * _ROW.size


def slot_at(seconds: float) -> int:
    """The number of the slot that is under way then."""
    return int(seconds // STEP)


@define(eq=False)
class Ring:
    """The hour of one process, in memory that may be another's, too."""

    _memory: memoryview

    def write(self, slot: int, values: Iterable[float], took: Iterable[int]) -> None:
        """The row of a slot: in the order of `SERIES`, and of `BUCKETS` with one beyond them."""
        at = slot % SLOTS * _ROW.size
        # Who reads it meanwhile finds nothing, rather than the half of it.
        _SLOT.pack_into(self._memory, at, 0)
        row = _ROW.pack(0, *values, *(min(count, _MOST) for count in took))
        self._memory[at + _SLOT.size : at + _ROW.size] = row[_SLOT.size :]
        _SLOT.pack_into(self._memory, at, slot)

    def read(self, slot: int) -> Sequence[float] | None:
        """What was written for a slot; None: nothing."""
        row = _ROW.unpack_from(self._memory, slot % SLOTS * _ROW.size)
        return row[1:] if row[0] == slot else None


@define(eq=False)
class History:
    """The hour of a gateway, which has one process or several."""

    rings: tuple[Ring, ...]

    @classmethod
    def of(cls, memory: memoryview) -> History:
        """As many rings as there is room for."""
        return cls(tuple(Ring(memory[at : at + RING]) for at in range(0, len(memory), RING)))

    async def told(self, minutes: int, now: float) -> dict[str, JSON]:
        """The last minutes before ``now``, in seconds since 1970: a list for each series, of the same length.

        It begins with the first slot that anybody has written, and ends with the last.
        """
        until = slot_at(now - _LATE)
        columns: dict[str, list[JSON]] = {name: [] for name in ("at", "workers", *SERIES, *PERCENTILES)}
        turns = TimeSlices()
        for slot in range(until - minutes * 60 // STEP, until):
            rows = [row for ring in self.rings if (row := ring.read(slot)) is not None]
            if rows or columns["at"]:
                # When it was over.
                columns["at"].append((slot + 1) * STEP)
                columns["workers"].append(len(rows))
                _append(columns, rows)
                await turns.next()
        while columns["workers"] and not columns["workers"][-1]:
            for column in columns.values():
                column.pop()
        return {"step": STEP, **columns}


def _append(columns: dict[str, list[JSON]], rows: list[Sequence[float]]) -> None:
    for place, (name, is_worst) in enumerate(zip(SERIES, _WORSTS, strict=True)):
        found = [row[place] for row in rows]
        columns[name].append(_short((max if is_worst else sum)(found)) if found else None)
    counts = [int(sum(of)) for of in zip(*(row[len(SERIES) :] for row in rows), strict=True)]
    for name, share in PERCENTILES.items():
        found_at = percentile(counts, share)
        columns[name].append(None if found_at is None else _short(found_at))


def _short(value: float) -> float:
    """A whole number as it is, and others with four digits: an hour has thousands of them."""
    rounded = value if value.is_integer() else float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def bucket_of(seconds: float) -> int:
    """Where it is counted: the number of the first bound that is not below it, or one beyond them."""
    return bisect_left(BUCKETS, seconds)


def percentile(counts: Sequence[int], share: float) -> float | None:
    """The seconds that this share took at most; None: nothing was timed."""
    total = sum(counts)
    if not total:
        return None
    sought = share * total
    below = 0
    for number, count in enumerate(counts):
        if count and below + count >= sought:
            if number == len(BUCKETS):
                break
            # Evenly between the bounds.
            lower = BUCKETS[number - 1] if number else 0.0
            return lower + (BUCKETS[number] - lower) * (sought - below) / count
        below += count
    return BUCKETS[-1]
