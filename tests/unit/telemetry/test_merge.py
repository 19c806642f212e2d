"""Several workers' metrics as one."""

from __future__ import annotations

import pytest

from amqpgate.telemetry.exposition import generate_latest, text_string_to_metric_families
from amqpgate.telemetry.families import CollectorRegistry
from amqpgate.telemetry.merge import HOW, Workers
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.policies import PolicyMetrics
from tests.support.prometheus import promtool

from .test_metrics import TOTALS


def lines(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


def gauge(name: str, value: float, kind: str = "gauge") -> bytes:
    return f"# HELP {name} Text.\n# TYPE {name} {kind}\n{name} {value}\n".encode()


def test_what_says_yes_or_when_is_that_of_the_worker_furthest_behind() -> None:
    texts = []
    for number, (digest, ok) in enumerate((("a" * 64, True), ("a" * 64, True), ("b" * 64, False))):
        registry = CollectorRegistry()
        metrics = PolicyMetrics(registry)
        metrics.in_force("c" * 64)
        metrics.in_force(digest)
        metrics.reloaded(ok)
        metrics._timestamp.set(100 if ok else 50)
        texts.append((number, generate_latest(registry)))
    merged = lines(Workers().merge(texts))
    for line in (
        'amqpgate_policy_info{digest="sha256:aaaaaaaaaaaaaaaa"} 2.0',
        'amqpgate_policy_info{digest="sha256:bbbbbbbbbbbbbbbb"} 1.0',
        "amqpgate_policy_last_reload_successful 0.0",
        "amqpgate_policy_last_reload_success_timestamp_seconds 50.0",
        'amqpgate_policy_reloads_total{outcome="done"} 2.0',
    ):
        assert line in merged
    # Of each worker, only what is in force.
    assert not any("cccc" in line for line in merged)


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("amqpgate_loop_lag_max_seconds", 3),
        ("amqpgate_tls_certificate_expiry_timestamp_seconds", 1),
        ("process_start_time_seconds", 1),
        ("process_max_fds", 1),
        # Sums: each has its own.
        ("process_resident_memory_bytes", 6),
        ("amqpgate_connections_limit", 6),
        ("amqpgate_audit_queue", 6),
    ],
)
def test_what_is_no_sum(name: str, merged: float) -> None:
    texts = [(number, gauge(name, value)) for number, value in enumerate((2, 3, 1))]
    assert lines(Workers().merge(texts)) == [f"{name} {float(merged)}"]


def test_whatever_is_no_sum_exists() -> None:
    """A name that has changed would be summed again, and nobody would see it."""
    families = text_string_to_metric_families(Metrics(lambda: TOTALS).text().decode())
    assert set(HOW) <= {family.name for family in families}


def test_one_workers_text_is_itself() -> None:
    metrics = Metrics(lambda: TOTALS, version="1")
    metrics.confirmed(0.01)
    text = metrics.text()
    assert set(lines(Workers().merge([(0, text)]))) == set(lines(text))


def test_prometheus_takes_what_was_merged() -> None:
    texts = [(number, Metrics(lambda: TOTALS, version="1").text()) for number in range(2)]
    done = promtool("check", "metrics", stdin=Workers().merge(texts).decode())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_histograms_add_up_bucket_by_bucket() -> None:
    texts = []
    for number, seconds in enumerate((0.003, 0.3)):
        metrics = Metrics(lambda: TOTALS)
        metrics.confirmed(seconds)
        texts.append((number, metrics.text()))
    merged = lines(Workers().merge(texts))
    name = "amqpgate_confirm_latency_seconds"
    buckets = [line for line in merged if line.startswith(f"{name}_bucket")]
    assert f'{name}_bucket{{le="0.005"}} 1.0' in buckets
    assert buckets[-1] == f'{name}_bucket{{le="+Inf"}} 2.0', "in their order"
    assert f"{name}_count 2.0" in merged


def test_what_the_dead_have_counted_stays() -> None:
    workers = Workers()

    def both(first: int, second: int) -> list[tuple[int, bytes | None]]:
        return [
            (number, gauge("seen_total", count, "counter") + gauge("there", 1))
            for number, count in enumerate((first, second))
        ]

    assert lines(workers.merge(both(100, 10))) == ["seen_total 110.0", "there 2.0"]
    workers.gone(0)
    assert lines(workers.merge(both(0, 10)[1:])) == ["seen_total 110.0", "there 1.0"]
    # Another one has its number, and counts from 0.
    assert lines(workers.merge(both(5, 10))) == ["seen_total 115.0", "there 2.0"]
    workers.gone(0)
    workers.gone(1)
    workers.gone(7)
    assert lines(workers.merge([])) == ["seen_total 115.0"]


def test_who_does_not_answer_is_as_it_was() -> None:
    workers = Workers()
    text = gauge("seen_total", 100, "counter")
    assert lines(workers.merge([(0, text), (1, None)])) == ["seen_total 100.0"]
    assert lines(workers.merge([(0, text), (1, text)])) == ["seen_total 200.0"]
    assert lines(workers.merge([(0, None), (1, text)])) == ["seen_total 200.0"]
