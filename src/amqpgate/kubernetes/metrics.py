"""What the operator counts, for Prometheus."""

from __future__ import annotations

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


@attrs.define(eq=False)
class OperatorMetrics:
    """In a registry of their own."""

    registry: CollectorRegistry = attrs.field(factory=CollectorRegistry)
    leading: Gauge = attrs.field(init=False)
    resources: Gauge = attrs.field(init=False)
    writes: Counter = attrs.field(init=False)
    failures: Counter = attrs.field(init=False)
    answering: Gauge = attrs.field(init=False)
    events_left_out: Counter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        registry = self.registry
        self.leading = Gauge("amqpgate_operator_leading", "Whether this operator works", registry=registry)
        self.resources = Gauge(
            "amqpgate_operator_resources",
            "Resources that are accepted; refused, with an earlier version in force (kept); refused",
            ["kind", "state"],
            registry=registry,
        )
        self.writes = Counter(
            "amqpgate_operator_writes_total",
            "What was written: policies, status, event",
            ["what"],
            registry=registry,
        )
        self.failures = Counter(
            "amqpgate_operator_failures_total", "What could not be written", ["what"], registry=registry
        )
        self.answering = Gauge(
            "amqpgate_operator_watch_answering",
            "Whether the API server answers for a path as it should; else what is in force of it stays",
            ["path"],
            registry=registry,
        )
        self.events_left_out = Counter(
            "amqpgate_operator_events_left_out_total", "Events that were too many", registry=registry
        )

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)
