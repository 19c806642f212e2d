"""How many spans there were, and what became of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from amqpgate.telemetry.families import CollectorRegistry
from amqpgate.telemetry.instruments import CounterMetric, GaugeMetric

#: Why a span was not sent. ``open``: too many are under way, and it was not begun. ``queue``: too many wait.
#: ``refused``: the collector was not there, or did not take it. ``stopped``: the gateway ended first.
Reason: TypeAlias = Literal["open", "queue", "refused", "stopped"]
_REASONS: tuple[Reason, ...] = ("open", "queue", "refused", "stopped")


class TraceCounters:
    """Registered beside the gateway's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sent = CounterMetric(
            "amqpgate_trace_spans", "Spans that the collector has taken.", registry=registry
        )
        dropped = CounterMetric(
            "amqpgate_trace_spans_dropped",
            "Spans that were not sent, by reason.",
            ["reason"],
            registry=registry,
        )
        self._dropped = {reason: dropped.labels(reason) for reason in _REASONS}
        self._not_injected = CounterMetric(
            "amqpgate_trace_contexts_not_injected",
            "Sampled messages that got no trace context: their header would not have fitted into a frame.",
            registry=registry,
        )
        self.open = GaugeMetric("amqpgate_trace_spans_open", "Spans that are under way.", registry=registry)

    def sent(self, spans: int) -> None:
        """The collector has taken so many."""
        self._sent.inc(spans)

    def dropped(self, reason: Reason, spans: int = 1) -> None:
        """So many will not arrive, or it is not known whether they did."""
        self._dropped[reason].inc(spans)

    def not_injected(self) -> None:
        """A message went on without a trace context."""
        self._not_injected.inc()
