"""Which policies are in force, and how it went when they were read again, in numbers."""

from __future__ import annotations

import time
from collections.abc import Iterable, MutableMapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from amqpgate.telemetry.tallies import Tallies


class PolicyMetrics:
    """Part of a gateway's metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        reloads = Counter(
            "amqpgate_policy_reloads",
            "Times that policies were read again, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self._reloads = {ok: reloads.labels("done" if ok else "refused") for ok in (True, False)}
        self._info = Gauge(
            "amqpgate_policy_info",
            "1 for the digest of the policies in force; of several workers, how many have them.",
            ["digest"],
            registry=registry,
        )
        self._successful = Gauge(
            "amqpgate_policy_last_reload_successful",
            "0 while those read last are wrong, and others are in force; of several workers, the least.",
            registry=registry,
        )
        self._timestamp = Gauge(
            "amqpgate_policy_last_reload_success_timestamp_seconds",
            "When the policies in force were read; of several workers, the earliest.",
            registry=registry,
        )

        self.unselected = Counter(
            "amqpgate_unselected_sessions",
            "Sessions that no access policy selected when they were opened; defaultAccess decides for them.",
            registry=registry,
        )
        self._selected = Tallies(
            registry,
            "amqpgate_policy_sessions",
            "Sessions that a policy in force has selected, those that are open when it changes once more; "
            "0 where it selects nobody seen so far.",
            ["kind", "policy"],
        )

    def hold(self, policies: Iterable[tuple[str, str]]) -> MutableMapping[tuple[str, ...], int]:
        """These are in force: their kinds and names. What counts the sessions that each of them selects."""
        before = self._selected.counts
        self._selected.counts = {key: before.get(key, 0) for key in policies}
        return self._selected.counts

    def in_force(self, digest: str) -> None:
        """Policies with this digest, or none, have been put in force."""
        self._info.clear()
        if digest:
            self._info.labels(f"sha256:{digest[:16]}").set(1)
        self._successful.set(1)
        self._timestamp.set(time.time())

    def reloaded(self, ok: bool) -> None:
        """Count a reload of the policies, or one that found them wrong."""
        self._reloads[ok].inc()
        self._successful.set(int(ok))
