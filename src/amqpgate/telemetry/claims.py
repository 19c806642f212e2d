"""Metrics of bodies that go to an object store, and come from there."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class ClaimMetrics:
    """Registered beside the gateway's other metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        objects = Counter(
            "amqpgate_claim_objects_total",
            "Bodies of messages that went to an object store (put), or came from there (get), or could not.",
            ["operation", "outcome"],
            registry=registry,
        )
        byte_count = Counter(
            "amqpgate_claim_bytes_total",
            "Bytes of bodies that went to an object store (put), or came from there (get).",
            ["operation"],
            registry=registry,
        )
        self._objects = {
            (operation, outcome): objects.labels(operation, outcome)
            for operation in ("put", "get")
            for outcome in ("ok", "failed")
        }
        self._bytes = {operation: byte_count.labels(operation) for operation in ("put", "get")}

    def put(self, byte_count: int | None) -> None:
        """A body has gone to a store; None: it could not."""
        self._count("put", byte_count)

    def got(self, byte_count: int | None) -> None:
        """A body has come from a store; None: it could not."""
        self._count("get", byte_count)

    def _count(self, operation: str, byte_count: int | None) -> None:
        self._objects[operation, "failed" if byte_count is None else "ok"].inc()
        if byte_count is not None:
            self._bytes[operation].inc(byte_count)
