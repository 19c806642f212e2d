"""``amqpgate audit compact``: raw records as a table of few files."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amqpgate.cli.audit_job import every_option, follow_option, running, spark_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from amqpgate.cli.audit_job import Batch
    from amqpgate.records import Sort


def _here(ctx: click.Context, param: click.Parameter, table: Path) -> Path:
    """Files are renamed in it."""
    if re.match("[a-z][a-z0-9+.-]+:/", str(table)):
        raise click.BadParameter(
            f"{table} is not a folder of this machine, or one that it has mounted", ctx, param
        )
    return table


@click.command(short_help="Make a table of few files of the raw records.")
@spark_options
@click.argument("table", metavar="TABLE", type=click.Path(path_type=Path), callback=_here)
@follow_option
@every_option(default=600)
def compact(table: Path, follow: bool, every: float) -> None:
    """Add what is new in FOLDER to TABLE: a file of records per day, and of usage per virtual host.

    Each record is in it once, however often this runs, and late ones are in their day. All verbs can read
    TABLE instead of FOLDER, at every moment. It is a folder of this machine, or one that it has mounted.

    With --follow it goes on until Ctrl-C, and adds what came by then at each interval. It reads Parquet only.

    \b
    amqpgate audit compact /var/lib/amqpgate/audit /srv/audit
    """
    with running(follow, only_spark=True) as run:
        from amqpgate.pipeline.compact import add, compact, locked, refuse_overlap
        from amqpgate.records import TABLES

        if not follow:
            run.step("compacting")
            for done in compact(run.spark, run.folder, table):
                run.name(done.skipped)
                click.echo(
                    f"{done.sort}: {done.files:,} new files read, {done.records:,} records added, "
                    f"{done.changed:,} files changed"
                )
            return

        def add_to(sort: Sort, batch: DataFrame, _number: int) -> None:
            add(batch, table, sort)

        streams: dict[str, tuple[DataFrame, Batch]] = {
            sort: (run.stream_parts(sort), partial(add_to, sort)) for sort in TABLES
        }
        refuse_overlap(run.options.folder, table)
        with locked(table):
            run.follow(streams, table, every)
