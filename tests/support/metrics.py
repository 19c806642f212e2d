"""What a registry of metrics tells."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry


def sample_value(
    registry: CollectorRegistry, name: str, labels: Mapping[str, str] | None = None
) -> float | None:
    """The value of one series; None where there is none."""
    samples = (sample for metric in registry.collect() for sample in metric.samples)
    wanted = labels or {}
    return next((one.value for one in samples if one.name == name and one.labels == wanted), None)
