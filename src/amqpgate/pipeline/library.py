"""The jobs as functions over any Spark session, also one of Spark Connect: what programs and notebooks call.

Each takes data frames of records and gives a data frame of the columns in `SCHEMAS`; nothing is written, and
nothing of the session is changed. Functions that are made of rows (`recommend`, `topology`, `preflight`)
give values of Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import attrs

from amqpgate.pipeline.contract import Skipped
from amqpgate.pipeline.folders import Span
from amqpgate.pipeline.jobs import anomalies as _anomalies
from amqpgate.pipeline.jobs import costs as _costs
from amqpgate.pipeline.jobs import denials as _denials
from amqpgate.pipeline.jobs import preflight as _preflight
from amqpgate.pipeline.jobs import recommend as _recommend
from amqpgate.pipeline.jobs import replay as _replay
from amqpgate.pipeline.jobs import topology as _topology
from amqpgate.pipeline.jobs import usage as _usage
from amqpgate.pipeline.jobs.graph import Topology
from amqpgate.pipeline.jobs.preflight import SeenRequests
from amqpgate.pipeline.jobs.prices import load
from amqpgate.pipeline.jobs.recommendation import Recommendation
from amqpgate.pipeline.lake.address import address_of
from amqpgate.pipeline.lake.opening import open_lake
from amqpgate.pipeline.lake.source import LakeSource
from amqpgate.policy import Source
from amqpgate.policy.loader import read_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A folder of policies, or its files.
Policies: TypeAlias = str | Path | Sequence[Source]

#: The columns of each answer, in Spark's words.
SCHEMAS: Final[Mapping[str, str]] = {
    "usage": _usage.SCHEMA,
    "costs": _costs.SCHEMA,
    "denials": _denials.SCHEMA,
    "replay": _replay.SCHEMA,
    "granted": _recommend.GRANTED_SCHEMA,
    "anomalies": _anomalies.SCHEMA,
    "traffic": _topology.TRAFFIC_SCHEMA,
    "declarations": _topology.DECLARATIONS_SCHEMA,
}


@attrs.frozen
class Records:
    """Both sorts of audit records, and what of them was left out."""

    usage: DataFrame
    events: DataFrame
    skipped: tuple[Skipped, ...]


def read(
    spark: SparkSession,
    folder: str | Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    vhost: str | None = None,
) -> Records:
    """The records in whatever the session's Spark reads: a folder, a table of ``compact``, ``delta:...`` or
    ``iceberg:...``. Raises ``PipelineError``."""
    from amqpgate.pipeline.reading import read as read_sort

    address = address_of(str(folder))
    source = str(folder) if address is None else LakeSource(open_lake(address))
    span = Span(since=since, until=until, vhost=vhost)
    usage, events = (read_sort(spark, source, sort, span) for sort in ("usage", "events"))
    return Records(usage.frame, events.frame, (*usage.skipped, *events.skipped))


def usage(
    usage: DataFrame, per: Literal["minute", "hour", "day", "month"] = "hour", timezone: str = "UTC"
) -> DataFrame:
    """Messages and bytes by user, virtual host, exchange and time."""
    return _usage.usage_by(usage, per, timezone)


def costs(
    usage: DataFrame,
    events: DataFrame,
    prices: str | Path,
    per: Literal["day", "month"] = "month",
    timezone: str = "UTC",
) -> DataFrame:
    """What messages, bytes and connections cost by the prices in a file, by user, group and virtual host."""
    return _costs.costs(usage, events, load(Path(prices)), per, timezone)


def denials(events: DataFrame, kind: Literal["denied", "shadow"] = "denied") -> DataFrame:
    """What was refused, or would be by policies in mode shadow, the most frequent first."""
    return _denials.denials(events, kind)


def replay(usage: DataFrame, policies: Policies, against: Policies | None = None) -> DataFrame:
    """The distinct requests whose answer these policies would change."""
    other = None if against is None else _sources(against)
    return _replay.changes(_replay.replay(usage, _sources(policies), other))


def granted(usage: DataFrame, policies: Policies) -> DataFrame:
    """Each allow rule by operation, with when it last decided."""
    return _recommend.granted(usage, _sources(policies))


def anomalies(usage: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """What is unusual in whole hours from ``begin`` on, before ``end``, by what was before."""
    return _anomalies.anomalies(usage, begin, end)


def traffic(usage: DataFrame) -> DataFrame:
    """Who sent and got how much, with ids folded."""
    return _topology.traffic(usage)


def declarations(events: DataFrame) -> DataFrame:
    """Exchanges, queues and bindings with what happened to them last."""
    return _topology.declarations(events)


def topology(usage: DataFrame, events: DataFrame) -> Topology:
    """The graph of both."""
    return _topology.topology(usage, events)


def recommend(usage: DataFrame) -> Recommendation:
    """The policies that allow what was done."""
    return _recommend.recommend(usage)


def preflight(usage: DataFrame, events: DataFrame) -> SeenRequests:
    """The requests that a newer RabbitMQ may take otherwise."""
    return _preflight.seen(usage, events)


def register(spark: SparkSession) -> None:
    """Let the session have ``spark.read.format("amqpgate")`` and ``readStream``, and push filters to it.

    A declarative pipeline may not set what Spark needs for filters; it reads streams, which have none.
    """
    from pyspark.errors import PySparkException

    from amqpgate.pipeline.data_source import AuditSource

    with suppress(PySparkException):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(AuditSource)


def _sources(policies: Policies) -> Sequence[Source]:
    if isinstance(policies, str | Path):
        return read_folder(Path(policies))
    return policies
