"""Who left their own history: each whole hour is judged once, when no more of its records are expected.

History is what is in the folder, so that nothing of it is kept beside.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.pipeline.frames import rows_of
from amqpgate.pipeline.jobs.anomalies import anomalies
from amqpgate.pipeline.watch.alert import Alert, id_of
from amqpgate.pipeline.watch.course import Batch
from amqpgate.records import Sort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    #: Usage from a moment on, before another.
    Read = Callable[[datetime, datetime], AbstractContextManager[DataFrame]]

#: What is looked back on.
_HISTORY: Final = timedelta(weeks=8)
#: Hours that are judged at once, after a pause.
_MOST: Final = timedelta(days=7)


@attrs.define
class Unusual:
    """Watches whole hours."""

    late: timedelta
    read: Read
    sorts: tuple[Sort, ...] = ()
    _judged: datetime | None = attrs.field(init=False, default=None)

    def is_due(self, now: datetime) -> bool:
        """Whether an hour is over."""
        return self._judged is None or self._end(now) > self._judged

    def step(self, batch: Batch) -> list[Alert]:
        """The alerts of the hours that are over since the last time. The first time none."""
        end = self._end(batch.now)
        begin = max(self._judged or end, end - _MOST)
        self._judged = end
        if begin >= end:
            return []
        with self.read(begin - _HISTORY, end) as usage:
            return [
                Alert(
                    id=id_of("anomaly", row["kind"], row["user"], row["vhost"], row["hour"], row["what"]),
                    kind="anomaly",
                    time=_hour(row["hour"]),
                    user=_text(row["user"]),
                    vhost=_text(row["vhost"]),
                    what=f"{row['kind']}: {row['what']}",
                    value=int(str(row["value"] or 0)),
                    detail={name: row[name] for name in ("usual", "score", "weeks")},
                )
                for row in rows_of(anomalies(usage, begin, end))
            ]

    def dump(self) -> str:
        """What it has to know of after a restart."""
        return json.dumps(None if self._judged is None else self._judged.isoformat())

    def load(self, text: str) -> None:
        """Know it again."""
        known = json.loads(text)
        self._judged = None if known is None else datetime.fromisoformat(known)

    def _end(self, now: datetime) -> datetime:
        return (now - self.late).replace(minute=0, second=0, microsecond=0)


def _hour(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value.astimezone(UTC)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
