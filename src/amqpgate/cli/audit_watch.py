"""``--follow`` of verbs that tell alerts: its options, and the course that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec

import click

from amqpgate.cli.audit_job import until_signal
from amqpgate.cli.audit_options import chosen_options, every_option, follow_option
from amqpgate.cli.audit_source import needed
from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from amqpgate.pipeline.watch.course import AlertSink, Watch

P = ParamSpec("P")


class Following(NamedTuple):
    """What was said of alerts."""

    every: float
    late: int
    state: Path | None
    webhook: str | None
    publish: str | None
    exchange: str


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    ctx.meta[f"{__name__}.{param.name}"] = value


_option = partial(click.option, expose_value=False, callback=_keep)
_OPTIONS = (
    follow_option,
    every_option(default=10, expose_value=False, callback=_keep),
    _option(
        "--late",
        metavar="MINUTES",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        help="With --follow: how long records are waited for.",
    ),
    _option(
        "--state",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="With --follow: where it remembers what it has done.",
    ),
    _option("--webhook", metavar="URL", help="With --follow: post alerts there, as CloudEvents."),
    _option(
        "--publish", metavar="URL", help="With --follow: publish alerts to a broker (amqp://user@host/vhost)."
    ),
    _option(
        "--exchange",
        metavar="NAME",
        default="amq.topic",
        show_default=True,
        help="With --publish: the exchange, which has to be there.",
    ),
)


def watch_options(verb: Callable[P, None]) -> Callable[P, None]:
    """Give a verb the options of alerts; it gets ``follow``, and `watching` knows the others."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def watching(make: Callable[[timedelta], Watch]) -> None:
    """Follow the folder with a watch, which is made for how long records are waited for, until a signal."""
    from rich.console import Console

    with needed():
        from amqpgate.pipeline.errors import PipelineError
        from amqpgate.pipeline.folders import Span
        from amqpgate.pipeline.lean_arrow import load_arrow
        from amqpgate.pipeline.places import local_files
        from amqpgate.pipeline.watch.course import AlertCourse, Stopped

    load_arrow()
    options, said = chosen_options(), _said()
    if said.state is None:
        raise Failure("amqpgate: --follow needs --state DIR, where it remembers what it has done", WRONG)
    if options.master is not None or options.settings or options.engine == "spark":
        raise Failure(
            "amqpgate: alerts are made without Spark: leave out --master, --conf and --engine", WRONG
        )
    began = options.since or datetime.now(UTC)
    try:
        if local_files(options.folder) is None:
            raise PipelineError(f"{options.folder} is not of this machine, or mounted")
        with (
            Console(stderr=True).status(f"following {options.folder}; Ctrl-C ends it"),
            until_signal() as signalled,
        ):
            course = AlertCourse(
                folder=options.folder,
                watch=make(timedelta(minutes=said.late)),
                sinks=_sinks(said),
                state=said.state,
                span=Span(since=_since(said.state, began), vhost=options.vhost),
                pause=signalled.wait,
                tell=partial(echo, err=True),
            )
            with course.opened():
                try:
                    while not signalled.is_set():
                        if not course.go_on(datetime.now(UTC)):
                            signalled.wait(said.every)
                except Stopped:
                    return
    except (PipelineError, OSError) as error:
        raise Failure(f"amqpgate: {error}") from error


@contextmanager
def local_frames(usage: pyarrow.Table, events: pyarrow.Table) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Records as frames of DuckDB."""
    from amqpgate.pipeline import frames, local

    session = local.start()
    try:
        with frames.engine("local"):
            yield local.frame_of(session, usage), local.frame_of(session, events)
    finally:
        session.stop()


@contextmanager
def local_usage(since: datetime, until: datetime) -> Iterator[DataFrame]:
    """Usage of the folder as a frame of DuckDB."""
    from amqpgate.pipeline import frames, local, local_reading
    from amqpgate.pipeline.folders import Span

    options = chosen_options()
    session = local.start()
    try:
        with frames.engine("local"):
            span = Span(since=since, until=until, vhost=options.vhost)
            yield local_reading.read(session, options.folder, "usage", span).frame
    finally:
        session.stop()


def _said() -> Following:
    meta = click.get_current_context().meta
    return Following(*(meta[f"{__name__}.{name}"] for name in Following._fields))


def _since(state: Path, began: datetime) -> datetime:
    """When the course began the first time: what was before is nobody's news."""
    kept = state / "began"
    if not kept.exists():
        state.mkdir(parents=True, exist_ok=True)
        kept.write_text(began.isoformat())
    return datetime.fromisoformat(kept.read_text())


def _sinks(said: Following) -> Sequence[AlertSink]:
    from amqpgate.cli.audit_answers import answer_name
    from amqpgate.cli.audit_sinks import FileSink, PrintSink, TableSink, exchange, web_hook
    from amqpgate.pipeline.lake.address import address_of
    from amqpgate.pipeline.lake.opening import open_lake

    options = chosen_options()
    found: list[AlertSink] = []
    if options.to is not None:
        if (address := address_of(options.to)) is None:
            raise Failure(f"amqpgate: --to {options.to} is no table", WRONG)
        found.append(TableSink(open_lake(address), f"{answer_name()}_alerts"))
    if options.output is not None:
        found.append(FileSink(Path(options.output), answer_name()))
    if said.webhook is not None:
        found.append(web_hook(said.webhook))
    if said.publish is not None:
        found.append(exchange(said.publish, said.exchange))
    return found or [PrintSink()]
