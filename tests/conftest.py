"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from tests.support.gateway import Gateway
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ, script_folder
from tests.support.routes import Route

ROUTES = ("direct", "gateway")

# The one profile of Hypothesis: 100 examples, without a deadline, for how long an example takes says more of
# the machine than of the code. A test that needs other numbers says why above its `@settings`. Continuous
# integration draws the same examples each time; chance looks for new ones wherever else the tests run.
settings.register_profile("amqpgate", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("amqpgate")

#: In the environment: further settings of the gateway that the suites share.
SETTINGS = "AMQPGATE_TEST_SETTINGS"
CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbitmq, url: "amqp://%s"}]
admin: {bind: "127.0.0.1:{admin_port}"}
%s
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--route",
        action="append",
        choices=ROUTES,
        help="run the client suites on this way to the broker only (default: both)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "route" in metafunc.fixturenames:
        metafunc.parametrize(
            "route", metafunc.config.getoption("--route") or ROUTES, indirect=True, scope="session"
        )


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """A private RabbitMQ node that the whole run shares: don't kill it, leave nothing in its vhost `/`."""
    yield from _node(RabbitMQ)


@pytest.fixture
def own_rabbitmq() -> Iterator[RabbitMQ]:
    """A private RabbitMQ node for one test, which may kill and restart it (4 s to start)."""
    yield from _node(RabbitMQ)


def _node(make: Callable[[], RabbitMQ]) -> Iterator[RabbitMQ]:
    if script_folder() is None:
        missing("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    node = make()
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture(scope="session")
def gateway(rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    """A gateway without policies in front of `rabbitmq`, shared by the whole run."""
    gateway = Gateway(config=CONFIG % (rabbitmq.address, os.environ.get(SETTINGS, "")))
    gateway.start()
    yield gateway
    ended = gateway.stop()
    assert ended.code == 0, f"exit code {ended.code} after SIGTERM\n{ended.log[-4000:]}"


@pytest.fixture(scope="session")
def route(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Route:
    """`direct` to the broker, or through the `gateway`; tests that ask for it run once for each."""
    if request.param == "direct":
        return Route("direct", rabbitmq.host, rabbitmq.port, rabbitmq)
    gateway: Gateway = request.getfixturevalue("gateway")
    return Route("gateway", gateway.host, gateway.port, rabbitmq)
