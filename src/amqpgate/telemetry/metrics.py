"""The gateway's metrics. Nothing is counted per message: live sessions are summed at the scrape (`live`).

No label has a value that a client, or a broker, may choose: they come from the settings, the policies and
the code, so their number is bounded. Whoever asks for others has them in `labelled`, bounded as well.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from amqpgate.telemetry.auditing import AuditCounts, AuditMetrics
from amqpgate.telemetry.exemplars import BOUNDS, FAMILY, Exemplars
from amqpgate.telemetry.faults import FaultMetrics, Registry, contained
from amqpgate.telemetry.lag import LagMetrics
from amqpgate.telemetry.live import Live
from amqpgate.telemetry.otlp.counts import OtlpMetrics
from amqpgate.telemetry.policies import PolicyMetrics
from amqpgate.telemetry.process import ProcessMetrics
from amqpgate.telemetry.readings import Totals
from amqpgate.telemetry.tallies import Tallies
from amqpgate.telemetry.tokens import TokenMetrics

# Each would be one more series for every counter, and of several workers nobody's.
disable_created_metrics()  # type: ignore[no-untyped-call]

#: ``amqpgate_connections_total{outcome=...}``; every way in which a connection can end or not begin.
OUTCOMES = (
    "closed",
    "client_gone",
    "client_silent",
    "upstream_gone",
    "upstream_silent",
    "violation",
    "drained",
    "forced",
    "failed",
    "refused",
    "handshake_failed",
    "handshake_timeout",
    "upstream_unavailable",
    "over_limit",
)


class Metrics:
    """One registry per gateway; ``read`` gives the totals at a scrape, ``audit`` what its log has counted."""

    def __init__(
        self,
        read: Callable[[], Totals | None],
        *,
        audit: Callable[[], AuditCounts] | None = None,
        version: str = "",
        compiled: bool = True,
    ) -> None:
        self.registry = Registry(auto_describe=True)
        self.registry.register(Live(read))
        self.registry.register(FaultMetrics())
        self.registry.register(OtlpMetrics())
        ProcessMetrics(self.registry)
        sessions = Tallies(
            self.registry, "amqpgate_connections", "Client connections by how they ended.", ["outcome"]
        )
        # Each is there from the start: a counter that begins at its first increment hides that from rates.
        self._outcomes = sessions.counts = {(outcome,): 0 for outcome in OUTCOMES}
        self._denials = Counter(
            "amqpgate_denials",
            "Operations refused by an access policy.",
            ["policy", "rule"],
            registry=self.registry,
        )
        self._not_transformed = Counter(
            "amqpgate_transform_refusals",
            "Requests refused because a transform or compatibility policy cannot, or may not, change them.",
            ["operation"],
            registry=self.registry,
        )
        self._adapted = Counter(
            "amqpgate_compatibility_changes_total",
            "Requests that a compatibility policy has changed, by what was changed.",
            ["policy", "item"],
            registry=self.registry,
        )
        self._shadow = Counter(
            "amqpgate_shadow_differences_total",
            "Requests that would have been decided so if policies in mode shadow were enforced.",
            ["policy", "rule", "effect"],
            registry=self.registry,
        )
        self.policies = PolicyMetrics(self.registry)
        self.tokens = TokenMetrics(self.registry)
        self._limits = Counter(
            "amqpgate_rate_limited",
            "What a rate limit delayed or refused, or would have (enforced: no); waiting for messages is "
            "in amqpgate_throttle_seconds_total.",
            ["policy", "limit", "happened", "enforced"],
            registry=self.registry,
        )
        self._waits = Counter(
            "amqpgate_throttle_seconds",
            "Seconds that sessions waited for a limit of messages or bytes, as seen by one look a second.",
            ["policy", "limit"],
            registry=self.registry,
        )
        self.most_connections = Gauge(
            "amqpgate_connections_limit",
            "Connections of clients that are accepted at most.",
            registry=self.registry,
        )
        self.exemplars = Exemplars()
        self._confirms = Histogram(
            FAMILY,
            "From a publish to the broker's confirm; one publish at a time of each session is timed.",
            buckets=BOUNDS,
            registry=self.registry,
        )
        self.lag = LagMetrics(self.registry)
        AuditMetrics(self.registry, audit)
        build = Gauge(
            "amqpgate_build_info",
            "1, with the version, and whether the data path is compiled.",
            ["version", "datapath"],
            registry=self.registry,
        )
        build.labels(version, "compiled" if compiled else "python").set(1)
        self.away = Gauge(
            "amqpgate_shared_limits_away",
            "1 while limits that are shared cannot be counted together.",
            registry=self.registry,
        )
        self.ready = Gauge("amqpgate_ready", "1 while new connections are accepted.", registry=self.registry)

    @contained("metrics", None)
    def ended(self, outcome: str) -> None:
        """Count the end of a connection; ``outcome`` is one of ``OUTCOMES``."""
        self._outcomes[(outcome,)] += 1

    @contained("metrics", None)
    def denied(self, policy: str, rule: str) -> None:
        """Count a refusal. Both names come from the policy files, so their number is bounded."""
        self._denials.labels(policy, rule).inc()

    @contained("metrics", None)
    def not_transformed(self, operation: str) -> None:
        """Count a refusal of a transform policy, by the method's name."""
        self._not_transformed.labels(operation).inc()

    @contained("metrics", None)
    def adapted(self, policy: str, item: str) -> None:
        """Count a request that a compatibility policy has changed."""
        self._adapted.labels(policy, item).inc()

    @contained("metrics", None)
    def would_differ(self, policy: str, rule: str, effect: str) -> None:
        """Count a request that would have been decided so if every policy were enforced."""
        self._shadow.labels(policy, rule, effect).inc()

    @contained("metrics", None)
    def limited(self, policy: str, limit: str, happened: str, *, enforced: bool) -> None:
        """Count what a limit ``delayed`` or ``refused``, or would have."""
        self._limits.labels(policy, limit, happened, "yes" if enforced else "no").inc()

    @contained("metrics", None)
    def waited(self, policy: str, limit: str) -> None:
        """Count a look that found a session waiting for a limit."""
        self._waits.labels(policy, limit).inc()

    @contained("metrics", None)
    def confirmed(self, seconds: float) -> None:
        """The broker has answered a publish that was timed."""
        self._confirms.observe(seconds)

    def text(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""
        return generate_latest(self.registry)

    def open_text(self) -> bytes:
        """OpenMetrics' text format, with exemplars."""
        return self.exemplars.text(self.registry.collect())
