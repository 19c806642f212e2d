"""The report's section on an upgrade: whose requests RabbitMQ 4.3 refuses, or takes otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpgate.pipeline.jobs.preflight import Seen, seen
from amqpgate.pipeline.jobs.report_parts import ByteCount, Cell, ReportTable, Section, Word
from amqpgate.policy.tools.preflight import FAILS, Target, Trouble, troubles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What the report is about; ``audit preflight`` has the others.
TARGET: Final[Target] = "4.3"
_NO_USER: Final = Word("(unknown)")
_NOTHING: Final = Word("nothing yet")
HEADS: Final = (
    "outcome",
    "user",
    "virtual host",
    "request",
    "name",
    "times",
    "since",
    "last",
    "what",
    "mended by",
)


def upgrade(usage: DataFrame, events: DataFrame, top: int) -> Section:
    """Tables of what fails there, and of what means something else."""
    found = seen(usage, events)
    rows = [(one, trouble) for one in found.requests for trouble in troubles(one.request, TARGET)]
    rows.sort(key=lambda row: -row[0].times)
    fails = [row for row in rows if row[1].outcome in FAILS]
    differs = [row for row in rows if row[1].outcome not in FAILS]
    more = f" {found.left_out:,} requests were not looked at." if found.left_out else ""
    return Section(
        f"Before RabbitMQ {TARGET}",
        f"As amqpgate audit preflight has it, which knows other versions.{more}",
        (
            _table("What fails, or may fail", fails, top, "Nothing fails."),
            _table("What means something else", differs, top, "Nothing differs."),
        ),
    )


def _table(title: str, rows: list[tuple[Seen, Trouble]], top: int, nothing: str) -> ReportTable:
    return ReportTable(
        title=title,
        heads=HEADS,
        rows=tuple(_row(one, trouble) for one, trouble in rows[:top]),
        more=max(0, len(rows) - top),
        nothing=nothing,
    )


def _row(one: Seen, trouble: Trouble) -> tuple[Cell, ...]:
    request = one.request
    return (
        Word(trouble.outcome),
        _NO_USER if one.user is None else one.user,
        request.vhost,
        request.kind,
        ByteCount(request.largest_body) if request.largest_body else request.name,
        one.times,
        one.first,
        one.last,
        Word(trouble.says),
        Word(trouble.mended_by) if trouble.mended_by else _NOTHING,
    )
