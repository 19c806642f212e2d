"""Runs of ``amqpgate audit`` as events of OpenLineage, where its own settings say."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    set_producer,
)
from openlineage.client.facet_v2 import (
    InputDatasetFacet,
    RunFacet,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    processing_engine_run,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from amqpgate import __version__
from amqpgate.records import TABLES, Sort, arrow_schema

if TYPE_CHECKING:
    from amqpgate.cli.audit_told import RunFacts

PRODUCER: Final = f"https://github.com/amqpgate/amqpgate/tree/v{__version__}"
_NAMESPACE: Final = "amqpgate"
_ENGINES: Final = {"local": "duckdb", "spark": "pyspark"}


class Lineage:
    """One run: an event when it starts, and one when it has ended."""

    def __init__(self) -> None:
        set_producer(PRODUCER)
        self._client = OpenLineageClient()
        self._run = str(generate_new_uuid())

    def starts(self, facts: RunFacts) -> None:
        """START, with what is to be read and written."""
        self._client.emit(self._event(RunState.START, facts, facts.started))

    def ends(self, facts: RunFacts) -> None:
        """COMPLETE, or FAIL with the reason."""
        assert facts.ended is not None
        state = RunState.COMPLETE if facts.error is None else RunState.FAIL
        self._client.emit(self._event(state, facts, facts.ended))
        # Some transports send by themselves.
        self._client.close(timeout=10)

    def _event(self, state: RunState, facts: RunFacts, time: datetime) -> RunEvent:
        sorts: tuple[Sort, ...] = tuple(facts.records) or tuple(TABLES)
        return RunEvent(
            eventType=state,
            eventTime=time.isoformat(),
            run=Run(self._run, self._run_facets(facts)),
            job=Job(
                os.environ.get("OPENLINEAGE_NAMESPACE", _NAMESPACE),
                f"audit.{facts.verb}",
                {"jobType": job_type_job.JobTypeJobFacet("BATCH", "AMQPGATE", "COMMAND")},
            ),
            inputs=[_input(facts, sort) for sort in sorts],
            outputs=_outputs(facts),
        )

    def _run_facets(self, facts: RunFacts) -> dict[str, RunFacet]:
        found: dict[str, RunFacet] = {}
        if facts.engine is not None:
            from importlib.metadata import version

            name = _ENGINES[facts.engine]
            found["processing_engine"] = processing_engine_run.ProcessingEngineRunFacet(
                version(name), name, __version__
            )
        if facts.error is not None:
            found["errorMessage"] = error_message_run.ErrorMessageRunFacet(facts.error, "Python")
        return found


def _input(facts: RunFacts, sort: Sort) -> InputDataset:
    space, name = named(facts.folder)
    counted: dict[str, InputDatasetFacet] = {}
    if sort in facts.records:
        counted["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=facts.records[sort], fileCount=facts.files[sort]
        )
    return InputDataset(space, f"{name}/{sort}", facets={"schema": _schema(sort)}, inputFacets=counted)


def _outputs(facts: RunFacts) -> list[OutputDataset]:
    if facts.output is None:
        return []
    space, name = named(facts.output)
    if facts.verb == "compact":
        return [OutputDataset(space, f"{name}/{sort}", facets={"schema": _schema(sort)}) for sort in TABLES]
    return [OutputDataset(space, name if facts.table is None else f"{name}/{facts.table}")]


def _schema(sort: Sort) -> schema_dataset.SchemaDatasetFacet:
    return schema_dataset.SchemaDatasetFacet(
        [
            schema_dataset.SchemaDatasetFacetFields(name=field.name, type=str(field.type))
            for field in arrow_schema(TABLES[sort])
        ]
    )


def named(place: str) -> tuple[str, str]:
    """Namespace and name of a dataset, as OpenLineage names them: ``file`` and a path, ``s3://BUCKET`` and a
    prefix."""
    for kind in ("delta:", "iceberg:"):
        if place.startswith(kind) and not place.startswith(f"{kind}//"):
            place = place.removeprefix(kind)
    parts = urlsplit(place)
    if parts.scheme in ("", "file"):
        return "file", str(Path(parts.path if parts.scheme else place).absolute())
    # Without what an address may say beside it.
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme.replace('s3a', 's3')}://{host}", parts.path.strip("/") or "/"
