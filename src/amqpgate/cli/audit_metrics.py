"""Metrics of runs of ``amqpgate audit``, in a file for node_exporter's textfile collector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from amqpgate.cli.audit_told import RunFacts

_LAST_SUCCESS: Final = "amqpgate_audit_job_last_success_timestamp_seconds"


class MetricsFile:
    """A file that says how the last run went, and when one went well. It is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def starts(self, facts: RunFacts) -> None:
        """Nothing is written: what is there holds until the run has ended."""

    def ends(self, facts: RunFacts) -> None:
        """Write it."""
        registry = CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"amqpgate_audit_job_{name}", text, ["verb", *labels], registry=registry)

        assert facts.ended is not None
        is_well = facts.error is None
        last = facts.ended.timestamp() if is_well else self._last_success(facts.verb)
        if last is not None:
            text = "When a run has last ended well."
            gauge("last_success_timestamp_seconds", text).labels(facts.verb).set(last)
        ended = gauge("last_run_timestamp_seconds", "When the last run has ended.")
        ended.labels(facts.verb).set(facts.ended.timestamp())
        gauge("success", "Whether the last run has ended well.").labels(facts.verb).set(is_well)
        gauge("duration_seconds", "How long the last run took.").labels(facts.verb).set(facts.duration)
        for name, text, counts in (
            ("read_files", "Files that the last run has read.", facts.files),
            ("read_records", "Records in the files that the last run has read.", facts.records),
            ("skipped_files", "Files of which the last run left out all or a part.", facts.skipped),
        ):
            counted = gauge(name, text, "table")
            for sort, count in counts.items():
                counted.labels(facts.verb, sort).set(count)
        write_to_textfile(str(self._path), registry)

    def _last_success(self, verb: str) -> float | None:
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return None
        return next(
            (
                sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == _LAST_SUCCESS and sample.labels.get("verb") == verb
            ),
            None,
        )
