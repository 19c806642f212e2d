"""``amqpgate audit usage``: messages and bytes per principal, for a bill or a plot."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from amqpgate.cli.audit_job import running
from amqpgate.cli.audit_options import every_option, follow_option, job
from amqpgate.cli.audit_prices import price_option, prices_of

if TYPE_CHECKING:
    from amqpgate.pipeline.jobs.costs import Payer


def _zone(ctx: click.Context, param: click.Parameter, value: str) -> ZoneInfo:
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.BadParameter(f"there is no time zone {value!r}", ctx, param) from None


@click.command(short_help="Messages and bytes per user, virtual host, exchange and time.")
@job
@click.option(
    "--per",
    type=click.Choice(["minute", "hour", "day", "month"]),
    help="A row for each.  [default: hour; month with --price]",
)
@click.option(
    "--timezone",
    metavar="NAME",
    default="UTC",
    show_default=True,
    callback=_zone,
    help="Whose days and months: Europe/Berlin or the like.",
)
@price_option(help="Show what it costs by the prices in this file, by days or months.")
@click.option(
    "--by",
    type=click.Choice(["user", "group", "vhost"]),
    multiple=True,
    help="With --price: whom costs are told of.  [default: each of them]",
)
@follow_option
@every_option(default=60)
@click.option(
    "--late",
    metavar="MINUTES",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="With --follow: how long records are waited for.",
)
def usage(
    per: Literal["minute", "hour", "day", "month"] | None,
    timezone: ZoneInfo,
    price: Path | None,
    by: tuple[Payer, ...],
    follow: bool,
    every: float,
    late: int,
) -> None:
    """Show how many messages and bytes each user published, got and was refused.

    Days and months are those of --timezone, and so are the times that are shown. Peaks are messages and bytes
    per second, both ways, in the busiest minute. A record counts where its window of 10 seconds began.

    With --price messages are those that passed, published and got. A connection counts from its opening to
    its end, within --since and --until. A file of prices has a currency, some prices, and who pays for whom:

    \b
    currency: EUR
    perMillionMessages: 0.50
    perGigabyte: 0.02
    perConnectionHour: 0.001
    groups: {shop: [shop-*, alice], logistics: [bob]}

    With --follow, --output names a folder. A row is written once no more records are expected for its time,
    each batch of rows in a file of its own; records that come later still are not in it.

    \b
    amqpgate audit usage audit --per day --format csv --output bill.csv
    amqpgate audit usage audit --per month --timezone Europe/Berlin --format csv
    amqpgate audit usage audit --price prices.yaml --by group --format csv -o november.csv
    amqpgate audit usage audit --per minute --vhost orders --since 2026-11-22
    """
    if follow and (price is not None or per == "month" or timezone.key != "UTC"):
        raise click.UsageError("--follow has neither months nor --timezone nor --price")
    if price is not None:
        if per in ("minute", "hour"):
            raise click.UsageError("--price needs --per day or month")
        _charge(price, "day" if per == "day" else "month", timezone, by)
        return
    if by:
        raise click.UsageError("--by needs --price")
    per = per or "hour"
    with running(follow, answer=f"usage_by_{per}") as run:
        from amqpgate.pipeline.jobs.usage import usage_by

        if follow:
            folder = run.output_folder()
            rows = usage_by(run.stream("usage").withWatermark("window_start", f"{late} minutes"), per)
            run.follow({"usage": (rows, partial(run.write_batch, f"usage-{per}"))}, folder, every)
        else:
            rows = usage_by(run.read("usage").frame, per, timezone.key)
            run.write(rows.orderBy("start", "user", "vhost", "exchange"), timezone)


def _charge(price: Path, per: Literal["day", "month"], timezone: ZoneInfo, by: tuple[Payer, ...]) -> None:
    prices = prices_of(price)
    with running(answer=f"costs_by_{per}") as run:
        from amqpgate.pipeline.jobs.costs import PAYERS, costs

        payers = tuple(payer for payer in PAYERS if payer in by) or PAYERS
        usage, events = run.read("usage").frame, run.read_always("events").frame
        rows = costs(usage, events, prices, per, timezone.key, payers, run.options.span)
        run.write(rows.orderBy("start", *payers), timezone)
