"""The gateway's metrics. Nothing is counted per message: live sessions are summed at the scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from amqpgate.telemetry.policies import PolicyMetrics

#: ``amqpgate_sessions_total{outcome=...}``; every way in which a connection can end or not begin.
OUTCOMES = (
    "closed",
    "client_gone",
    "client_silent",
    "upstream_gone",
    "upstream_silent",
    "violation",
    "drained",
    "failed",
    "refused",
    "handshake_failed",
    "handshake_timeout",
    "upstream_unavailable",
    "over_limit",
)


@attrs.frozen
class Traffic:
    """What passed in one direction."""

    messages: int = 0
    #: Octets of message bodies.
    octets: int = 0
    frames: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.messages + other.messages, self.octets + other.octets, self.frames + other.frames)


@attrs.frozen
class Totals:
    """A reading of everything that is summed at the scrape."""

    #: From clients to brokers, and back.
    publish: Traffic
    deliver: Traffic
    sessions: int
    channels: int
    upcalls: int
    pauses: int
    throttled: int
    pump_failures: int


class _Live(Collector):
    def __init__(self, read: Callable[[], Totals]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        now = self._read()
        directions = (("publish", now.publish), ("deliver", now.deliver))
        messages = CounterMetricFamily("amqpgate_messages", "Messages relayed.", labels=["direction"])
        octets = CounterMetricFamily(
            "amqpgate_message_bytes", "Octets of message bodies relayed.", labels=["direction"]
        )
        frames = CounterMetricFamily(
            "amqpgate_frames", "Frames that the data path relayed.", labels=["direction"]
        )
        for direction, traffic in directions:
            messages.add_metric([direction], traffic.messages)
            octets.add_metric([direction], traffic.octets)
            frames.add_metric([direction], traffic.frames)
        yield from (messages, octets, frames)
        yield GaugeMetricFamily("amqpgate_sessions", "Established sessions.", now.sessions)
        yield GaugeMetricFamily("amqpgate_channels", "Open channels.", now.channels)
        yield CounterMetricFamily("amqpgate_upcalls", "Frames handed to the control plane.", now.upcalls)
        yield CounterMetricFamily(
            "amqpgate_backpressure_pauses", "Times that reads from a side stopped.", now.pauses
        )
        yield CounterMetricFamily(
            "amqpgate_throttled", "Times that a rate limit made a publisher wait.", now.throttled
        )
        yield CounterMetricFamily(
            "amqpgate_datapath_failures",
            "Exceptions in the data path; each ended one session.",
            now.pump_failures,
        )


class Metrics:
    """One registry per gateway; ``read`` gives the totals at a scrape."""

    def __init__(self, read: Callable[[], Totals]) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.registry.register(_Live(read))
        sessions = Counter(
            "amqpgate_connections",
            "Client connections by how they ended.",
            ["outcome"],
            registry=self.registry,
        )
        self._outcomes = {name: sessions.labels(name) for name in OUTCOMES}
        self._denials = Counter(
            "amqpgate_denials",
            "Operations refused by an access policy.",
            ["policy", "rule"],
            registry=self.registry,
        )
        self._not_transformed = Counter(
            "amqpgate_transform_refusals",
            "Requests refused because a transform policy cannot, or may not, change them.",
            ["operation"],
            registry=self.registry,
        )
        self._shadow = Counter(
            "amqpgate_shadow_differences_total",
            "Requests that would have been decided so if policies in mode shadow were enforced.",
            ["policy", "rule", "effect"],
            registry=self.registry,
        )
        self.policies = PolicyMetrics(self.registry)
        self._limits = Counter(
            "amqpgate_rate_limited",
            "What a rate limit delayed or refused, or would have (enforced: no); waiting for messages is "
            "in amqpgate_rate_limit_waits.",
            ["policy", "limit", "happened", "enforced"],
            registry=self.registry,
        )
        self._waits = Counter(
            "amqpgate_rate_limit_waits",
            "Seconds that sessions waited for a limit of messages or bytes, as seen by one look a second.",
            ["policy", "limit"],
            registry=self.registry,
        )
        self.handshakes = Gauge(
            "amqpgate_handshakes", "Connections that are not established yet.", registry=self.registry
        )
        self.away = Gauge(
            "amqpgate_shared_limits_away",
            "1 while limits that are shared cannot be counted together.",
            registry=self.registry,
        )
        self.ready = Gauge("amqpgate_ready", "1 while new connections are accepted.", registry=self.registry)

    def ended(self, outcome: str) -> None:
        """Count the end of a connection; ``outcome`` is one of ``OUTCOMES``."""
        self._outcomes[outcome].inc()

    def denied(self, policy: str, rule: str) -> None:
        """Count a refusal. Both names come from the policy files, so their number is bounded."""
        self._denials.labels(policy, rule).inc()

    def not_transformed(self, operation: str) -> None:
        """Count a refusal of a transform policy, by the method's name."""
        self._not_transformed.labels(operation).inc()

    def would_differ(self, policy: str, rule: str, effect: str) -> None:
        """Count a request that would have been decided so if every policy were enforced."""
        self._shadow.labels(policy, rule, effect).inc()

    def limited(self, policy: str, limit: str, happened: str, *, enforced: bool) -> None:
        """Count what a limit ``delayed`` or ``refused``, or would have."""
        self._limits.labels(policy, limit, happened, "yes" if enforced else "no").inc()

    def waited(self, policy: str, limit: str) -> None:
        """Count a look that found a session waiting for a limit."""
        self._waits.labels(policy, limit).inc()

    def text(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""
        return generate_latest(self.registry)
