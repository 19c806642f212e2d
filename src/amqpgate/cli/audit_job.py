"""What the verbs of ``amqpgate audit`` share: options, Spark, and progress on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, ParamSpec

import attrs
import click

from amqpgate.cli.failures import Failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.status import Status

    from amqpgate.pipeline.reading import Span, Table
    from amqpgate.records import Sort

P = ParamSpec("P")

#: So many of the files that cannot be read are named.
MOST_NAMED = 20


@attrs.frozen(kw_only=True)
class Options:
    """What every job is told."""

    folder: str
    master: str | None
    settings: dict[str, str]
    since: datetime | None
    until: datetime | None
    vhost: str | None
    output: str | None
    format: Literal["table", "csv", "json"]

    @property
    def span(self) -> Span:
        """Which records are wanted."""
        from amqpgate.pipeline.reading import Span

        return Span(since=self.since, until=self.until, vhost=self.vhost)


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """All verbs have these options; none has them as arguments."""
    ctx.meta[f"{__name__}.{param.name}"] = value


def _keep_time(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return _keep(ctx, param, None)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not like 2026-11-22 or 2026-11-22T13:30", ctx, param
        ) from None
    return _keep(ctx, param, moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _keep_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    pairs = [value.partition("=") for value in values]
    if wrong := [value for value, (_, equals, _) in zip(values, pairs, strict=True) if not equals]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", ctx, param)
    _keep(ctx, param, {name: value for name, _, value in pairs})


_option = partial(click.option, expose_value=False, callback=_keep)
_OPTIONS = (
    click.argument("folder", metavar="FOLDER", expose_value=False, callback=_keep),
    _option("--master", metavar="URL", help="Spark to run on.  [default: in this process]"),
    click.option(
        "--conf",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        expose_value=False,
        callback=_keep_settings,
        help="A setting of Spark's.",
    ),
    *(
        click.option(
            name, metavar="TIME", expose_value=False, callback=_keep_time, help=f"Records {text} (UTC)."
        )
        for name, text in (("--since", "from then on"), ("--until", "before then"))
    ),
    _option("--vhost", metavar="NAME", help="Records of one virtual host."),
    _option("--output", "-o", metavar="FILE", help="Write there.  [default: standard output]"),
    _option(
        "--format",
        type=click.Choice(["table", "csv", "json"]),
        default="table",
        show_default=True,
        help="json is one object per line.",
    ),
)


def job(verb: Callable[P, None]) -> Callable[P, None]:
    """Give a verb the options of all; ``running`` knows what was said."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def _options() -> Options:
    meta = click.get_current_context().meta
    return Options(**{field.name: meta[f"{__name__}.{field.name}"] for field in attrs.fields(Options)})


class Running:
    """A job that has Spark. Says on a terminal which step it is at."""

    def __init__(self, options: Options, spark: SparkSession, status: Status) -> None:
        self.options = options
        self.spark = spark
        self._status = status

    def step(self, text: str) -> None:
        """What happens from now on."""
        self._status.update(text)

    def read(self, sort: Sort) -> Table:
        """The records that the options choose. What is left out is named on standard error."""
        from amqpgate.pipeline.reading import read

        self.step(f"looking into {self.options.folder}")
        table = read(self.spark, self.options.folder, sort, self.options.span)
        for skipped in table.skipped[:MOST_NAMED]:
            click.echo(f"skipped: {skipped.path}: {skipped.why}", err=True)
        if len(table.skipped) > MOST_NAMED:
            click.echo(f"skipped: {len(table.skipped) - MOST_NAMED} more", err=True)
        self.step(f"{table.records:,} records of {table.files:,} files")
        return table

    def write(self, frame: DataFrame) -> None:
        """The answer, where and as the options say."""
        from amqpgate.cli.audit_output import write

        with click.open_file(self.options.output or "-", "w", encoding="utf-8", atomic=True) as out:
            write(frame, self.options.format, out)


@contextmanager
def running() -> Iterator[Running]:
    """Start Spark for a job, and end it. What a person can act on becomes a ``Failure``."""
    from rich.console import Console

    try:
        from amqpgate.pipeline.errors import PipelineError
        from amqpgate.pipeline.spark import explained, start
    except ImportError as error:
        raise Failure(f"amqpgate: {error.name} is missing: pip install 'amqpgate[pipeline]'") from error
    options = _options()
    with Console(stderr=True).status("starting Spark") as status:
        try:
            spark = start(options.master, options.settings)
            try:
                with explained("Spark"):
                    yield Running(options, spark, status)
            finally:
                spark.stop()
        except (PipelineError, OSError) as error:
            raise Failure(f"amqpgate: {error}") from error
