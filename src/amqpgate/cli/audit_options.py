"""What the verbs of ``amqpgate audit`` are told."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from amqpgate.pipeline.folders import Span


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
