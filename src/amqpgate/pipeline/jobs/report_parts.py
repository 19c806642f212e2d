"""What a report is made of, before it is a page: sections of tables and plots. Values only, and no markup."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final, TypeAlias

import attrs

from amqpgate.pipeline.jobs.graph import DeniedEdge, Topology

#: Series that a plot tells apart; all others are one more.
MOST_SERIES: Final = 6


@attrs.frozen
class Word:
    """A word of the report's own, beside texts from records: ``(default)``."""

    text: str


@attrs.frozen
class ByteCount:
    """A number of bytes."""

    count: int


#: A text is one from records. Of several, all are shown.
Cell: TypeAlias = "str | Word | int | float | Decimal | ByteCount | datetime | tuple[str | Word, ...] | None"


@attrs.frozen(kw_only=True)
class ReportTable:
    """Rows that belong under the same heads; ``more`` says how many were left out."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int = 0
    #: What is said where there are no rows.
    nothing: str = "Nothing."


@attrs.frozen
class Series:
    """Numbers of one name, one for each time of its plot."""

    name: str | Word
    values: tuple[float, ...]


@attrs.frozen(kw_only=True)
class Plot:
    """Series over time, one upon the other. At most ``MOST_SERIES`` and one of all others."""

    title: str
    unit: str
    #: UTC, evenly spaced.
    times: tuple[datetime, ...]
    series: tuple[Series, ...]


@attrs.frozen
class Picture:
    """The graph of who sends what to whom."""

    topology: Topology
    denied: tuple[DeniedEdge, ...] = ()


Part: TypeAlias = ReportTable | Plot | Picture


@attrs.frozen
class Section:
    """What is told together."""

    title: str
    about: str
    parts: tuple[Part, ...]


@attrs.frozen(kw_only=True)
class Report:
    """All of it. ``first`` and ``last`` are None where there are no records."""

    first: datetime | None
    last: datetime | None
    facts: tuple[tuple[str, Cell], ...]
    sections: tuple[Section, ...]
