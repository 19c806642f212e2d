"""The metrics of several workers as one.

Each sample is the sum over the workers, but for those of `HOW`. A sum must not fall because a worker is gone,
or does not answer in time: a counter that falls is read as one that began anew, and its counts would count
twice. So what the dead have counted is kept, and who is silent is believed to be as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from amqpgate.telemetry.exemplars import Exemplars
from amqpgate.values import define

#: A sum of times, or of answers to yes or no, would tell nothing.
HOW: Final[dict[str, Callable[[float, float], float]]] = {
    # The worker that is furthest behind.
    "amqpgate_policy_last_reload_successful": min,
    "amqpgate_issuer_keys_valid": min,
    "amqpgate_policy_last_reload_success_timestamp_seconds": min,
    # What ends first, and began first.
    "amqpgate_tls_certificate_expiry_timestamp_seconds": min,
    "process_start_time_seconds": min,
    # The slowest; and each process has a limit of its own.
    "amqpgate_loop_lag_max_seconds": max,
    "process_max_fds": min,
}
#: What is counted, and does not end with who has counted it.
_COUNTED: Final = frozenset({"counter", "histogram"})

_Key = tuple[str, tuple[tuple[str, str], ...]]


def _add(one: float, other: float) -> float:
    return one + other


@define(eq=False)
class Merged:
    """Families by name, each with its samples."""

    _families: dict[str, tuple[Metric, dict[_Key, float]]] = attrs.field(factory=dict)

    def add(self, text: bytes, *, only: frozenset[str] | None = None) -> None:
        """One more worker's text in Prometheus' format; ``only`` families of these types."""
        for family in text_string_to_metric_families(text.decode()):
            if only is not None and family.type not in only:
                continue
            empty = Metric(family.name, family.documentation, family.type), dict[_Key, float]()
            samples = self._families.setdefault(family.name, empty)[1]
            how = HOW.get(family.name, _add)
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                samples[key] = how(samples[key], sample.value) if key in samples else sample.value

    def text(self, exemplars: Exemplars | None = None) -> bytes:
        """Families keep their help and type. With exemplars it is OpenMetrics'."""
        if exemplars is not None:
            return exemplars.text(self._metrics())
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Fixed(self._metrics()))
        return generate_latest(registry)

    def _metrics(self) -> Iterator[Metric]:
        for family, samples in self._families.values():
            metric = Metric(family.name, family.documentation, family.type)
            for (name, labels), value in samples.items():
                metric.add_sample(name, dict(labels), value)
            yield metric


@define(eq=False)
class Workers:
    """What the workers have said, by number, and what those had counted that are gone."""

    _last: dict[int, bytes] = attrs.field(factory=dict)
    _gone: bytes = b""

    def merge(self, texts: Iterable[tuple[int, bytes | None]], *, is_open: bool = False) -> bytes:
        """What they say now as one text, of OpenMetrics with their exemplars where ``is_open``; None: no
        answer."""
        said = dict(texts)
        self._last |= {number: text for number, text in said.items() if text is not None}
        merged = Merged()
        merged.add(self._gone)
        for number in said:
            if number in self._last:
                merged.add(self._last[number])
        if not is_open:
            return merged.text()
        exemplars = Exemplars()
        for number in said:
            exemplars.read(self._last.get(number, b""))
        return merged.text(exemplars)

    def gone(self, number: int) -> None:
        """A worker has ended. What it counted since it was asked last is lost."""
        last = self._last.pop(number, None)
        if last is not None:
            merged = Merged()
            merged.add(self._gone)
            merged.add(last, only=_COUNTED)
            self._gone = merged.text()


class _Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
