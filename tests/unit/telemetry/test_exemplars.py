"""Exemplars as a parser of OpenMetrics reads them, of one process and of several."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Exemplar

from amqpgate.admin.negotiating import takes_open_metrics
from amqpgate.telemetry.exemplars import FAMILY, Exemplars
from amqpgate.telemetry.merge import Workers
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.readings import Totals

from .test_metrics import TOTALS


def exemplars_in(text: bytes) -> dict[str, Exemplar]:
    """By the bound of their bucket."""
    return {
        sample.labels["le"]: sample.exemplar
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.exemplar is not None and sample.name == f"{FAMILY}_bucket"
    }


def of(read: Totals | None = TOTALS) -> Metrics:
    return Metrics(lambda: read)


def test_a_bucket_has_the_last_traced_publish_that_took_so_long() -> None:
    metrics = of()
    metrics.confirmed(0.004)
    metrics.confirmed(30.0)
    for trace, seconds in ((1, 0.003), (2, 0.0045), (3, 20.0), (4, 0.2)):
        metrics.exemplars.note(seconds, trace, 0xAB)
    found = exemplars_in(metrics.open_text())
    # In the bucket of the last one no publish was timed.
    assert {bound: (one.labels["trace_id"], one.value) for bound, one in found.items()} == {
        "0.005": (f"{2:032x}", 0.0045),
        "+Inf": (f"{3:032x}", 20.0),
    }
    assert found["0.005"].labels["span_id"] == f"{0xAB:016x}"
    assert b"EXEMPLAR" not in metrics.text()
    assert b"trace_id" not in metrics.text()


def test_both_formats_say_the_same() -> None:
    metrics = of()
    metrics.confirmed(0.004)
    said = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.open_text().decode())
        for sample in family.samples
    }
    assert said[f"{FAMILY}_count",] == 1
    assert f"{len(said)}" == str(sum(not line.startswith(b"#") for line in metrics.text().splitlines()))


def test_of_several_workers_the_last_one_is_told() -> None:
    workers, texts = Workers(), []
    for number in range(2):
        metrics = of()
        metrics.confirmed(0.004)
        metrics.exemplars.note(0.004, number + 1, 1)
        texts.append((number, metrics.text() + metrics.exemplars.lines()))
    assert b"EXEMPLAR" not in workers.merge(texts)
    found = exemplars_in(workers.merge(reversed(texts), is_open=True))
    assert found["0.005"].labels["trace_id"] == f"{2:032x}"
    workers.gone(1)
    assert exemplars_in(workers.merge([(0, None)], is_open=True))["0.005"].labels["trace_id"] == f"{1:032x}"


def test_lines_that_are_none_are_passed_over() -> None:
    exemplars = Exemplars()
    exemplars.read(
        b"# EXEMPLAR 1 x y z\n# EXEMPLAR 999 1.0 " + b"a" * 32 + b" " + b"b" * 16 + b" 1.0\nEXEMPLAR"
    )
    assert exemplars.lines() == b""


@pytest.mark.parametrize(
    ("accept", "is_taken"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("text/plain;q=0.2,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=no", False),
        ("application/openmetrics-textual", False),
    ],
)
def test_who_asks_for_it(accept: str, is_taken: bool) -> None:
    assert takes_open_metrics(accept) is is_taken
