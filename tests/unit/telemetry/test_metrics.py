"""What a scrape shows."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.telemetry.metrics import OUTCOMES, Metrics, Totals, Traffic

TOTALS = Totals(
    publish=Traffic(messages=3, octets=3000, frames=9),
    deliver=Traffic(messages=2, octets=20, frames=6),
    sessions=4,
    channels=5,
    upcalls=6,
    pauses=7,
    throttled=4,
    pump_failures=8,
)


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Name and label values -> value, as a Prometheus server reads them."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_what_is_summed_at_the_scrape() -> None:
    seen = samples(Metrics(lambda: TOTALS))
    assert {key: value for key, value in seen.items() if value} == {
        ("amqpgate_messages_total", "publish"): 3,
        ("amqpgate_messages_total", "deliver"): 2,
        ("amqpgate_message_bytes_total", "publish"): 3000,
        ("amqpgate_message_bytes_total", "deliver"): 20,
        ("amqpgate_frames_total", "publish"): 9,
        ("amqpgate_frames_total", "deliver"): 6,
        ("amqpgate_sessions",): 4,
        ("amqpgate_channels",): 5,
        ("amqpgate_upcalls_total",): 6,
        ("amqpgate_backpressure_pauses_total",): 7,
        ("amqpgate_throttled_total",): 4,
        ("amqpgate_datapath_failures_total",): 8,
    }


def test_totals_are_read_anew_at_every_scrape() -> None:
    readings = [TOTALS] * 3
    metrics = Metrics(lambda: readings.pop())
    before = len(readings)
    samples(metrics)
    samples(metrics)
    assert before - len(readings) == 2


def test_every_outcome_is_there_before_it_occurs() -> None:
    """A counter that appears with its first increment hides that increment from rate()."""
    metrics = Metrics(lambda: TOTALS)
    assert {key[1] for key in samples(metrics) if key[0] == "amqpgate_connections_total"} == set(OUTCOMES)
    metrics.ended("closed")
    metrics.ended("closed")
    metrics.ended("violation")
    seen = samples(metrics)
    assert seen["amqpgate_connections_total", "closed"] == 2
    assert seen["amqpgate_connections_total", "violation"] == 1


def test_an_outcome_that_nobody_listed_is_a_defect() -> None:
    with pytest.raises(KeyError):
        Metrics(lambda: TOTALS).ended("vanished")


def test_refusals_are_counted_by_rule() -> None:
    metrics = Metrics(lambda: TOTALS)
    metrics.denied("orders", "default")
    metrics.denied("orders", 'no-"quotes"\n')
    metrics.denied("orders", "default")
    seen = samples(metrics)
    assert seen["amqpgate_denials_total", "orders", "default"] == 2
    assert seen["amqpgate_denials_total", "orders", 'no-"quotes"\n'] == 1


def test_gauges() -> None:
    metrics = Metrics(lambda: TOTALS)
    metrics.ready.set(True)
    metrics.handshakes.inc()
    seen = samples(metrics)
    assert seen["amqpgate_ready",] == 1
    assert seen["amqpgate_handshakes",] == 1


def test_traffic_adds_up() -> None:
    assert Traffic(1, 2, 3) + Traffic(10, 20, 30) == Traffic(11, 22, 33)


def test_two_gateways_in_one_process_do_not_share_their_numbers() -> None:
    one, other = Metrics(lambda: TOTALS), Metrics(lambda: TOTALS)
    one.ended("closed")
    assert samples(other)["amqpgate_connections_total", "closed"] == 0
