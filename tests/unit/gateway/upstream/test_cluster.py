"""Which endpoint comes first, when one is left out, and what second attempts cost. No clock runs here."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpgate.config import parse
from amqpgate.errors import ConfigError
from amqpgate.gateway.upstream.cluster import Cluster, EndpointHealth
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.clusters import cluster
from tests.unit.gateway.conftest import Stage


def ports(endpoints: list[EndpointHealth]) -> list[int]:
    return [endpoint.address.port for endpoint in endpoints]


def fail(of: Cluster, endpoint: EndpointHealth, times: int, now: float = 0.0) -> int:
    """How many of so many failures ejected it."""
    return sum(of.failed(endpoint, now) for _ in range(times))


def test_listed_order_is_failover() -> None:
    it = cluster()
    assert [ports(it.order(str(n), 0.0)) for n in range(20)] == [[1, 2, 3]] * 20


def test_no_more_are_tried_than_there_are_attempts() -> None:
    assert ports(cluster("retries: {attempts: 2}").order("s", 0.0)) == [1, 2]


def test_weights_are_kept_and_the_choice_is_the_sessions() -> None:
    it = cluster("order: weighted", endpoints="h:1*1 h:2*3 h:3*6")
    first = Counter(ports(it.order(f"session-{n}", 0.0))[0] for n in range(10_000))
    for port, share in ((1, 0.1), (2, 0.3), (3, 0.6)):
        assert abs(first[port] / 10_000 - share) < 0.02
    other = cluster("order: weighted", endpoints="h:3*6 h:1*1 h:2*3")
    assert all(ports(it.order(f"{n}", 0.0)) == ports(other.order(f"{n}", 0.0)) for n in range(200))


def test_who_loses_its_endpoint_does_not_move_the_others() -> None:
    it = cluster("order: weighted, health: {}")
    before = {n: ports(it.order(str(n), 0.0)) for n in range(300)}
    it.endpoints[1].up = False
    for n, order in before.items():
        left = [port for port in order if port != 2]
        assert ports(it.order(str(n), 0.0)) == [*left, 2]


def test_what_is_down_comes_last_but_is_not_forgotten() -> None:
    it = cluster("health: {failures: 2, successes: 2}")
    first = it.endpoints[0]
    assert not it.checked(first, False)
    assert ports(it.order("s", 0.0)) == [1, 2, 3]
    assert it.checked(first, False)
    assert ports(it.order("s", 0.0)) == [2, 3, 1]
    assert not it.checked(first, True)
    # A doubt that is not confirmed counts for nothing later.
    assert not it.checked(first, False)
    assert not it.checked(first, True)
    assert it.checked(first, True)
    assert ports(it.order("s", 0.0)) == [1, 2, 3]


def test_who_is_seen_to_come_up_is_not_ejected_any_more() -> None:
    it = cluster("health: {failures: 1}, outliers: {failures: 1}")
    first = it.endpoints[0]
    assert fail(it, first, 1) == 1
    assert it.checked(first, False)
    assert it.checked(first, True)
    assert ports(it.order("s", 1.0)) == [1, 2, 3]


OUTLIERS = "outliers: {failures: 3, baseEjection: 10s, maxEjection: 25s, maxEjected: 67}"


def test_an_outlier_is_ejected_and_returns_on_probation() -> None:
    it = cluster(OUTLIERS)
    first = it.endpoints[0]
    assert fail(it, first, 2) == 0
    first.succeeded()
    assert fail(it, first, 2) == 0
    assert fail(it, first, 1) == 1
    assert ports(it.order("s", 9.9)) == [2, 3, 1]
    assert ports(it.order("s", 10.0)) == [1, 2, 3]
    # Back, and failing at once: twice as long, up to the longest.
    assert fail(it, first, 1, now=11.0) == 1
    assert (first.ejected_until, fail(it, first, 5, now=20.0)) == (31.0, 0)
    assert fail(it, first, 1, now=31.0) == 1
    assert first.ejected_until == 31.0 + 25.0
    # Well for long: as at first.
    first.succeeded()
    assert fail(it, first, 3, now=200.0) == 1
    assert first.ejected_until == 210.0


@pytest.mark.parametrize(("share", "ejected"), [(0, 0), (33, 0), (34, 1), (67, 2), (100, 3)])
def test_only_a_share_is_ejected(share: int, ejected: int) -> None:
    it = cluster(OUTLIERS.replace("67", str(share)))
    assert [fail(it, endpoint, 5) for endpoint in it.endpoints] == [1] * ejected + [0] * (3 - ejected)


def test_a_single_endpoint_is_never_ejected_by_default() -> None:
    it = cluster(endpoints="h:1")
    assert fail(it, it.endpoints[0], 100) == 0


def test_a_broker_that_is_gone_takes_its_start_along() -> None:
    it = cluster()
    for endpoint in it.endpoints:
        endpoint.starts.heard("auto", amqp.ConnectionStart(), 0.0)
    assert all(endpoint.starts.known("auto", 1.0) for endpoint in it.endpoints)
    it.lost()
    assert not any(endpoint.starts.known("auto", 1.0) for endpoint in it.endpoints)


def test_a_session_whose_broker_is_gone_has_the_next_client_ask(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.close()
    client.expect(amqp.ConnectionClose)
    client.say(amqp.ConnectionCloseOk())
    stage.running.wait_idle()
    newcomer = stage.client()
    newcomer.raw(amqp.PROTOCOL_HEADER)
    # It has not heard of a start from before: the broker is there to say its own.
    stage.broker().greet()
    newcomer.expect(amqp.ConnectionStart)


def test_second_attempts_are_paid_for() -> None:
    it = cluster("retries: {ratio: 50, burst: 3}")
    assert [it.may_retry() for _ in range(4)] == [True, True, True, False]
    made = 0
    for n in range(100):
        it.order(str(n), 0.0)
        made += it.may_retry()
    assert made == 50
    # What is saved up has an end.
    for n in range(100):
        it.order(str(n), 0.0)
    assert [it.may_retry() for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        ("url: amqp://h, endpoints: [{address: 'h:1'}]", "write vhost, user and tls as keys"),
        ("host: other, endpoints: [{address: 'h:1'}]", "leave out host and port"),
        ("endpoints: [{address: 'h:1'}, {address: 'h:1'}]", "h:1 is listed already"),
        ("endpoints: [{address: 'h:0'}]", "no port 0"),
        ("endpoints: [{address: 'h:1', weight: 0}]", "between 1 and 1000"),
        ("host: h, retries: {attempts: 0}", "between 1 and 100"),
    ],
)
def test_refused_settings(upstream: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(f"listeners: [{{name: m, bind: '127.0.0.1:0'}}]\nupstreams: [{{name: c, {upstream}}}]\n", {})
