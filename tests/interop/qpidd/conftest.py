"""One qpidd for all, and a gateway in front of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from tests.interop.brokers import running
from tests.support import qpidd
from tests.support.gateway import Gateway
from tests.support.ports import free_port

#: How the gateway knows what its broker speaks: it is told, or finds out.
WAYS = ("0-10", "auto")

CONFIG = """
listeners: [{listeners}]
upstreams: [{upstreams}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s}}
"""


@pytest.fixture(scope="session")
def broker() -> Iterator[qpidd.Qpidd]:
    """Its users are guest and someone, whose password is "else"."""
    with qpidd.running(users={"guest": "guest", "someone": "else"}) as broker:
        yield broker


@pytest.fixture(scope="session")
def gateways(broker: qpidd.Qpidd) -> Iterator[Mapping[str, int]]:
    """By each of `WAYS` the port of a gateway."""
    ports = {way: free_port() for way in WAYS}
    listeners = [
        f'{{name: "{way}", upstream: "{way}", bind: "127.0.0.1:{port}"}}' for way, port in ports.items()
    ]
    upstreams = [
        f'{{name: "{way}", host: {broker.host}, port: {broker.port}, version: "{way}"}}' for way in WAYS
    ]
    config = CONFIG.format(listeners=", ".join(listeners), upstreams=", ".join(upstreams))
    with running(config) as gateway:
        yield ports
        _check(gateway)


def _check(gateway: Gateway) -> None:
    log = gateway.child.output()
    assert "Traceback" not in log, log[-4000:]
    upstreams = json.loads(gateway.get("/upstreams")[1])["upstreams"]
    spoken = {endpoint["speaks"] for upstream in upstreams for endpoint in upstream["endpoints"]}
    # None if no test asked for it.
    assert spoken <= {"0-10", None}


@pytest.fixture
def port(gateways: Mapping[str, int]) -> int:
    """The gateway that is told what its broker speaks."""
    return gateways["0-10"]
