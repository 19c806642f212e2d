"""Several workers' metrics as one."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from amqpgate.telemetry.merge import merge
from amqpgate.telemetry.policies import PolicyMetrics


def test_what_says_yes_or_when_is_that_of_the_worker_furthest_behind() -> None:
    texts = []
    for digest, ok in (("a" * 64, True), ("a" * 64, True), ("b" * 64, False)):
        registry = CollectorRegistry()
        metrics = PolicyMetrics(registry)
        metrics.in_force("c" * 64)
        metrics.in_force(digest)
        metrics.reloaded(ok)
        metrics._timestamp.set(100 if ok else 50)
        texts.append(generate_latest(registry))
    lines = merge(texts).decode().splitlines()
    for line in (
        'amqpgate_policy_info{digest="sha256:aaaaaaaaaaaaaaaa"} 2.0',
        'amqpgate_policy_info{digest="sha256:bbbbbbbbbbbbbbbb"} 1.0',
        "amqpgate_policy_last_reload_successful 0.0",
        "amqpgate_policy_last_reload_success_timestamp_seconds 50.0",
        'amqpgate_policy_reloads_total{outcome="done"} 2.0',
    ):
        assert line in lines
    # Of each worker, only what is in force.
    assert not any("cccc" in line for line in lines)
