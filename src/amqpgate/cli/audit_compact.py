"""``amqpgate audit compact``: raw records as a table of few files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from amqpgate.cli.audit_job import (
    chosen_options,
    every_option,
    failing,
    follow_option,
    name_skipped,
    running,
    spark_options,
    until_signal,
)
from amqpgate.cli.audit_source import needed, source_of
from amqpgate.cli.audit_told import told
from amqpgate.cli.failures import WRONG, Failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from amqpgate.cli.audit_job import Batch
    from amqpgate.pipeline.folders import Compacted
    from amqpgate.pipeline.lake.address import TableAddress
    from amqpgate.pipeline.lake.table import Lake
    from amqpgate.records import Sort

#: Seconds between looks for files that no version of a table needs.
_EXPIRY: Final = 86_400.0


@click.command(short_help="Make a table of few files of the raw records.")
@spark_options
@click.argument("table", metavar="TABLE")
@click.option(
    "--keep",
    metavar="DAYS",
    type=click.IntRange(1, 3650),
    default=7,
    show_default=True,
    help="Of Delta and Iceberg: how long versions that were replaced can be read.",
)
@follow_option
@every_option(default=600)
def compact(table: str, keep: int, follow: bool, every: float) -> None:
    """Add what is new in FOLDER to TABLE: a file of records per day, and of usage per virtual host.

    Each record is in it once, however often this runs, and late ones are in their day. All verbs can read
    TABLE instead of FOLDER, at every moment. It is a folder of this machine, or one that it has mounted.

    Or TABLE is a place for tables that others read, too, and Spark is not needed: delta:FOLDER,
    delta:s3://BUCKET/PREFIX, iceberg:FOLDER, or iceberg://CATALOG/NAMESPACE for a catalogue of pyiceberg's
    settings. Events and usage are tables there, with a part for each day.

    With --follow it goes on until Ctrl-C, and adds what came by then at each interval. It reads Parquet only.

    \b
    amqpgate audit compact /var/lib/amqpgate/audit /srv/audit
    amqpgate audit compact /var/lib/amqpgate/audit delta:s3://lake/audit --follow
    amqpgate audit compact s3://bucket/raw iceberg://prod/audit --keep 30
    """
    with needed():
        from amqpgate.pipeline.errors import PipelineError
        from amqpgate.pipeline.lake.address import address_of

        try:
            address = address_of(table)
        except PipelineError as error:
            raise click.BadParameter(str(error), param_hint="TABLE") from None
    if address is not None:
        _into_lake(address, timedelta(days=keep), every if follow else None)
        return
    if re.match("[a-z][a-z0-9+.-]+:/", table):
        raise click.BadParameter(
            f"{table} is not a folder of this machine, or one that it has mounted", param_hint="TABLE"
        )
    _into_folder(Path(table), every if follow else None)


def _into_folder(table: Path, every: float | None) -> None:
    with running(every is not None, only_spark=True, output=table) as run:
        from amqpgate.pipeline.compact import add, compact, locked
        from amqpgate.pipeline.folders import refuse_overlap
        from amqpgate.records import TABLES

        if every is None:
            run.step("compacting")
            done = compact(run.spark, run.folder, table)
            run.has_compacted(done)
            _tell(done)
            return

        def add_to(sort: Sort, batch: DataFrame, _number: int) -> None:
            add(batch, table, sort)

        streams: dict[str, tuple[DataFrame, Batch]] = {
            sort: (run.stream_parts(sort), partial(add_to, sort)) for sort in TABLES
        }
        refuse_overlap(run.options.folder, table)
        with locked(table):
            run.follow(streams, table, every)


def _into_lake(address: TableAddress, keep: timedelta, every: float | None) -> None:
    """In this process, once or until a signal."""
    from rich.console import Console

    from amqpgate.pipeline.lake.opening import open_lake

    options = chosen_options()
    if options.master is not None or options.settings:
        raise Failure(f"amqpgate: {address} is written without Spark: leave out --master and --conf", WRONG)
    # As an address is said: to lineage it is where the tables are.
    with (
        told(options, str(address)) as facts,
        failing(),
        Console(stderr=True).status("compacting") as status,
    ):
        lake = open_lake(address)
        if every is None:
            done = _once(lake, status.update)
            for one in done:
                facts.has_read(one)
            _tell(done)
            _expire(lake, keep)
            return
        status.update(f"following {options.folder}; Ctrl-C ends it")
        expired = -_EXPIRY
        with until_signal() as signalled:
            while not signalled.is_set():
                done = _once(lake, status.update)
                _tell(one for one in done if one.records or one.skipped)
                if monotonic() - expired >= _EXPIRY:
                    _expire(lake, keep)
                    expired = monotonic()
                signalled.wait(every)


def _once(lake: Lake, tell: Callable[[str], None]) -> list[Compacted]:
    from amqpgate.pipeline.lake.compacting import compact_into

    options = chosen_options()
    with ExitStack() as stack:
        return compact_into(lake, source_of(options.folder, None, stack, tell), tell)


def _expire(lake: Lake, keep: timedelta) -> None:
    from amqpgate.pipeline.lake.compacting import expire

    if gone := expire(lake, datetime.now(UTC) - keep):
        click.echo(f"{gone:,} files of old versions removed")


def _tell(done: Iterable[Compacted]) -> None:
    for one in done:
        name_skipped(one.skipped)
        click.echo(
            f"{one.sort}: {one.files:,} new files read, {one.records:,} records added, "
            f"{one.changed:,} files changed"
        )
