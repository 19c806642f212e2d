"""What was refused: for each minute, rule, user and target one alert, once no more records are expected.

Records that come later still make alerts of their own, which say so. At most `MOST_OPEN` are waited for: then
those of the oldest minutes are told early.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from amqpgate.pipeline.watch.alert import Alert, id_of
from amqpgate.pipeline.watch.course import Batch
from amqpgate.records import Sort

#: Alerts that wait for the end of their minute.
MOST_OPEN: Final = 50_000

_WINDOW: Final = timedelta(minutes=1)
_KEYS: Final = ("policy", "rule", "verdict", "operation", "user", "vhost", "exchange", "queue")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: The minute, and who did what.
Key: TypeAlias = tuple[datetime, tuple[str | None, ...]]


@attrs.frozen
class Tally:
    """How often, and when."""

    times: int
    first: datetime
    last: datetime

    def __or__(self, other: Tally) -> Tally:
        return Tally(self.times + other.times, min(self.first, other.first), max(self.last, other.last))


@attrs.define
class Denied:
    """Watches events of one kind. ``late``: how long records are waited for."""

    late: timedelta
    kind: Literal["denied", "shadow"] = "denied"
    sorts: tuple[Sort, ...] = ("events",)
    _open: dict[Key, Tally] = attrs.field(init=False, factory=dict)
    _told_until: datetime = attrs.field(init=False, default=_EPOCH)

    def is_due(self, now: datetime) -> bool:
        """Whether something is to be told although nothing came."""
        return any(minute + _WINDOW <= now - self.late for minute, _ in self._open)

    def step(self, batch: Batch) -> list[Alert]:
        """What is to be told after a batch."""
        events = batch.records["events"]
        found: list[Alert] = []
        for key, tally in self._tallies(events):
            if key[0] + _WINDOW <= self._told_until:
                found.append(self._alert(key, tally, late=batch.number))
            else:
                self._open[key] = self._open[key] | tally if key in self._open else tally
        latest = pc.max(events["time"]).as_py() if len(events) else None
        # A gateway's clock that is ahead ends nobody's minute.
        known = batch.now if latest is None else min(latest, batch.now)
        self._told_until = max(self._told_until, known - self.late, self._beyond())
        for key in sorted(self._open, key=str):
            if key[0] + _WINDOW <= self._told_until:
                found.append(self._alert(key, self._open.pop(key)))
        return found

    def dump(self) -> str:
        """What it has to know of after a restart."""
        waiting = [
            [minute.isoformat(), *who, tally.times, tally.first.isoformat(), tally.last.isoformat()]
            for (minute, who), tally in self._open.items()
        ]
        return json.dumps({"told_until": self._told_until.isoformat(), "open": waiting})

    def load(self, text: str) -> None:
        """Know it again."""
        known = json.loads(text)
        self._told_until = datetime.fromisoformat(known["told_until"])
        self._open = {
            (datetime.fromisoformat(minute), tuple(who)): Tally(
                times, datetime.fromisoformat(first), datetime.fromisoformat(last)
            )
            for minute, *who, times, first, last in known["open"]
        }

    def _tallies(self, events: pa.Table) -> Iterator[tuple[Key, Tally]]:
        mine = events.filter(pc.equal(events["kind"], self.kind))
        minutes = pc.floor_temporal(mine["time"], unit="minute")
        table = mine.select([*_KEYS, "time"]).append_column("minute", minutes)
        grouped = table.group_by([*_KEYS, "minute"]).aggregate(
            [("time", "count"), ("time", "min"), ("time", "max")]
        )
        for row in grouped.to_pylist():
            tally = Tally(row["time_count"], row["time_min"], row["time_max"])
            yield (row["minute"], tuple(row[name] for name in _KEYS)), tally

    def _beyond(self) -> datetime:
        """The end of the minutes that are told early, since too many are open."""
        if len(self._open) <= MOST_OPEN:
            return _EPOCH
        ordered = sorted(minute for minute, _ in self._open)
        return ordered[len(ordered) - MOST_OPEN - 1] + _WINDOW

    def _alert(self, key: Key, tally: Tally, late: int | None = None) -> Alert:
        minute, who = key
        said = dict(zip(_KEYS, who, strict=True))
        target = said["exchange"] or said["queue"]
        return Alert(
            id=id_of(self.kind, minute, *who, late),
            kind=self.kind,
            time=minute,
            user=said["user"],
            vhost=said["vhost"],
            what=f"{said['operation']} {target}" if target else str(said["operation"]),
            value=tally.times,
            detail={
                "policy": said["policy"],
                "rule": said["rule"],
                "operation": said["operation"],
                "exchange": said["exchange"],
                "queue": said["queue"],
                "first": tally.first.isoformat(),
                "last": tally.last.isoformat(),
                "late": late is not None,
            },
        )
