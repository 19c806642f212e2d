"""Readings as metric families: what sessions, pools and the data path have counted themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from amqpgate.buckets import ADDED
from amqpgate.telemetry.readings import PASSAGES, PoolUse, Totals, Traffic


class Live(Collector):
    """Reads once for each scrape; None: there is nothing yet."""

    def __init__(self, read: Callable[[], Totals | None]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Nothing: there may be nothing to read yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        now = self._read()
        if now is not None:
            yield from self.families(now)

    def families(self, now: Totals) -> Iterator[Metric]:
        """What there is, of what was read."""
        yield from _messages(now)
        yield _counter("datapath_hits", "Frames that the data path dealt with alone.", "direction", now.hits)
        yield _counter("upcalls", "Frames handed to the control plane, by reason.", "reason", now.upcalls)
        yield CounterMetricFamily(
            "amqpgate_backpressure_pauses", "Times that reads from a side stopped.", now.pauses
        )
        yield CounterMetricFamily(
            "amqpgate_throttled", "Times that a rate limit made a side wait.", now.throttled
        )
        yield CounterMetricFamily(
            "amqpgate_datapath_failures", "Exceptions in the data path; each ended one session.", now.failures
        )
        yield _added(*now.latency)
        yield _gauge("connections_open", "Connections of clients, by state.", "state", now.connections)
        yield _gauge(
            "sessions", "Established sessions, by route; the empty one is none.", "route", now.sessions
        )
        yield _versions(now.versions)
        yield _gauge("channels", "Channels of clients, by state.", "state", now.channels)
        yield _gauge(
            "buffered_bytes",
            "Bytes that wait to be sent, by the side that they are for.",
            "side",
            now.buffered,
        )
        yield from _pools(now.pools)
        expiry = GaugeMetricFamily(
            "amqpgate_tls_certificate_expiry_timestamp_seconds",
            "When a listener's certificate expires, in seconds since 1970.",
            labels=["listener", "file"],
        )
        for listener, file, when in now.certificates:
            expiry.add_metric([listener, file], when)
        yield expiry


def _added(counts: Sequence[int], seconds: float) -> Metric:
    """A bound for each doubling: every other one."""
    sums = list(accumulate(counts))
    buckets = [(f"{bound:.4g}", sums[number]) for number, bound in enumerate(ADDED) if number % 2 == 0]
    family = HistogramMetricFamily(
        "amqpgate_added_latency_seconds",
        "How long bytes are in the gateway, at most, as timed of one turn of the data path in many.",
    )
    family.add_metric([], [*buckets, ("+Inf", sums[-1])], seconds)
    return family


def _versions(sessions: Mapping[tuple[str, str], int]) -> Metric:
    family = GaugeMetricFamily(
        "amqpgate_sessions_by_version",
        "Established sessions, by version of AMQP of the client and of the broker.",
        labels=["amqp_version", "upstream_amqp_version"],
    )
    for versions, count in sessions.items():
        family.add_metric(versions, count)
    return family


def _messages(now: Totals) -> Iterator[Metric]:
    labels = ["direction", "operation", "verdict"]
    messages = CounterMetricFamily(
        "amqpgate_messages", "Messages that passed, or were refused.", labels=labels
    )
    byte_count = CounterMetricFamily(
        "amqpgate_message_bytes",
        "Bytes of the bodies of messages that passed whole; of refused ones, what came of them.",
        labels=labels,
    )
    for passage in PASSAGES:
        traffic = now.traffic.get(passage, Traffic())
        messages.add_metric(passage, traffic.messages)
        byte_count.add_metric(passage, traffic.byte_count)
    yield from (messages, byte_count)


def _pools(pools: Mapping[str, PoolUse]) -> Iterator[Metric]:
    by_state = ["upstream", "state"]
    links = GaugeMetricFamily(
        "amqpgate_pool_links", "Connections to brokers that clients share, by state.", labels=by_state
    )
    channels = GaugeMetricFamily(
        "amqpgate_pool_channels", "Channels of connections that clients share, by state.", labels=by_state
    )
    sessions = GaugeMetricFamily(
        "amqpgate_pool_sessions", "Sessions that share connections.", labels=["upstream"]
    )
    waiting = GaugeMetricFamily(
        "amqpgate_pool_waiting", "Sessions that wait for a channel of such a connection.", labels=["upstream"]
    )
    for upstream, use in pools.items():
        for state, count in use.links.items():
            links.add_metric([upstream, state], count)
        for state, count in use.channels.items():
            channels.add_metric([upstream, state], count)
        sessions.add_metric([upstream], use.sessions)
        waiting.add_metric([upstream], use.waiting)
    yield from (links, channels, sessions, waiting)


def _counter(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(f"amqpgate_{name}", text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"amqpgate_{name}", text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
