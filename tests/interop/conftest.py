"""Fixtures of the interop suites."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator

import pytest

from tests.interop.steps import Setting
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import DENYING, root_of_4
from tests.support.routes import Route

INTEROP = str(__file__).rpartition("/")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(INTEROP):
            item.add_marker(pytest.mark.interop)


class Vhosts:
    """A fresh vhost per suite and route. The name is the same on both routes: error texts tell it."""

    def __init__(self, rabbitmq: RabbitMQ) -> None:
        self._rabbitmq = rabbitmq
        self._made: set[tuple[str, str]] = set()

    def fresh(self, name: str, route: Route) -> str:
        if (name, route.name) not in self._made:
            self._made.add((name, route.name))
            self._rabbitmq.fresh_vhost(name)
        return name


@pytest.fixture(scope="session")
def vhosts(rabbitmq: RabbitMQ) -> Vhosts:
    return Vhosts(rabbitmq)


@pytest.fixture(scope="session")
def rabbitmq4() -> Iterator[RabbitMQ]:
    """A RabbitMQ 4 that denies what later versions deny."""
    node = RabbitMQ(root=root_of_4(), config=DENYING)
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture
def litter() -> Iterator[None]:
    """Let clients leave sockets to the garbage collector (most do, when a login is refused): not our bug."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@pytest.fixture
def setting(vhosts: Vhosts, route: Route) -> Callable[[str], Setting]:
    """Where the suite of that name plays: its vhost, on the route of this test."""

    def make(name: str) -> Setting:
        return Setting(
            route.host, route.port, vhosts.fresh(name, route), route.through_gateway, route.rabbitmq
        )

    return make


class Answers:
    """What was seen directly, for the comparison with what the same test sees through the gateway."""

    def __init__(self) -> None:
        self._direct: dict[str, object] = {}

    def same(self, what: str, seen: object, *, through_gateway: bool) -> None:
        """Keep `seen`, or (through the gateway) assert that it is what was seen directly."""
        if not through_gateway:
            self._direct[what] = seen
        elif what in self._direct:
            assert seen == self._direct[what], f"{what}: not as without the gateway"


@pytest.fixture(scope="session")
def answers() -> Answers:
    return Answers()
