"""Metrics of the audit log, which counts itself: it is read at the scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from amqpgate.records import TABLES


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
