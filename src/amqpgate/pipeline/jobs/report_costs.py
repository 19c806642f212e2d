"""The report's section on costs: by month and in all, of groups, virtual hosts and users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.frames import F, kept
from amqpgate.pipeline.jobs.costs import Payer, costs
from amqpgate.pipeline.jobs.prices import Prices
from amqpgate.pipeline.jobs.report_parts import ByteCount, Cell, ReportTable, Section, Word
from amqpgate.pipeline.jobs.report_rows import table, time_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_NAMES: Final[dict[Payer, str]] = {"group": "Groups", "vhost": "Virtual hosts", "user": "Users"}
_NOBODY: Final[dict[Payer, Word]] = {
    "group": Word("(no group)"),
    "vhost": Word("(none)"),
    "user": Word("(unknown)"),
}


@attrs.frozen(kw_only=True, eq=False)
class Charge:
    """What is charged: by which prices, of which time."""

    prices: Prices
    span: Span = attrs.field(factory=Span)
    #: Events of all times, so that connections are known which are there all the time.
    connections: DataFrame


def charged(usage: DataFrame, charge: Charge, top: int) -> Section:
    """Who costs most in which month."""
    parts: list[ReportTable] = []
    with kept(costs(usage, charge.connections, charge.prices, span=charge.span)) as found:
        total = found.agg(_summed("cost").alias("cost")).collect()[0].cost
        for payer, title in _NAMES.items():
            if payer != "group" or charge.prices.groups:
                parts.append(_table(found, payer, title, top))
    about = f"By the table of prices, {total or 0:,.2f} {charge.prices.currency} in all. Months are UTC."
    return Section("Costs", about, tuple(parts))


def _table(found: DataFrame, payer: Payer, title: str, top: int) -> ReportTable:
    names = ("messages", "bytes", "connection_seconds")
    sums = (
        found.groupBy("start", payer)
        .agg(*(F.sum(name).alias(name) for name in names), _summed("cost").alias("cost"))
        .orderBy(F.desc("start"), F.desc("cost"), payer)
    )
    return table(
        sums,
        top,
        title=f"{title} by month",
        heads=("month", title.lower().removesuffix("s"), "messages", "bytes", "connection hours", "cost"),
        row=lambda row: _cells(row, payer),
    )


def _summed(name: str) -> Column:
    """Of decimals: ``F.sum`` is one of whole numbers here."""
    return F.call_function("sum", F.col(name))


def _cells(row: Row, payer: Payer) -> tuple[Cell, ...]:
    return (
        f"{time_of(row.start):%Y-%m}",
        _NOBODY[payer] if row[payer] is None else row[payer],
        *(row.messages, ByteCount(row.bytes), row.connection_seconds / 3600, row.cost),
    )
