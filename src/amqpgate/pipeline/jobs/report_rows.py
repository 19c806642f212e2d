"""From data frames to the tables and plots of a report, each of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final, Literal

import attrs

from amqpgate.pipeline.frames import F, times_of
from amqpgate.pipeline.jobs.report_parts import Cell, Plot, ReportTable, Series, Word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

#: Steps of a plot, at most.
MOST_STEPS: Final = 240

#: How wide a step may be, in seconds; or else a multiple of the last.
_STEPS: Final = (60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400)

_OTHERS: Final = Word("all others")


@attrs.frozen
class Axis:
    """Times of plots: ``count`` steps of ``step`` seconds, the first at a multiple of it since the epoch."""

    begin: int
    step: int
    count: int

    @staticmethod
    def of(first: datetime, last: datetime, narrowest: int = 0) -> Axis:
        """The axis with the narrowest steps, in seconds, that has both."""
        low, high = int(first.timestamp()), int(last.timestamp())
        widest = _STEPS[-1]
        multiple = widest * -(-(high - low) // (widest * (MOST_STEPS - 2)))
        steps = (step for step in _STEPS if step >= narrowest)
        step = next((step for step in steps if high // step - low // step < MOST_STEPS), multiple)
        begin = low // step * step
        return Axis(begin, step, high // step - low // step + 1)

    @property
    def per(self) -> Literal["minute", "hour", "day"]:
        """The coarsest of these that fits into a step."""
        return "day" if self.step % 86_400 == 0 else "hour" if self.step % 3600 == 0 else "minute"

    @property
    def times(self) -> tuple[datetime, ...]:
        """Where the steps begin."""
        return tuple(time_of(self.begin + number * self.step) for number in range(self.count))

    def number_of(self, time: str) -> Column:
        """The step that a column of times is in."""
        return F.floor((F.unix_seconds(time) - self.begin) / self.step).cast("int")

    @property
    def said(self) -> str:
        """How long a step is, in words."""
        count = self.step // {"day": 86_400, "hour": 3600, "minute": 60}[self.per]
        return f"one {self.per}" if count == 1 else f"{count} {self.per}s"


def plot(
    frame: DataFrame,
    axis: Axis,
    *,
    title: str,
    unit: str,
    time: str,
    value: Column,
    by: tuple[str, ...],
    series: Sequence[tuple[tuple[object, ...], str | Word]],
    scale: float = 1.0,
) -> Plot:
    """``value`` by ``scale`` at each step, for each of ``series`` and for all others.

    A series has its values of ``by``, and the name that is shown.
    """
    place = F.lit(len(series))
    for number, (values, _) in reversed(list(enumerate(series))):
        same = [F.col(column).eqNullSafe(F.lit(each)) for column, each in zip(by, values, strict=True)]
        place = F.when(reduce(and_, same), number).otherwise(place)
    # A number alone would be the place of a column to DuckDB, and not a group.
    groups = (axis.number_of(time).alias("step"), place.alias("place"))[: 2 if series else 1]
    found = (
        frame.groupBy(*groups)
        .agg(value.alias("value"))
        .where(F.col("step").between(0, axis.count - 1))
        .collect()
    )
    numbers = [[0.0] * axis.count for _ in range(len(series) + 1)]
    for row in found:
        numbers[row.place if series else 0][row.step] = row.value / scale
    names = [*(name for _, name in series), _OTHERS]
    return Plot(
        title=title,
        unit=unit,
        times=axis.times,
        series=tuple(
            Series(name, tuple(line)) for name, line in zip(names, numbers, strict=True) if any(line)
        ),
    )


def table(
    frame: DataFrame,
    top: int,
    *,
    title: str,
    heads: tuple[str, ...],
    row: Callable[[Row], tuple[Cell, ...]],
    nothing: str = "Nothing.",
) -> ReportTable:
    """The first rows of the frame, and how many more there are. ``row`` is given times in seconds."""
    # Spark would hand times out in the time zone of this process.
    seconds = {name: F.unix_seconds(name) for name in times_of(frame)}
    found = frame.limit(top).withColumns(seconds).collect()
    return ReportTable(
        title=title,
        heads=heads,
        rows=tuple(map(row, found)),
        more=frame.count() - top if len(found) == top else 0,
        nothing=nothing,
    )


def time_of(seconds: int) -> datetime:
    """Since the epoch, UTC."""
    return datetime.fromtimestamp(seconds, UTC)
