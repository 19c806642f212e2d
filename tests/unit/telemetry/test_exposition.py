"""Metrics, and their text, beside what Prometheus' own client makes of the same."""

from __future__ import annotations

from math import inf, isnan, nan

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse

from amqpgate.telemetry.exposition import generate_latest, text_string_to_metric_families
from amqpgate.telemetry.families import CollectorRegistry, GaugeMetricFamily, Metric
from amqpgate.telemetry.instruments import CounterMetric, GaugeMetric, HistogramMetric

BUCKETS = (0.0005, 0.25, 1, 10)


def written() -> tuple[bytes, bytes]:
    """The same counted by ours and by theirs."""
    ours, theirs = CollectorRegistry(), prometheus_client.CollectorRegistry()
    prometheus_client.disable_created_metrics()
    try:
        for registry, library in (
            (ours, (CounterMetric, GaugeMetric, HistogramMetric)),
            (theirs, (prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram)),
        ):
            counter, gauge, histogram = library
            plain = counter("things", "Counted.\nIn two lines, with a \\.", registry=registry)
            plain.inc()
            plain.inc(2.5)
            by = counter("by_total", "With labels.", ["one", "two"], registry=registry)
            by.labels("b", 'say "\n\\"').inc()
            by.labels("a", "é").inc(0)
            counter("never", "With labels, and no child.", ["one"], registry=registry)
            level = gauge("level", "Up and down.", registry=registry)
            level.set(3)
            level.inc(-5)
            gauge("called", "Asked.", registry=registry).set_function(lambda: 7)
            took = histogram("took_seconds", "Times.", ["where"], buckets=BUCKETS, registry=registry)
            for seconds in (0.0005, 0.00051, 1, 9, 11, 0):
                took.labels("here").observe(seconds)
            took.labels("there")
            gone = gauge("gone", "Forgotten.", ["name"], registry=registry)
            gone.labels("one").set(1)
            gone.labels("two").set(2)
            gone.remove("one")
        return generate_latest(ours), prometheus_client.generate_latest(theirs)
    finally:
        prometheus_client.enable_created_metrics()


def test_the_text_is_what_the_client_library_writes() -> None:
    ours, theirs = written()
    assert ours == theirs


def test_what_was_written_is_read() -> None:
    text = written()[0].decode()
    for read, expected in zip(text_string_to_metric_families(text), parse(text), strict=True):
        assert (read.name, read.documentation, read.type) == (
            expected.name,
            expected.documentation,
            expected.type,
        )
        assert [tuple(sample) for sample in read.samples] == [
            (sample.name, sample.labels, sample.value) for sample in expected.samples
        ]


@given(st.text(max_size=20), st.text(max_size=20), st.floats())
def test_any_text_and_number_comes_back(value: str, help_: str, number: float) -> None:
    class One:
        def collect(self) -> list[Metric]:
            family = GaugeMetricFamily("one", help_, labels=["name"])
            family.add_metric([value], number)
            return [family]

    registry = CollectorRegistry()
    registry.register(One())
    [family] = text_string_to_metric_families(generate_latest(registry).decode())
    [sample] = family.samples
    assert (family.documentation, sample.labels) == (help_, {"name": value})
    assert sample.value == number or (isnan(sample.value) and isnan(number))


@pytest.mark.parametrize("number", [inf, -inf, nan, 1e300, 1.76e9, 0.0])
def test_numbers_are_read_by_the_client_library(number: float) -> None:
    registry = CollectorRegistry()
    GaugeMetric("one", "A number.", registry=registry).set(number)
    [family] = parse(generate_latest(registry).decode())
    assert family.samples[0].value == number or isnan(number)


@pytest.mark.parametrize("text", ["one 1\n", "# TYPE one summary\n", '# TYPE one gauge\none{a="b} 1\n'])
def test_what_is_no_such_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"a sample|no sample|no type"):
        list(text_string_to_metric_families(text))


def test_labels_are_as_many_as_were_named() -> None:
    counter = CounterMetric("one", "Text.", ["a"], registry=CollectorRegistry())
    for values in ((), ("a", "b")):
        with pytest.raises(ValueError, match="has the labels"):
            counter.labels(*values)
