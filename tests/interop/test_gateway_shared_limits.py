"""Limits shared through a real Redis: by workers, over TLS, and with a Redis that is not to be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pika
import pika.exceptions
import pytest
import trustme
from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.redis import RedisServer

pytestmark = pytest.mark.interop

#: A bucket that fills so slowly that what a test sees is its burst.
BURST = 20
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: connections}
spec:
  subjects: [{user: guest}]
  limits: [{id: all, per: [user], logins: 20/h, burst: 3600s, action: reject, shared: true}]
"""
CONFIG = """
workers: 2
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{broker}"}}]
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
sharedLimits: {{redis: "{redis}", password: {password}, replicas: 2, whenAway: closed, timeout: 1s{ca}}}
"""


@pytest.fixture
def started(
    rabbitmq: RabbitMQ, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[RedisServer, str], Gateway]:
    def start(redis: RedisServer, ca: str = "") -> Gateway:
        policies = tmp_path / "policies"
        policies.mkdir()
        (policies / "rates.yaml").write_text(POLICY)
        gateway = Gateway(
            config=CONFIG.format(
                broker=rabbitmq.address,
                policies=policies,
                redis=f"{'rediss' if redis.tls else 'redis'}://127.0.0.1:{redis.port}",
                password=redis.password,
                ca=ca and f", ca: {ca}",
            )
        )
        request.addfinalizer(gateway.stop)
        gateway.start()
        return gateway

    return start


def away(gateway: Gateway) -> float:
    for family in text_string_to_metric_families(gateway.get("/metrics")[1]):
        for sample in family.samples:
            if sample.name == "amqpgate_shared_limits_away":
                return float(sample.value)
    raise LookupError("amqpgate_shared_limits_away")


def logins(gateway: Gateway, attempts: int) -> int:
    """How many of so many come in."""
    let_in = 0
    for _ in range(attempts):
        try:
            pika.BlockingConnection(pika.URLParameters(gateway.url)).close()
            let_in += 1
        except pika.exceptions.AMQPConnectionError:
            pass
    return let_in


def with_papers(folder: Path, name: str) -> RedisServer:
    """A Redis whose certificate says that name; who signed it is in ca.pem."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    issued = ca.issue_cert(name)
    issued.cert_chain_pems[0].write_to_path(folder / "redis.pem")
    issued.private_key_pem.write_to_path(folder / "redis.key")
    trustme.CA().cert_pem.write_to_path(folder / "stranger.pem")
    return RedisServer(tls=(folder / "redis.pem", folder / "redis.key", folder / "ca.pem"))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_workers_share_a_limit(
    tmp_path: Path, started: Callable[..., Gateway], request: pytest.FixtureRequest, tls: bool
) -> None:
    redis = with_papers(tmp_path, "127.0.0.1") if tls else RedisServer()
    request.addfinalizer(redis.destroy)
    redis.start()
    gateway = started(redis, str(tmp_path / "ca.pem") if tls else "")
    eventually(lambda: away(gateway) == 0)
    let_in = logins(gateway, 3 * BURST)
    # Each of two workers on its own would let in that many.
    assert 0.8 * BURST <= let_in <= BURST + 2


@pytest.mark.parametrize(
    ("name", "trusted"), [("127.0.0.1", "stranger.pem"), ("redis.example", "ca.pem")], ids=["signer", "name"]
)
def test_a_redis_that_cannot_be_trusted_is_away(
    tmp_path: Path, started: Callable[..., Gateway], request: pytest.FixtureRequest, name: str, trusted: str
) -> None:
    redis = with_papers(tmp_path, name)
    request.addfinalizer(redis.destroy)
    redis.start()
    gateway = started(redis, str(tmp_path / trusted))
    eventually(lambda: "certificate verify failed" in gateway.child.output())
    assert away(gateway) == 2  # workers
