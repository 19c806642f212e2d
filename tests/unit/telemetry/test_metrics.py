"""What a scrape shows."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import attrs
import pytest
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.buckets import ADDED
from amqpgate.telemetry.audit.outlets.counts import OutletCounts
from amqpgate.telemetry.faults import FAULTS
from amqpgate.telemetry.metrics import OUTCOMES, Metrics
from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, PoolUse, Totals, Traffic
from amqpgate.telemetry.upstreams import UpstreamMetrics

TOTALS = Totals(
    traffic={
        PUBLISHED: Traffic(3, 3000),
        REFUSED: Traffic(1, 100),
        DELIVERED: Traffic(2, 20),
        GOT: Traffic(4, 40),
    },
    hits={"publish": 9, "deliver": 6},
    upcalls={"method": 5, "miss": 1, "shown": 0},
    connections={"handshake": 1, "open": 4, "closing": 2},
    sessions={"": 3, "batch": 1},
    versions={("0-9-1", "0-9-1"): 3, ("0-10", "0-9-1"): 1, ("0-10", "0-10"): 0},
    channels={"open": 5, "closing": 0},
    buffered={"client": 512, "upstream": 0},
    pauses=7,
    throttled=4,
    failures=8,
    latency=([2, 1, *[0] * (len(ADDED) - 2), 1], 15.5),
    pools={
        "rabbit": PoolUse(
            links={"open": 2, "dialling": 1}, channels={"taken": 30, "spare": 16}, sessions=11, waiting=3
        )
    },
    certificates=(("tls", "/etc/cert.pem", 1.9e9),),
)


@attrs.frozen
class Audited:
    """What an audit log would have counted."""

    queued: tuple[int, int] = (5, 2)
    queued_bytes: int = 700
    written: tuple[int, int] = (40, 30)
    dropped: tuple[int, int] = (0, 3)
    failed_writes: int = 9
    outlets: Mapping[str, OutletCounts] = attrs.field(
        factory=lambda: {"otlp": OutletCounts(3, 900, {"written": 7, "dropped": 2}, 4)}
    )


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Name and values of labels, in the order of their names -> value, as a Prometheus server reads them."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def test_what_is_summed_at_the_scrape() -> None:
    seen = samples(Metrics(lambda: TOTALS))
    # What the process itself tells, the version, and what other tests caused are not of the totals.
    of_processes = ("process_", "amqpgate_build_info", "amqpgate_internal_errors_total", "amqpgate_otlp")
    others = (*of_processes, "amqpgate_added_latency")
    assert {key: value for key, value in seen.items() if value and not key[0].startswith(others)} == {
        ("amqpgate_messages_total", "publish", "basic.publish", "allow"): 3,
        ("amqpgate_messages_total", "publish", "basic.publish", "deny"): 1,
        ("amqpgate_messages_total", "deliver", "basic.deliver", "allow"): 2,
        ("amqpgate_messages_total", "deliver", "basic.get-ok", "allow"): 4,
        ("amqpgate_message_bytes_total", "publish", "basic.publish", "allow"): 3000,
        ("amqpgate_message_bytes_total", "publish", "basic.publish", "deny"): 100,
        ("amqpgate_message_bytes_total", "deliver", "basic.deliver", "allow"): 20,
        ("amqpgate_message_bytes_total", "deliver", "basic.get-ok", "allow"): 40,
        ("amqpgate_datapath_hits_total", "publish"): 9,
        ("amqpgate_datapath_hits_total", "deliver"): 6,
        ("amqpgate_upcalls_total", "method"): 5,
        ("amqpgate_upcalls_total", "miss"): 1,
        ("amqpgate_connections_open", "handshake"): 1,
        ("amqpgate_connections_open", "open"): 4,
        ("amqpgate_connections_open", "closing"): 2,
        ("amqpgate_sessions", ""): 3,
        ("amqpgate_sessions", "batch"): 1,
        ("amqpgate_sessions_by_version", "0-9-1", "0-9-1"): 3,
        ("amqpgate_sessions_by_version", "0-10", "0-9-1"): 1,
        ("amqpgate_channels", "open"): 5,
        ("amqpgate_buffered_bytes", "client"): 512,
        ("amqpgate_backpressure_pauses_total",): 7,
        ("amqpgate_throttled_total",): 4,
        ("amqpgate_datapath_failures_total",): 8,
        ("amqpgate_pool_links", "open", "rabbit"): 2,
        ("amqpgate_pool_links", "dialling", "rabbit"): 1,
        ("amqpgate_pool_channels", "taken", "rabbit"): 30,
        ("amqpgate_pool_channels", "spare", "rabbit"): 16,
        ("amqpgate_pool_sessions", "rabbit"): 11,
        ("amqpgate_pool_waiting", "rabbit"): 3,
        ("amqpgate_tls_certificate_expiry_timestamp_seconds", "/etc/cert.pem", "tls"): 1.9e9,
    }


def test_what_did_not_pass_yet_is_there_as_nothing() -> None:
    seen = samples(Metrics(lambda: TOTALS))
    assert seen["amqpgate_messages_total", "deliver", "basic.return", "allow"] == 0
    assert seen["amqpgate_upcalls_total", "shown"] == 0


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


def test_every_endpoint_is_there_before_it_is_dialled() -> None:
    metrics = Metrics(lambda: TOTALS)
    upstreams = UpstreamMetrics(metrics.registry)
    upstreams.knows("rabbit", "a:5672")
    seen = samples(metrics)
    for outcome in ("connected", "failed", "broken"):
        assert seen["amqpgate_upstream_dials_total", "a:5672", outcome, "rabbit"] == 0
    assert seen["amqpgate_upstream_ejections_total", "a:5672", "rabbit"] == 0
    assert seen["amqpgate_upstream_up", "a:5672", "rabbit"] == 1
    upstreams.dial_seconds[("rabbit",)].observe(0.02)
    seen = samples(metrics)
    assert seen["amqpgate_upstream_dial_seconds_bucket", "0.01", "rabbit"] == 0
    assert seen["amqpgate_upstream_dial_seconds_bucket", "0.025", "rabbit"] == 1
    assert seen["amqpgate_upstream_dial_seconds_sum", "rabbit"] == 0.02


def test_an_outcome_that_nobody_listed_is_a_defect_that_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FAULTS, "counts", {"metrics": 0})
    Metrics(lambda: TOTALS).ended("vanished")
    assert FAULTS.counts["metrics"] == 1


def test_refusals_are_counted_by_rule() -> None:
    metrics = Metrics(lambda: TOTALS)
    metrics.denied("orders", "default")
    metrics.denied("orders", 'no-"quotes"\n')
    metrics.denied("orders", "default")
    seen = samples(metrics)
    assert seen["amqpgate_denials_total", "orders", "default"] == 2
    assert seen["amqpgate_denials_total", "orders", 'no-"quotes"\n'] == 1


def test_gauges() -> None:
    metrics = Metrics(lambda: TOTALS, version="1.2", compiled=False)
    metrics.ready.set(True)
    metrics.most_connections.set(100)
    seen = samples(metrics)
    assert seen["amqpgate_ready",] == 1
    assert seen["amqpgate_connections_limit",] == 100
    assert seen["amqpgate_build_info", "python", "1.2"] == 1


def test_confirms_that_were_timed() -> None:
    metrics = Metrics(lambda: TOTALS)
    metrics.confirmed(0.003)
    metrics.confirmed(0.3)
    seen = samples(metrics)
    assert seen["amqpgate_confirm_latency_seconds_bucket", "0.005"] == 1
    assert seen["amqpgate_confirm_latency_seconds_bucket", "0.5"] == 2
    assert seen["amqpgate_confirm_latency_seconds_sum",] == pytest.approx(0.303)


def test_the_audit_log_has_its_families() -> None:
    seen = samples(Metrics(lambda: TOTALS))
    assert seen["amqpgate_audit_queue",] == 0
    assert (
        seen["amqpgate_audit_dropped_total", "events"] == seen["amqpgate_audit_dropped_total", "usage"] == 0
    )
    seen = samples(Metrics(lambda: TOTALS, audit=Audited))
    assert seen["amqpgate_audit_queue",] == 7
    assert seen["amqpgate_audit_queue_bytes",] == 700
    assert seen["amqpgate_audit_records_total", "events"] == 40
    assert seen["amqpgate_audit_records_total", "usage"] == 30
    assert seen["amqpgate_audit_dropped_total", "events"] == 0
    assert seen["amqpgate_audit_dropped_total", "usage"] == 3
    assert seen["amqpgate_audit_write_failures_total",] == 9
    assert seen["amqpgate_audit_sink_records_total", "written", "otlp"] == 7
    assert seen["amqpgate_audit_sink_records_total", "dropped", "otlp"] == 2
    assert seen["amqpgate_audit_sink_retries_total", "otlp"] == 4
    assert seen["amqpgate_audit_sink_queue", "otlp"] == 3
    assert seen["amqpgate_audit_sink_queue_bytes", "otlp"] == 900


def test_a_process_says_what_it_takes() -> None:
    """As the client library has it, which counts open files one by one."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    seen = samples(Metrics(lambda: TOTALS))

    def theirs(name: str) -> float:
        value = registry.get_sample_value(name)
        assert value is not None
        return value

    memory = theirs("process_resident_memory_bytes")
    assert seen["process_resident_memory_bytes",] == pytest.approx(memory, rel=0.2)
    assert 0 < seen["process_cpu_seconds_total",] <= theirs("process_cpu_seconds_total") + 1
    assert seen["process_max_fds",] == theirs("process_max_fds")
    assert seen["process_start_time_seconds",] >= theirs("process_start_time_seconds") - 1
    # To list them takes one. A thread that waits in accept() has one that is not listed yet.
    listed = theirs("process_open_fds") - 1
    assert listed <= seen.get(("process_open_fds",), listed) <= listed + threading.active_count()


def test_nothing_is_told_of_when_a_counter_began() -> None:
    assert b"_created" not in generate_latest(Metrics(lambda: TOTALS).registry)


def test_two_gateways_in_one_process_do_not_share_their_numbers() -> None:
    one, other = Metrics(lambda: TOTALS), Metrics(lambda: TOTALS)
    one.ended("closed")
    assert samples(other)["amqpgate_connections_total", "closed"] == 0


def test_what_the_gateway_adds_is_a_histogram_with_a_bound_for_each_doubling() -> None:
    found = samples(Metrics(lambda: TOTALS))
    buckets = {
        key[1]: value for key, value in found.items() if key[0] == "amqpgate_added_latency_seconds_bucket"
    }
    assert len(buckets) == len(ADDED) // 2 + 1
    # The second bound is told with the third.
    assert (buckets["1e-06"], buckets["2e-06"], buckets["8.389"], buckets["+Inf"]) == (2, 3, 3, 4)
    assert found["amqpgate_added_latency_seconds_sum",] == 15.5
    assert found["amqpgate_added_latency_seconds_count",] == 4
