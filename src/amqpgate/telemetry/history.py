"""An hour of a gateway in numbers: a ring for each process, which a row goes into every five seconds.

A row has one number for each of `SERIES`, and how long brokers took to confirm, and what the gateway added,
as counts by `buckets`: those of several processes are added up before a percentile is taken. It stands in its
slot of the hour, by the wall clock, so that the rows of several processes meet. Where a process has written
nothing for a slot there is a gap, and what stands there from an hour ago is nobody's. The memory may be
shared: one process writes a ring, any may read it, and a process that is started again goes on where the one
before it ended.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import attrs

from amqpgate.buckets import ADDED, CONFIRMS, Bounds, percentile
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
#: What is timed, with what it means.
TIMED: Final[dict[str, tuple[Bounds, str]]] = {
    "confirm": (CONFIRMS, "Seconds from a publish to its confirm"),
    "added": (ADDED, "Seconds that bytes are in the gateway"),
}
#: What is told of it: the series, what was timed, and the share that took less.
PERCENTILES: Final = {
    f"{name}_{word}": (name, share) for name in TIMED for word, share in (("p50", 0.5), ("p99", 0.99))
}

#: The slot's number since 1970, the series, and counts of each, with how many bits all of them lack.
_COUNTS: Final = {name: struct.Struct(f"=B{len(bounds) + 1}H") for name, (bounds, _) in TIMED.items()}
_SERIES: Final = struct.Struct(f"=I{len(SERIES)}f")
_SLOT: Final = struct.Struct("=I")
_COUNT_BITS: Final = 16
_WORSTS: Final = tuple(name in _WORST for name in SERIES)
#: Bytes of a ring.
_ROW: Final = _SERIES.size + sum(counts.size for counts in _COUNTS.values())
RING: Final = SLOTS * _ROW


#: What is read of a slot: in the order of `SERIES`, and counts by `TIMED`.
Row: TypeAlias = tuple[Sequence[float], dict[str, list[int]]]


def slot_at(seconds: float) -> int:
    """The number of the slot that is under way then."""
    return int(seconds // STEP)


@define(eq=False)
class Ring:
    """The hour of one process, in memory that may be another's, too."""

    _memory: memoryview

    def write(self, slot: int, values: Iterable[float], *timed: Sequence[int]) -> None:
        """The row of a slot: in the order of `SERIES`, and counts of each of `TIMED`, or none."""
        at = slot % SLOTS * _ROW
        # Who reads it meanwhile finds nothing, rather than the half of it.
        _SLOT.pack_into(self._memory, at, 0)
        row = bytearray(_ROW)
        _SERIES.pack_into(row, 0, 0, *values)
        into = _SERIES.size
        for packed, counts in zip(_COUNTS.values(), timed, strict=False):
            # Where one does not fit, all lose their last bits: their shares stay.
            bits = max(0, max(counts).bit_length() - _COUNT_BITS)
            packed.pack_into(row, into, bits, *(count >> bits for count in counts))
            into += packed.size
        self._memory[at + _SLOT.size : at + _ROW] = row[_SLOT.size :]
        _SLOT.pack_into(self._memory, at, slot)

    def read(self, slot: int) -> Row | None:
        """What was written for a slot; None: nothing."""
        row = self._memory[slot % SLOTS * _ROW :][:_ROW].tobytes()
        found, *values = _SERIES.unpack_from(row)
        if found != slot:
            return None
        timed, at = {}, _SERIES.size
        for name, packed in _COUNTS.items():
            bits, *counts = packed.unpack_from(row, at)
            timed[name] = [count << bits for count in counts]
            at += packed.size
        return values, timed

    def mark(self, slot: int) -> int:
        """A number that changes where another row is written for a slot; 0: nothing was."""
        at = slot % SLOTS * _ROW
        if _SLOT.unpack_from(self._memory, at)[0] != slot:
            return 0
        return crc32(self._memory[at : at + _ROW]) or 1


@define(eq=False)
class History:
    """The hour of a gateway, which has one process or several."""

    rings: tuple[Ring, ...]
    #: What was told of each slot, by its place in a ring: an answer has 720 of them, and the next one all but
    #: one of these again. With the slot, and the marks of the rows: one may have been written since.
    _told: dict[int, tuple[int, tuple[int, ...], Sequence[JSON]]] = attrs.field(factory=dict, init=False)

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
            marks = tuple(ring.mark(slot) for ring in self.rings)
            if any(marks) or columns["at"]:
                for column, value in zip(columns.values(), self._row(slot, marks), strict=True):
                    column.append(value)
                await turns.next()
        while columns["workers"] and not columns["workers"][-1]:
            for column in columns.values():
                column.pop()
        return {"step": STEP, **columns}

    def _row(self, slot: int, marks: tuple[int, ...]) -> Sequence[JSON]:
        known = self._told.get(slot % SLOTS)
        if known is not None and known[:2] == (slot, marks):
            return known[2]
        told = _together(slot, [row for ring in self.rings if (row := ring.read(slot)) is not None])
        self._told[slot % SLOTS] = slot, marks, told
        return told


def _together(slot: int, rows: list[Row]) -> Sequence[JSON]:
    """What is told of a slot: when it was over, how many wrote a row, and their numbers as one."""
    told: list[JSON] = [(slot + 1) * STEP, len(rows)]
    for place, is_worst in enumerate(_WORSTS):
        found = [values[place] for values, _ in rows]
        told.append(_short((max if is_worst else sum)(found)) if found else None)
    counts = {
        name: [sum(of) for of in zip(*(timed[name] for _, timed in rows), strict=True)] for name in TIMED
    }
    for name, share in PERCENTILES.values():
        found_at = percentile(TIMED[name][0], counts[name], share)
        told.append(None if found_at is None else _short(found_at))
    return told


def _short(value: float) -> float:
    """A whole number as it is, and others with four digits: an hour has thousands of them."""
    rounded = value if value.is_integer() else float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded
