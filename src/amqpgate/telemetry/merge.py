"""The metrics of several workers as one: each sample is the sum over the workers.

But what `LEAST` names is that of the worker which is furthest behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

#: A sum of times, or of answers to yes or no, would tell nothing.
LEAST = (
    "amqpgate_policy_last_reload_successful",
    "amqpgate_policy_last_reload_success_timestamp_seconds",
)

_Key = tuple[str, tuple[tuple[str, str], ...]]


def merge(texts: Iterable[bytes]) -> bytes:
    """Sum texts in Prometheus' format, sample by sample. Families keep their help and type."""
    families: dict[str, Metric] = {}
    sums: dict[str, dict[_Key, float]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            into = sums.setdefault(family.name, {})
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                if family.name in LEAST:
                    into[key] = min(into.get(key, sample.value), sample.value)
                else:
                    into[key] = into.get(key, 0.0) + sample.value
    for name, family in families.items():
        for (sample_name, labels), value in sums[name].items():
            family.add_sample(sample_name, dict(labels), value)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Fixed(families.values()))
    return generate_latest(registry)


class _Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
