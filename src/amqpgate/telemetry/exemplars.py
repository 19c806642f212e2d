"""Exemplars of OpenMetrics: for each bucket of the confirm latency, the last traced publish of that length.

They are there where spans are made. Between processes they are lines of comment behind the metrics' text,
which readers of that format pass over.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Exemplar

from amqpgate.values import frozen

#: The histogram that has them, and its bounds in seconds.
FAMILY: Final = "amqpgate_confirm_latency_seconds"
BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
MEDIA: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_LINE: Final = re.compile(
    r"# EXEMPLAR ([0-9]{1,2}) ([0-9.e+-]{1,32}) ([0-9a-f]{32}) ([0-9a-f]{16}) ([0-9.]{1,32})", re.ASCII
)


@frozen
class TracedLatency:
    """A publish that was traced."""

    seconds: float
    #: In hexadecimal.
    trace: str
    span: str
    #: When it was confirmed, in seconds since 1970.
    at: float


class Exemplars:
    """The last of each bucket."""

    def __init__(self) -> None:
        self._last: dict[int, TracedLatency] = {}

    def note(self, seconds: float, trace: int, span: int) -> None:
        """A traced publish has been confirmed."""
        told = TracedLatency(seconds, f"{trace:032x}", f"{span:016x}", time.time())
        self._last[bisect_left(BOUNDS, seconds)] = told

    def lines(self) -> bytes:
        """For `read`."""
        return "".join(
            f"# EXEMPLAR {bucket} {one.seconds!r} {one.trace} {one.span} {one.at!r}\n"
            for bucket, one in self._last.items()
        ).encode()

    def read(self, text: bytes) -> None:
        """Add those of another process, where they are younger."""
        for match in _LINE.finditer(text.decode()):
            bucket, one = int(match[1]), TracedLatency(float(match[2]), match[3], match[4], float(match[5]))
            known = self._last.get(bucket)
            if known is None or known.at < one.at:
                self._last[bucket] = one

    def text(self, families: Iterable[Metric]) -> bytes:
        """These metrics in OpenMetrics' text format, with them."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families([self._with(one) if one.name == FAMILY else one for one in families]))
        text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
        return text

    def _with(self, family: Metric) -> Metric:
        made = Metric(family.name, family.documentation, family.type)
        bucket = below = 0
        for sample in family.samples:
            if sample.name == f"{FAMILY}_bucket":
                one = self._last.get(bucket)
                # Not each publish is timed for the histogram: where none was, there is nothing to explain.
                if one is not None and sample.value > below:
                    labels = {"trace_id": one.trace, "span_id": one.span}
                    sample = sample._replace(exemplar=Exemplar(labels, one.seconds, one.at))
                bucket, below = bucket + 1, int(sample.value)
            made.samples.append(sample)
        return made


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
