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

import attrs
import click

from amqpgate.cli.audit_job import name_skipped, starting, until_signal
from amqpgate.cli.audit_options import engine_option, every_option, follow_option, spark_options
from amqpgate.cli.audit_source import needed
from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from amqpgate.cli.audit_job import Batch, Running, Starting
    from amqpgate.pipeline.contract import Skipped
    from amqpgate.pipeline.folders import Compacted, RecordSource
    from amqpgate.pipeline.lake.address import TableAddress
    from amqpgate.records import Sort

#: Seconds between looks for files that no version of a table needs.
_EXPIRY: Final = 86_400.0


@click.command(short_help="Make a table of few files of the raw records.")
@spark_options
@engine_option(help="local is this process, without Spark; auto is local for what this machine reads.")
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

    Or TABLE is a place for tables that others read, too, and Spark is not used: delta:FOLDER,
    delta:s3://BUCKET/PREFIX, iceberg:FOLDER, or iceberg://CATALOG/NAMESPACE for a catalogue of pyiceberg's
    settings. Events and usage are tables there, with a part for each day.

    With --follow it goes on until Ctrl-C, and adds what came by then at each interval. Spark then reads
    Parquet only.

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
    with needed():
        from amqpgate.pipeline.engines import choose, is_long
        from amqpgate.pipeline.local_compact import compact
    with starting(output=str(table)) as job:
        source, asked, is_sparks = job.source(), job.options.engine, job.options.is_sparks
        if choose(source, asked, is_sparks=is_sparks, is_any_size=True) == "local":
            is_followed = every is not None
            _here(job, source, every, lambda now, tell: compact(now, table, tell, is_followed=is_followed))
            return
        run = job.on_spark(source, is_long=every is None and is_long(source))
        if every is None:
            _tell(job, _with_spark(run, table))
        else:
            _follow_with_spark(run, table, every)


def _with_spark(run: Running, table: Path) -> list[Compacted]:
    from amqpgate.pipeline.compact import compact

    run.step("compacting")
    return compact(run.spark, run.folder, table)


def _follow_with_spark(run: Running, table: Path, every: float) -> None:
    from amqpgate.pipeline.compact import add
    from amqpgate.pipeline.compacted import locked
    from amqpgate.pipeline.folders import refuse_overlap
    from amqpgate.records import TABLES

    def add_to(sort: Sort, batch: DataFrame, _number: int) -> None:
        add(batch, table, sort)

    streams: dict[str, tuple[DataFrame, Batch]] = {
        sort: (run.stream_parts(sort), partial(add_to, sort)) for sort in TABLES
    }
    refuse_overlap(run.folder, table)
    with locked(table):
        run.follow(streams, table, every)


def _into_lake(address: TableAddress, keep: timedelta, every: float | None) -> None:
    with needed():
        from amqpgate.pipeline.lake.compacting import compact_into, expire
        from amqpgate.pipeline.lake.opening import open_lake
    # As an address is said: to lineage it is where the tables are.
    with starting(output=str(address)) as job:
        if job.options.is_sparks or job.options.engine == "spark":
            what = "--engine spark, --master and --conf"
            raise Failure(f"amqpgate: {address} is written without Spark: leave out {what}", WRONG)
        lake = open_lake(address)
        expired = -_EXPIRY

        def forget() -> None:
            nonlocal expired
            if monotonic() - expired >= _EXPIRY:
                if gone := expire(lake, datetime.now(UTC) - keep):
                    echo(f"{gone:,} files of old versions removed")
                expired = monotonic()

        _here(job, job.source(), every, partial(compact_into, lake), forget)


def _here(
    job: Starting,
    source: str | RecordSource,
    every: float | None,
    compact: Callable[[str | RecordSource, Callable[[str], None]], list[Compacted]],
    after: Callable[[], None] = lambda: None,
) -> None:
    """In this process, once or until a signal."""
    from amqpgate.pipeline.errors import PassingError

    job.facts.runs_on("local")
    if every is None:
        _tell(job, compact(source, job.tell))
        after()
        return
    with until_signal() as signalled:

        def tell(text: str) -> None:
            # What is half done is done again the next time.
            if signalled.is_set():
                raise InterruptedError
            job.tell(text)

        named: set[Skipped] = set()
        passing = ""
        while not signalled.is_set():
            try:
                with ExitStack() as stack:
                    done = compact(job.source(stack), tell)
                passing = ""
            except PassingError as error:
                if str(error) != passing:
                    echo(f"amqpgate: {error}: looking again", err=True)
                passing, done = str(error), []
            new = [
                attrs.evolve(one, skipped=tuple(each for each in one.skipped if each not in named))
                for one in done
            ]
            named.update(each for one in new for each in one.skipped)
            _tell(job, [one for one in new if one.records or one.skipped])
            after()
            job.tell(f"following {job.options.folder}; Ctrl-C ends it")
            signalled.wait(every)


def _tell(job: Starting, done: Iterable[Compacted]) -> None:
    for one in done:
        job.facts.has_read(one)
        name_skipped(one.skipped)
        echo(
            f"{one.sort}: {one.files:,} new files read, {one.records:,} records added, "
            f"{one.changed:,} files changed"
        )
