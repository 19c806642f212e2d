"""Who is told of a run of ``amqpgate audit``: a lineage of data, and a file of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import attrs
import click

from amqpgate.cli.audit_source import needed
from amqpgate.cli.failures import Failure
from amqpgate.cli.telling import echo

if TYPE_CHECKING:
    from amqpgate.cli.audit_options import Options
    from amqpgate.pipeline.folders import Compacted, RecordTable
    from amqpgate.records import Sort


@attrs.define
class RunFacts:
    """What a run has done so far."""

    verb: str
    folder: str
    #: Where its answer goes; None: to standard output.
    output: str | None = None
    #: The table there that the answer is; None: it is a file, or records that are compacted.
    table: str | None = None
    engine: str | None = None
    started: datetime = attrs.field(factory=lambda: datetime.now(UTC))
    ended: datetime | None = None
    error: str | None = None
    #: By sort of records: files and records that were read, and files of which something was left out.
    files: dict[Sort, int] = attrs.field(factory=dict)
    records: dict[Sort, int] = attrs.field(factory=dict)
    skipped: dict[Sort, int] = attrs.field(factory=dict)

    def runs_on(self, engine: str) -> None:
        """The engine was chosen."""
        self.engine = engine

    def has_read(self, table: RecordTable | Compacted) -> None:
        """Records were read."""
        self.files[table.sort] = table.files
        self.records[table.sort] = table.records
        self.skipped[table.sort] = len(table.skipped)

    def has_ended(self, error: str | None) -> None:
        """It is over. ``error``: why, if not well."""
        self.ended = datetime.now(UTC)
        self.error = error

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()


class _Listener(Protocol):
    """Somebody who is told."""

    def starts(self, facts: RunFacts) -> None:
        """The run begins."""

    def ends(self, facts: RunFacts) -> None:
        """It has ended, well or not."""


@contextmanager
def told(options: Options, output: str | None = None, table: str | None = None) -> Iterator[RunFacts]:
    """A run, told to whom the options name. What cannot be told is a warning: the run goes on.

    ``table``: what its answer is called with --to.
    """
    verb = click.get_current_context().info_name or "audit"
    place = output or options.to or options.output
    facts = RunFacts(verb, options.folder, place, table if options.to else None)
    listeners = _listeners(options)
    for one in listeners:
        _tell(one, "starts", facts)
    try:
        yield facts
    except BaseException as error:
        facts.has_ended(error.message if isinstance(error, Failure) else (str(error) or type(error).__name__))
        raise
    else:
        facts.has_ended(None)
    finally:
        for one in listeners:
            _tell(one, "ends", facts)


def _listeners(options: Options) -> list[_Listener]:
    found: list[_Listener] = []
    if options.metrics is not None:
        from amqpgate.cli.audit_metrics import MetricsFile

        found.append(MetricsFile(options.metrics))
    if options.lineage:
        with needed("lineage"):
            from amqpgate.cli.audit_lineage import Lineage
        found.append(Lineage())
    return found


def _tell(one: _Listener, what: str, facts: RunFacts) -> None:
    try:
        getattr(one, what)(facts)
    except Exception as error:
        echo(f"warning: {type(one).__name__}: {' '.join(str(error).split())[:200]}", err=True)
