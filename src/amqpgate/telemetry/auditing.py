"""Metrics of the audit log, which counts itself: it is read at the scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from amqpgate.records import TABLES

if TYPE_CHECKING:
    from amqpgate.telemetry.audit.outlets.counts import OutletCounts


class AuditCounts(Protocol):
    """What the log has counted. Of two numbers, the first is of events and the second of usage."""

    @property
    def queued(self) -> tuple[int, int]:
        """Records that wait."""

    @property
    def queued_bytes(self) -> int:
        """Bytes of these."""

    @property
    def written(self) -> tuple[int, int]:
        """Records."""

    @property
    def dropped(self) -> tuple[int, int]:
        """Records that could not be written."""

    @property
    def failed_writes(self) -> int:
        """Times that writing failed, and is tried again."""

    @property
    def outlets(self) -> Mapping[str, OutletCounts]:
        """Of who gets records beside, by name."""


_SORTS: Final = tuple(TABLES)


class AuditMetrics(Collector):
    """Registered beside the gateway's other metrics. Without an audit log all are 0."""

    def __init__(self, registry: CollectorRegistry, read: Callable[[], AuditCounts] | None) -> None:
        """``read`` gives the log's counts."""
        self._read = read
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        now = self._read() if self._read is not None else None
        yield GaugeMetricFamily(
            "amqpgate_audit_queue", "Audit records that wait to be written.", sum(now.queued) if now else 0
        )
        yield GaugeMetricFamily(
            "amqpgate_audit_queue_bytes",
            "Bytes of audit records that wait to be written.",
            now.queued_bytes if now else 0,
        )
        written = CounterMetricFamily(
            "amqpgate_audit_records", "Audit records that were written, by sort.", labels=["sort"]
        )
        dropped = CounterMetricFamily(
            "amqpgate_audit_dropped", "Audit records that could not be written, by sort.", labels=["sort"]
        )
        for index, sort in enumerate(_SORTS):
            written.add_metric([sort], now.written[index] if now else 0)
            dropped.add_metric([sort], now.dropped[index] if now else 0)
        yield from (written, dropped)
        yield CounterMetricFamily(
            "amqpgate_audit_write_failures",
            "Times that writing audit records failed; it is tried again.",
            now.failed_writes if now else 0,
        )
        yield from _of_outlets({} if now is None else now.outlets)


def _of_outlets(outlets: Mapping[str, OutletCounts]) -> Iterator[Metric]:
    records = CounterMetricFamily(
        "amqpgate_audit_sink_records",
        "Audit records for who gets them beside files and lines, by sink and what became of them.",
        labels=["sink", "outcome"],
    )
    retries = CounterMetricFamily(
        "amqpgate_audit_sink_retries",
        "Times that audit records had to be sent again, by sink.",
        labels=["sink"],
    )
    queue = GaugeMetricFamily(
        "amqpgate_audit_sink_queue", "Audit records that wait to be sent, by sink.", labels=["sink"]
    )
    queue_bytes = GaugeMetricFamily(
        "amqpgate_audit_sink_queue_bytes",
        "Bytes of audit records that wait to be sent, by sink.",
        labels=["sink"],
    )
    for name, counts in outlets.items():
        for outcome, count in counts.outcomes.items():
            records.add_metric([name, outcome], count)
        retries.add_metric([name], counts.retries)
        queue.add_metric([name], counts.queued)
        queue_bytes.add_metric([name], counts.queued_bytes)
    yield from (records, retries, queue, queue_bytes)
