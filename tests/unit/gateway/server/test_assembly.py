"""A gateway is made of what its settings ask for, and of nothing that another gateway has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from amqpgate.config import parse
from amqpgate.gateway.limits.distributed import DistributedLimits
from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.server import assembly
from amqpgate.gateway.server.assembly import build
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.server.housekeeping import Housekeeping
from amqpgate.policy import PolicySet
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.metrics import sample_value
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.session.test_registry import allowing

#: Whether what pools are made of is there before and after that, in a new process.
LOADS = """
import sys
from amqpgate.gateway.pool.registry import load
has = lambda: "amqpgate.gateway.pool.pooled_upstream" in sys.modules
print(has(), load() or has())
"""
PLAIN = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}, {name: c, host: c}]\n"
PLAIN = PLAIN.replace("'localhost:0'", "'localhost:0', upstream: b")


@pytest.fixture
def made() -> Iterator[list[Gateway]]:
    """Those that were built, whose descriptors are closed."""
    gateways: list[Gateway] = []
    yield gateways
    for gateway in gateways:
        gateway.pump.close()
        gateway.registry.fibers.close()


def assemble(made: list[Gateway], more: str = "", policies: PolicySet | None = None) -> Gateway:
    made.append(build(parse(PLAIN + more, {}), policies or PolicySet.empty(), "1.2.3"))
    return made[-1]


def services(gateway: Gateway) -> set[type]:
    """Whose tasks run while the gateway does."""
    return {type(run.__self__) for run in gateway.services if hasattr(run, "__self__")}


def test_what_is_not_asked_for_is_not_there(made: list[Gateway]) -> None:
    plain = assemble(made)
    assert (plain.observers.audit, plain.observers.tracer) == (None, None)
    assert Housekeeping in services(plain)
    assert not {AuditTrail, DistributedLimits} & services(plain)
    # One for each upstream, which ends at once where there is nothing to check.
    assert sum(isinstance(run, partial) for run in plain.services) == 2


def test_what_is_asked_for_is_there_and_runs(made: list[Gateway]) -> None:
    asked = assemble(
        made,
        "audit: {format: json}\n"
        "sharedLimits: {redis: 'redis://localhost:1', replicas: 2}\n"
        "tracing: {endpoint: 'http://localhost:1'}\n",
    )
    assert asked.observers.audit is not None
    assert asked.observers.tracer is not None
    assert {AuditTrail, DistributedLimits} <= services(asked)
    assert asked.services[0] == asked.observers.audit.run


def test_pools_are_loaded_at_the_start_where_connections_are_shared(
    made: list[Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no login waits for it."""
    loaded: list[str] = []
    monkeypatch.setattr(assembly, "load", lambda: loaded.append("pools"))
    assemble(made)
    assert not loaded
    shared = PLAIN.replace("{name: c, host: c}", "{name: c, host: c, connections: pooled}")
    made.append(build(parse(shared, {}), PolicySet.empty(), "1.2.3"))
    assert loaded == ["pools"]
    seen = subprocess.run([sys.executable, "-c", LOADS], check=True, capture_output=True, text=True)
    assert seen.stdout == "False True\n"


def test_two_gateways_of_a_process_share_nothing(made: list[Gateway]) -> None:
    one = assemble(made, policies=allowing("mine"))
    other = assemble(made, "limits: {maxConnections: 7}\n")
    assert one.policies.digest != other.policies.digest
    assert one.metrics.registry is not other.metrics.registry
    value = "amqpgate_connections_limit"
    found = [sample_value(gateway.metrics.registry, value) for gateway in (one, other)]
    assert found[1] == 7 != found[0]
    assert not one.router.clusters.keys() ^ other.router.clusters.keys()
    assert all(one.router.clusters[name] is not other.router.clusters[name] for name in one.router.clusters)


def test_a_session_whose_broker_is_gone_is_told_to_its_cluster_and_no_other(stage: Stage) -> None:
    client, broker = stage.opened()
    (cluster,) = stage.running.gateway.router.clusters.values()
    (endpoint,) = cluster.endpoints
    assert endpoint.starts.met
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    client.close()
    broker.close()
    stage.running.wait_idle()
    # That was agreed.
    assert endpoint.starts.met
    client, broker = stage.opened()
    broker.close()
    client.expect(amqp.ConnectionClose)
    client.close()
    stage.running.wait_idle()
    assert not endpoint.starts.met
