"""Metrics of the audit log."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

#: As ``records.Sort``.
SORTS = ("events", "usage")


class AuditMetrics:
    """Registered beside the gateway's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queue = Gauge(
            "amqpgate_audit_queue", "Audit records that wait to be written.", registry=registry
        )
        dropped = Counter(
            "amqpgate_audit_dropped_total",
            "Audit records that could not be written, by sort.",
            ["sort"],
            registry=registry,
        )
        self._dropped = {sort: dropped.labels(sort) for sort in SORTS}

    def queued(self, records: int) -> None:
        """So many wait."""
        self._queue.set(records)

    def dropped(self, sort: str, records: int = 1) -> None:
        """So many more were not written; ``sort`` is one of ``SORTS``."""
        self._dropped[sort].inc(records)
