"""What the verbs of ``amqpgate audit`` share: an engine, signals, and progress on a terminal."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, tzinfo
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeAlias, cast

import attrs

from amqpgate.cli.audit_answers import answer_name, check_answer, put_frame, put_rows, text_form
from amqpgate.cli.audit_options import Options, chosen_options
from amqpgate.cli.audit_source import needed, source_of
from amqpgate.cli.audit_told import RunFacts, told
from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from amqpgate.pipeline.contract import Skipped
    from amqpgate.pipeline.folders import RecordSource, RecordTable, Span
    from amqpgate.pipeline.following import Skips
    from amqpgate.pipeline.local_frames import SqlSession
    from amqpgate.records import Sort

    #: What is done with the rows of a batch, and its number.
    Batch: TypeAlias = Callable[[DataFrame, int], None]

_ZONE = "spark.sql.session.timeZone"
#: Seconds between looks whether a query has failed.
_LOOK = 1.0
#: So many of the files that cannot be read are named.
MOST_NAMED = 20


def name_skipped(skipped: Sequence[Skipped]) -> None:
    """Say on standard error what is left out."""
    for each in skipped[:MOST_NAMED]:
        echo(f"skipped: {each.path}: {each.why}", err=True)
    if len(skipped) > MOST_NAMED:
        echo(f"skipped: {len(skipped) - MOST_NAMED} more", err=True)


class Running:
    """A job that has an engine. Says on a terminal which step it is at."""

    def __init__(
        self,
        options: Options,
        session: SparkSession | SqlSession,
        source: str | RecordSource,
        tell: Callable[[str], None],
        facts: RunFacts,
    ) -> None:
        self.options = options
        self._facts = facts
        self._session = session
        #: Where the records are.
        self.folder = source
        #: Parquet that was read.
        self.files: list[str] = []
        self._tell = tell

    @property
    def spark(self) -> SparkSession:
        """The session of a job that only Spark does."""
        return cast("SparkSession", self._session)

    def step(self, text: str) -> None:
        """What happens from now on."""
        self._tell(text)

    def read(self, sort: Sort, leave_out: Container[str] = frozenset()) -> RecordTable:
        """The records that the options choose, but of Parquet files of these names. What cannot be read is
        named on standard error."""
        return self._read(sort, self.options.span, leave_out)

    def read_always(self, sort: Sort) -> RecordTable:
        """The same, whenever they were."""
        return self._read(sort, attrs.evolve(self.options.span, since=None, until=None))

    def frame_of(self, table: pyarrow.Table) -> DataFrame:
        """Rows that are here, for the engine."""
        from amqpgate.pipeline import frames

        if frames.current() == "local":
            from amqpgate.pipeline.local import frame_of

            return frame_of(cast("SqlSession", self._session), table)
        return self.spark.createDataFrame(table)

    def _read(self, sort: Sort, span: Span, leave_out: Container[str] = frozenset()) -> RecordTable:
        from amqpgate.pipeline import frames

        self.step(f"looking into {self.options.folder}")
        if frames.current() == "local":
            from amqpgate.pipeline import local_reading

            session = cast("SqlSession", self._session)
            table = local_reading.read(session, self.folder, sort, span, leave_out=leave_out)
        else:
            from amqpgate.pipeline import reading

            table = reading.read(self.spark, self.folder, sort, span, leave_out=leave_out)
        name_skipped(table.skipped)
        self._facts.has_read(table)
        self.files += table.paths
        self.step(f"{table.records:,} records of {table.files:,} files")
        return table

    def write(self, frame: DataFrame, zone: tzinfo = UTC) -> None:
        """The answer, where and as the options say."""
        put_frame(self.options, frame, zone, self._facts.table)

    def write_rows(self, rows: Iterable[Sequence[object]], names: Sequence[str]) -> None:
        """The same for rows that are here already."""
        put_rows(self.options, rows, names)

    @cached_property
    def _skips(self) -> Skips:
        from amqpgate.pipeline.following import skips

        return skips(self.spark)

    def _followed(self) -> str:
        from amqpgate.pipeline.masters import is_connect

        if is_connect(self.options.master):
            raise Failure("amqpgate: --follow needs a Spark that is not behind Spark Connect", WRONG)
        if not isinstance(self.folder, str):
            raise Failure(
                f"amqpgate: {self.folder} is copied, and so cannot be followed: run the verb at intervals "
                "without --follow, or on a cluster with s3a://",
                WRONG,
            )
        return self.folder

    def stream(self, sort: Sort) -> DataFrame:
        """The records that the options choose, as they come."""
        from amqpgate.pipeline.folders import within
        from amqpgate.pipeline.following import stream

        return within(stream(self.spark, self._followed(), sort, self._skips), sort, self.options.span)

    def stream_parts(self, sort: Sort) -> DataFrame:
        """All records as parts, as they come."""
        from amqpgate.pipeline.following import stream_parts

        return stream_parts(self.spark, self._followed(), sort, self._skips)

    def output_folder(self) -> Path:
        """Where the answers of batches go."""
        if self.options.output is None or self.options.format == "table":
            raise Failure("amqpgate: --follow needs --output FOLDER and --format csv or json", WRONG)
        folder = Path(self.options.output)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_batch(self, name: str, batch: DataFrame, number: int) -> None:
        """The answer of a batch, in a file of its own. If it comes again, the same is in the same file."""
        from amqpgate.cli.audit_output import replaced, write

        if not batch.isEmpty():
            path = self.output_folder() / f"{name}-{number:06}.{self.options.format}"
            with replaced(str(path)) as out:
                write(batch, text_form(self.options), out)

    def follow(self, streams: Mapping[str, tuple[DataFrame, Batch]], folder: Path, every: float) -> None:
        """Hand over what comes, by batches, until a signal; the folder remembers what was done."""
        from amqpgate.pipeline.following import follow

        checkpoints = folder.absolute() / "_checkpoint"
        named = folder / "_skipped.txt"

        def named_after(each: Batch, batch: DataFrame, number: int) -> None:
            each(batch, number)
            # Before the batch is done with: its files do not come again.
            known = set(named.read_text().splitlines()) if named.exists() else set()
            skipped = sorted(set(self._skips.value), key=str)
            new = [one for one in skipped if f"{one.path}: {one.why}" not in known]
            name_skipped(new)
            with named.open("a") as out:
                out.writelines(f"{one.path}: {one.why}\n" for one in new)

        with until_signal() as signalled:
            for name, (frame, each) in streams.items():
                follow(frame, partial(named_after, each), f"file://{checkpoints / name}", every)
            self.step(f"following {self.options.folder}; Ctrl-C ends it")
            try:
                # Waiting in Spark would be cut short by an exception of a signal's.
                while not signalled.wait(_LOOK) and not self.spark.streams.awaitAnyTermination(0):
                    pass
            finally:
                for query in self.spark.streams.active:
                    query.stop()


@contextmanager
def until_signal() -> Iterator[Event]:
    """What SIGTERM and Ctrl-C set.

    Whoever ends Spark's processes as well ends it in the middle of what it does: what it says of that is not
    told. The next run does it again.
    """
    signalled = Event()
    handlers = {
        number: signal.signal(number, lambda *_: signalled.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield signalled
    except (Exception, KeyboardInterrupt):
        if not signalled.is_set():
            raise
        logging.disable()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@attrs.frozen
class Starting:
    """A job that has no engine yet."""

    options: Options
    facts: RunFacts
    #: Tells a terminal which step it is at.
    tell: Callable[[str], None]
    _stack: ExitStack

    def source(self, stack: ExitStack | None = None) -> str | RecordSource:
        """The records that the options name, as they are now. Copies are gone with the stack, or the job."""
        return source_of(self.options.folder, self.options.master, stack or self._stack, self.tell)

    def on_duckdb(self, source: str | RecordSource) -> Running:
        """The job, with DuckDB in this process."""
        with needed():
            from amqpgate.pipeline import frames
            from amqpgate.pipeline.lean_arrow import load_arrow

            load_arrow()
            from amqpgate.pipeline import local
        self.facts.runs_on("local")
        self._stack.enter_context(frames.engine("local"))
        session = local.start()
        self._stack.callback(session.stop)
        run = Running(self.options, session, source, self.tell, self.facts)
        self._stack.enter_context(local.explained(run.files))
        return run

    def on_spark(self, source: str | RecordSource, *, is_long: bool) -> Running:
        """The job, with the Spark that the options name."""
        if self.options.settings.get(_ZONE, "UTC") != "UTC":
            raise Failure(
                f"amqpgate: --conf {_ZONE}: answers are UTC; usage by local days has --timezone", WRONG
            )
        self.facts.runs_on("spark")
        self.tell("starting Spark")
        with needed():
            from amqpgate.pipeline import spark
        # It ends with this process.
        session = spark.start(self.options.master, self.options.settings, is_long=is_long)
        self._stack.enter_context(spark.explained("Spark"))
        return Running(self.options, session, source, self.tell, self.facts)


@contextmanager
def starting(*, output: str | None = None, answer: str | None = None) -> Iterator[Starting]:
    """Begin a job. What a person can act on becomes a ``Failure``.

    ``output``: what it writes, where no option says so. ``answer``: the table that its answer is with --to.
    """
    options = chosen_options()
    with (
        told(options, output, answer) as facts,
        failing(),
        _progress() as tell,
        ExitStack() as stack,
    ):
        yield Starting(options, facts, tell, stack)


@contextmanager
def running(follow: bool = False, *, answer: str | None = None) -> Iterator[Running]:
    """Start an engine for a job, or Spark to follow. ``answer``: what its table is called with --to, if not
    as the verb."""
    with needed():
        from amqpgate.pipeline.engines import choose, is_long
    check_answer(chosen_options(), follow=follow)
    with starting(answer=answer_name(answer)) as job:
        source, options = job.source(), job.options
        is_sparks = follow or options.is_sparks
        if choose(source, options.engine, span=lambda: options.span, is_sparks=is_sparks) == "local":
            yield job.on_duckdb(source)
        else:
            # What is followed is never read as a whole.
            yield job.on_spark(source, is_long=not follow and is_long(source, lambda: options.span))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What tells a terminal which step a job is at, and others nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("looking") as status:
        yield lambda text: status.update(escape(text))


@contextmanager
def failing() -> Iterator[None]:
    """What a person can act on becomes a ``Failure``."""
    from amqpgate.pipeline.errors import PipelineError

    try:
        yield
    except (PipelineError, OSError) as error:
        raise Failure(f"amqpgate: {error}") from error
