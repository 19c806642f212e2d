"""Metrics of mirrors, by the cluster that they go to.

Every sampled message is either mirrored or dropped in the end: what is missing in their sum still waits.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge

#: Why a copy did not arrive.
Reason: TypeAlias = Literal[
    "full", "too_large", "transaction", "malformed", "unfinished", "unavailable", "refused", "lost", "stopped"
]


class MirrorMetrics:
    """Registered beside the gateway's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sampled = Counter(
            "amqpgate_mirror_sampled_messages_total",
            "Publishes that were chosen to be mirrored.",
            ["upstream"],
            registry=registry,
        )
        self._messages = Counter(
            "amqpgate_mirror_messages_total",
            "Publishes that the mirror has confirmed.",
            ["upstream"],
            registry=registry,
        )
        self._bytes = Counter(
            "amqpgate_mirror_bytes_total",
            "Bytes of message bodies that the mirror has confirmed.",
            ["upstream"],
            registry=registry,
        )
        self._dropped = Counter(
            "amqpgate_mirror_dropped_messages_total",
            "Publishes that were chosen and not mirrored, by reason.",
            ["upstream", "reason"],
            registry=registry,
        )
        self._waiting = Gauge(
            "amqpgate_mirror_queue_bytes",
            "Bytes that are held for the mirror, of messages with all that belongs to them.",
            ["upstream"],
            registry=registry,
        )

    def account(self, upstream: str) -> MirrorAccount:
        """What is counted for one cluster."""
        return MirrorAccount(
            self._sampled.labels(upstream),
            self._messages.labels(upstream),
            self._bytes.labels(upstream),
            self._waiting.labels(upstream),
            self._dropped,
            upstream,
        )


class MirrorAccount:
    """The counters of one cluster."""

    def __init__(
        self,
        sampled: Counter,
        messages: Counter,
        byte_count: Counter,
        waiting: Gauge,
        dropped: Counter,
        upstream: str,
    ) -> None:
        self._sampled, self._messages, self._bytes = sampled, messages, byte_count
        self._waiting, self._dropped, self._upstream = waiting, dropped, upstream

    def sampled(self) -> None:
        """A message was chosen."""
        self._sampled.inc()

    def mirrored(self, byte_count: int) -> None:
        """The mirror has confirmed a message with so much body."""
        self._messages.inc()
        self._bytes.inc(byte_count)

    def dropped(self, reason: Reason, messages: int = 1) -> None:
        """So many will not arrive, or it is not known whether they did."""
        if messages:
            self._dropped.labels(self._upstream, reason).inc(messages)

    def held(self, byte_count: int) -> None:
        """So much more is held; below zero: less."""
        self._waiting.inc(byte_count)
