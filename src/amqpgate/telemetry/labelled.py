"""What sessions have counted, by the labels that the settings ask for: families of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from amqpgate.telemetry.live import Live
from amqpgate.telemetry.readings import Totals


class LabelledMetrics(Live):
    """``by`` names the labels, in the order of their values."""

    def __init__(self, read: Callable[[], Totals | None], by: Sequence[str]) -> None:
        super().__init__(read)
        self._by = by

    def families(self, now: Totals) -> Iterator[Metric]:
        """As in `Live`."""
        passages = [*self._by, "direction", "verdict"]
        sessions = GaugeMetricFamily(
            "amqpgate_labelled_sessions",
            "Established sessions, by metrics.by.",
            labels=self._by,
        )
        messages = CounterMetricFamily(
            "amqpgate_labelled_messages",
            "As amqpgate_messages_total, by metrics.by and not by operation.",
            labels=passages,
        )
        byte_count = CounterMetricFamily(
            "amqpgate_labelled_message_bytes",
            "As amqpgate_message_bytes_total, by metrics.by and not by operation.",
            labels=passages,
        )
        denials = CounterMetricFamily(
            "amqpgate_labelled_denials",
            "Operations of established sessions that an access policy refused, by metrics.by.",
            labels=self._by,
        )
        waits = CounterMetricFamily(
            "amqpgate_labelled_throttle_seconds",
            "As amqpgate_throttle_seconds_total, by metrics.by.",
            labels=self._by,
        )
        for labels, use in now.labelled.items():
            sessions.add_metric(labels, use.sessions)
            for direction, verdict, traffic in (
                ("publish", "allow", use.published),
                ("publish", "deny", use.refused),
                ("deliver", "allow", use.sent),
            ):
                messages.add_metric([*labels, direction, verdict], traffic.messages)
                byte_count.add_metric([*labels, direction, verdict], traffic.byte_count)
            denials.add_metric(labels, use.denials)
            waits.add_metric(labels, use.waited)
        yield from (sessions, messages, byte_count, denials, waits)
