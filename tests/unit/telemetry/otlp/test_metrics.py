"""What a collector gets is what Prometheus reads: the same names, labels and numbers."""

from __future__ import annotations

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.otlp.metrics import request_of
from amqpgate.telemetry.units import unit_of


def sent(registry: CollectorRegistry) -> dict[str, Metric]:
    body = request_of(registry.collect(), {"service.name": "g", "process.pid": 7}, "1.0", began=5, now=9)
    (of,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    assert {one.key for one in of.resource.attributes} == {"service.name", "process.pid"}
    (scope,) = of.scope_metrics
    assert (scope.scope.name, scope.scope.version) == ("amqpgate", "1.0")
    found = {metric.name: metric for metric in scope.metrics}
    assert len(found) == len(scope.metrics)
    return found


def test_a_counter_a_gauge_and_a_histogram() -> None:
    registry = CollectorRegistry()
    Counter("a_bytes", "Text.", ["way"], registry=registry).labels("up").inc(3)
    Gauge("b_seconds", "Text.", registry=registry).set(-1.5)
    histogram = Histogram("c", "Text.", ["x"], buckets=(1, 2, 4), registry=registry)
    for value in (0.5, 1, 3, 9, 9):
        histogram.labels("y").observe(value)
    found = sent(registry)
    assert found.keys() == {"a_bytes_total", "b_seconds", "c"}
    assert [found[name].unit for name in sorted(found)] == ["By", "s", "1"]
    counter = found["a_bytes_total"].sum
    assert counter.is_monotonic
    assert counter.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = counter.data_points
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (3, 5, 9)
    assert [(one.key, one.value.string_value) for one in point.attributes] == [("way", "up")]
    (gauge,) = found["b_seconds"].gauge.data_points
    assert gauge.as_double == -1.5
    (buckets,) = found["c"].histogram.data_points
    assert (list(buckets.explicit_bounds), list(buckets.bucket_counts)) == ([1, 2, 4], [2, 0, 1, 2])
    assert (buckets.count, buckets.sum) == (5, 22.5)
    assert [(one.key, one.value.string_value) for one in buckets.attributes] == [("x", "y")]


def test_all_that_prometheus_reads_is_sent_with_the_same_numbers() -> None:
    metrics = Metrics(lambda: None, version="1")
    metrics.denied("orders", "no")
    metrics.confirmed(0.003)
    read = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.startswith("process_")
    }
    told: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for name, metric in sent(metrics.registry).items():
        for point in (*metric.sum.data_points, *metric.gauge.data_points):
            labels = tuple(sorted((one.key, one.value.string_value) for one in point.attributes))
            told[name, labels] = point.as_double
        for buckets in metric.histogram.data_points:
            told[f"{name}_count", ()], told[f"{name}_sum", ()] = buckets.count, buckets.sum
            assert sum(buckets.bucket_counts) == buckets.count
    expected = {key: value for key, value in read.items() if not key[0].endswith("_bucket")}
    assert {key: value for key, value in told.items() if not key[0].startswith("process_")} == expected


def test_units_are_those_of_the_names() -> None:
    names = ("amqpgate_throttle_seconds_total", "amqpgate_buffered_bytes", "amqpgate_sessions")
    assert [unit_of(name) for name in names] == ["s", "By", "1"]
