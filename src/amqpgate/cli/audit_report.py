"""``amqpgate audit report``: one page of HTML that a person can mail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.audit_job import Running, running
from amqpgate.cli.audit_options import last_option, records_options
from amqpgate.cli.audit_output import replaced
from amqpgate.cli.audit_policies import sources_of
from amqpgate.cli.audit_prices import price_option, prices_of

if TYPE_CHECKING:
    from amqpgate.pipeline.jobs.prices import Prices
    from amqpgate.pipeline.jobs.report_costs import Charge


@click.command(short_help="One page of HTML with plots and tables of all that the records tell.")
@records_options
@click.option(
    "--policies",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Say what these policies would have answered otherwise, too.",
)
@price_option(help="Say what it costs by the prices in this file, too.")
@last_option(help="Look for anomalies in so many hours before --until (or the last record).")
@click.option(
    "--top", metavar="N", type=click.IntRange(1, 1000), default=20, show_default=True, help="Rows of a table."
)
def report(policies: Path | None, price: Path | None, last: int, top: int) -> None:
    """Make a page of what passed and was refused, whose it was, what is unusual, and who sends what to whom.

    The page is one file that needs no other, and no other host, and can be mailed. Tables have the most
    frequent rows, and say how many more there are.

    \b
    amqpgate audit report /var/lib/amqpgate/audit --since 2026-11-15 --output report.html
    amqpgate audit report audit --policies new-policies -o report.html
    """
    candidate = None if policies is None else sources_of(policies)
    prices = None if price is None else prices_of(price)
    with running() as run:
        from amqpgate.pipeline.jobs.report import Wanted, report
        from amqpgate.pipeline.jobs.report_page import page

        usage, events = run.read("usage"), run.read("events")
        wanted = Wanted(
            top=top,
            last=last,
            until=run.options.until,
            candidate=candidate,
            charge=None if prices is None else _charge(run, prices),
            skipped=(*usage.skipped, *events.skipped),
        )
        run.step("making the report")
        text = page(report(usage.frame, events.frame, wanted), f"Audit report of {run.options.folder}")
        with replaced(run.options.output) as out:
            out.write(text)


def _charge(run: Running, prices: Prices) -> Charge:
    from amqpgate.pipeline.jobs.report_costs import Charge

    return Charge(prices=prices, span=run.options.span, connections=run.read_always("events").frame)
