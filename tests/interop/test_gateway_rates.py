"""Rate limits under load, for one process and for several that share them through a real Redis."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from amqpgate.gateway.limits.token_buckets import LOCAL_BURST
from tests.support.flood import CountingBroker, Flood
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.redis import RedisServer

pytestmark = pytest.mark.slow

#: Messages per second, and seconds.
RATE, BURST = 2000, 1
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: exact}
spec:
  subjects: [{user: guest}]
  limits: [{id: all, per: [user], messages: %d/s, burst: %ds, shared: %s}]
"""
CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: counting, host: 127.0.0.1, port: {broker}}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s, closeTimeout: 1s}}
"""
SHARED = """
sharedLimits:
  redis: redis://127.0.0.1:{port}/0
  password: {password}
  replicas: 2
  whenAway: {away}
  timeout: 300ms
"""


@contextlib.contextmanager
def gateways(folder: Path, broker: CountingBroker, count: int, shared: str = "") -> Iterator[list[Gateway]]:
    policies = folder / "policies"
    policies.mkdir()
    (policies / "rates.yaml").write_text(POLICY % (RATE, BURST, "true" if shared else "false"))
    text = CONFIG.format(broker=broker.door.port, policies=policies) + shared
    running = [Gateway(config=text) for _ in range(count)]
    try:
        for gateway in running:
            gateway.start()
        yield running
    finally:
        for gateway in running:
            gateway.stop()


def passed(broker: CountingBroker, seconds: float) -> tuple[int, float]:
    """Messages that pass from now on, and in how many seconds."""
    since, before = time.monotonic(), broker.messages
    time.sleep(seconds)
    return broker.messages - before, time.monotonic() - since


def is_away(gateway: Gateway) -> bool:
    for family in text_string_to_metric_families(gateway.get("/metrics")[1]):
        for sample in family.samples:
            if sample.name == "amqpgate_shared_limits_away":
                return bool(sample.value)
    raise AssertionError("there is no such metric")


@pytest.mark.parametrize("connections", [1, 200])
def test_what_passes_is_the_limit_and_the_burst(tmp_path: Path, connections: int) -> None:
    """Thirty seconds at three times the limit."""
    with CountingBroker() as broker, gateways(tmp_path, broker, 1) as [gateway]:
        with Flood([gateway.port], connections, 3 * RATE):
            got, seconds = passed(broker, 30)
        expected = RATE * seconds + RATE * BURST
        print(f"{connections} connections: {got} of {expected:.0f}: {got / expected:.4f}")
        assert abs(got / expected - 1) < 0.02


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.destroy()


def shared_by(redis: RedisServer, away: str) -> str:
    return SHARED.format(port=redis.port, password=redis.password, away=away)


def test_two_gateways_share_one_limit(tmp_path: Path, redis: RedisServer) -> None:
    """Together as much as one, give or take a local bucket each: a tenth of a second's rate."""
    shared = shared_by(redis, "closed")
    with CountingBroker() as broker, gateways(tmp_path, broker, 2, shared) as running:
        with Flood([gateway.port for gateway in running], 10, 3 * RATE):
            got, seconds = passed(broker, 20)
        expected = RATE * seconds + RATE * BURST
        print(f"two gateways: {got} of {expected:.0f}: {got / expected:.4f}")
        assert abs(got - expected) < 2 * RATE * LOCAL_BURST + 0.005 * expected


@pytest.mark.parametrize("away", ["local", "closed"])
def test_redis_goes_away_and_comes_back(tmp_path: Path, redis: RedisServer, away: str) -> None:
    shared = shared_by(redis, away)
    with (
        CountingBroker() as broker,
        gateways(tmp_path, broker, 2, shared) as running,
        Flood([gateway.port for gateway in running], 10, 3 * RATE),
    ):
        eventually(lambda: not any(map(is_away, running)))
        redis.kill()
        eventually(lambda: all(map(is_away, running)))
        # What was granted, or saved up for the time on one's own, is spent first.
        time.sleep(1)
        got, seconds = passed(broker, 5)
        print(f"away, {away}: {got / seconds:.0f}/s")
        if away == "local":
            assert 0.9 < got / (RATE * seconds) < 1.1
        else:
            assert got < 0.01 * RATE * seconds
        redis.start()
        eventually(lambda: not any(map(is_away, running)))
        got, seconds = passed(broker, 10)
        # The restarted Redis has forgotten everything: its bucket is full.
        expected = RATE * seconds + RATE * BURST
        print(f"back after {away}: {got} of {expected:.0f}: {got / expected:.4f}")
        assert 0.9 < got / expected < 1.03
