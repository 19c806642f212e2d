"""What the verbs of ``amqpgate audit`` are told: their options, which are the same for all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, ParamSpec

import click

if TYPE_CHECKING:
    from amqpgate.pipeline.folders import Span


P = ParamSpec("P")


class Options(NamedTuple):
    """What a job is told."""

    folder: str
    master: str | None
    settings: dict[str, str]
    engine: Literal["auto", "local", "spark"] = "auto"
    since: datetime | None = None
    until: datetime | None = None
    vhost: str | None = None
    output: str | None = None
    format: Literal["table", "csv", "json", "parquet"] = "table"
    to: str | None = None
    #: A file of metrics of the run.
    metrics: Path | None = None
    #: Whether events of OpenLineage are sent.
    lineage: bool = False

    @property
    def is_sparks(self) -> bool:
        """Whether some of them are only Spark's."""
        return self.master is not None or bool(self.settings)

    @property
    def span(self) -> Span:
        """Which records are wanted."""
        from amqpgate.pipeline.folders import Span

        return Span(since=self.since, until=self.until, vhost=self.vhost)


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Verbs have these options, and not as arguments."""
    ctx.meta[f"{__name__}.{param.name}"] = value


def _keep_time(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    moment = None
    if value is not None:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            hint = f"{value!r} is not like 2026-11-22 or 2026-11-22T13:30"
            raise click.BadParameter(hint, ctx, param) from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    _keep(ctx, param, moment)


def _keep_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    if wrong := [value for value in values if "=" not in value]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE", ctx, param)
    _keep(ctx, param, dict(value.split("=", 1) for value in values))


_option = partial(click.option, expose_value=False, callback=_keep)
_time = partial(click.option, expose_value=False, callback=_keep_time, metavar="TIME")
_SPARK = (
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
    _option(
        "--metrics",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write metrics of the run there, for Prometheus.",
    ),
    _option(
        "--lineage",
        is_flag=True,
        help="Send events of OpenLineage, as OPENLINEAGE_URL or openlineage.yml say.",
    ),
)
#: Each verb adds its ``help``.
engine_option = partial(
    _option, "--engine", type=click.Choice(["auto", "local", "spark"]), default="auto", show_default=True
)
_ENGINE = engine_option(
    help="local is DuckDB in this process, for what fits on one machine; auto goes by size."
)
_RECORDS = (
    _time("--since", help="Records from then on (UTC)."),
    _time("--until", help="Records before then (UTC)."),
    _option("--vhost", metavar="NAME", help="Records of one virtual host."),
    _option("--output", "-o", metavar="PATH", help="Write there; - is standard output, the default."),
)
_FORMAT = _option(
    "--format",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="json is one object per line; parquet needs --output.",
)
_TO = _option(
    "--to",
    metavar="TABLES",
    help="Put the answer into a table there: delta:FOLDER, delta:s3://BUCKET/PREFIX, iceberg:FOLDER or "
    "iceberg://CATALOG/NAMESPACE. What it had before is replaced.",
)


def spark_options(verb: Callable[P, None]) -> Callable[P, None]:
    """Give a verb the folder, and what concerns Spark. ``running`` knows what was said."""
    for option in reversed(_SPARK):
        verb = option(verb)
    return verb


def records_options(verb: Callable[P, None]) -> Callable[P, None]:
    """The same, and which records, and where the answer goes."""
    for option in reversed(_RECORDS):
        verb = option(verb)
    return spark_options(_ENGINE(verb))


def job(verb: Callable[P, None]) -> Callable[P, None]:
    """The same, and in which form rows are written."""
    return records_options(_FORMAT(_TO(verb)))


#: Of verbs that look for anomalies. Each adds its ``help``.
last_option = partial(
    click.option,
    "--last",
    metavar="HOURS",
    type=click.IntRange(1, 24 * 366),
    default=24,
    show_default=True,
)
follow_option = click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
#: Each verb adds its default.
every_option = partial(
    click.option,
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 86_400),
    show_default=True,
    help="With --follow: how often to look.",
)


def chosen_options() -> Options:
    """What was said to the verb that runs."""
    meta = click.get_current_context().meta
    said = {name: meta[key] for name in Options._fields if (key := f"{__name__}.{name}") in meta}
    if said.get("output") == "-":
        said["output"] = None
    return Options(**said)
