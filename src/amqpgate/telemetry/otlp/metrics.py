"""Families of prometheus-client as OTLP's: a collector gets what Prometheus reads, by the same names.

Counters and histograms are cumulative since the process began. The unit is in the name, and said besides
(UCUM).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from amqpgate.telemetry.units import unit_of

_CUMULATIVE: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def request_of(
    families: Iterable[Family], resource: Mapping[str, str | int], version: str, *, began: int, now: int
) -> bytes:
    """What is sent: both times are in nanoseconds since 1970."""
    metrics = [metric for family in families if (metric := _metric(family, began, now)) is not None]
    scope = InstrumentationScope(name="amqpgate", version=version)
    scopes = [ScopeMetrics(scope=scope, metrics=metrics)]
    of = ResourceMetrics(resource=Resource(attributes=attributes(resource)), scope_metrics=scopes)
    body: bytes = ExportMetricsServiceRequest(resource_metrics=[of]).SerializeToString()
    return body


def attributes(values: Mapping[str, str | int]) -> list[KeyValue]:
    """As OTLP has them."""
    return [
        KeyValue(
            key=key,
            value=AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value),
        )
        for key, value in values.items()
    ]


def _metric(family: Family, began: int, now: int) -> Metric | None:
    if not family.samples:
        return None
    if family.type == "histogram":
        points = _histograms(family.samples, began, now)
        made = Histogram(data_points=points, aggregation_temporality=_CUMULATIVE)
        return _named(family.name, family, histogram=made)
    numbers = [
        NumberDataPoint(
            attributes=attributes(sample.labels),
            start_time_unix_nano=began if family.type == "counter" else 0,
            time_unix_nano=now,
            as_double=sample.value,
        )
        for sample in family.samples
    ]
    name = family.samples[0].name
    if family.type == "counter":
        made_sum = Sum(data_points=numbers, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
        return _named(name, family, sum=made_sum)
    return _named(name, family, gauge=Gauge(data_points=numbers))


def _named(name: str, family: Family, **data: Gauge | Sum | Histogram) -> Metric:
    return Metric(name=name, description=family.documentation, unit=unit_of(name), **data)


def _histograms(samples: Iterable[Sample], began: int, now: int) -> list[HistogramDataPoint]:
    """One for each set of labels: buckets that are not sums of those before, as OTLP has them."""
    found: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for sample in samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        kept = found.setdefault(tuple(sorted(labels.items())), {})
        kept[sample.labels.get("le", sample.name.rpartition("_")[2])] = sample.value
    points = []
    for key, values in found.items():
        total, count = values.pop("sum", 0.0), values.pop("count", 0.0)
        bounds = sorted((float(bound), sum_) for bound, sum_ in values.items())
        before, counts = 0.0, []
        for _, sum_ in bounds:
            counts.append(int(sum_ - before))
            before = sum_
        points.append(
            HistogramDataPoint(
                attributes=attributes(dict(key)),
                start_time_unix_nano=began,
                time_unix_nano=now,
                count=int(count),
                sum=total,
                bucket_counts=counts,
                explicit_bounds=[bound for bound, _ in bounds if bound != math.inf],
            )
        )
    return points
