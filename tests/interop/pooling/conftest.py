"""A way for each test, and a vhost on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.interop.conftest import Answers
from tests.interop.pooling.ways import WAYS, Place, Way, opened
from tests.support.rabbitmq import RabbitMQ

# A session of its own connection is what all other tests are about: here it is compared in the slow suite.
PARAMS = [pytest.param(way, marks=pytest.mark.slow) if way == "own" else way for way in WAYS]


@pytest.fixture(scope="session", params=PARAMS)
def way(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Iterator[Way]:
    with opened(request.param, rabbitmq) as way:
        yield way


@pytest.fixture
def place(request: pytest.FixtureRequest, way: Way) -> Iterator[Place]:
    """In a new vhost, which is deleted with all that is left in it."""
    # As long on every way: RabbitMQ cuts texts off.
    name = request.node.name.replace(way.name, way.name[0], 1)
    vhost = re.sub(r"\W+", "-", name).strip("-")
    way.rabbitmq.fresh_vhost(vhost)
    place = Place(way, vhost)
    try:
        yield place
    finally:
        for client in place.clients:
            client.close()
        way.rabbitmq.eval(f'rabbit_vhost:delete(<<"{vhost}">>, <<"guest">>).')


Same = Callable[[object], None]


@pytest.fixture
def same(request: pytest.FixtureRequest, place: Place, answers: Answers) -> Same:
    """Assert that a value is the same as when this test ran directly; names of vhosts do not count."""
    name = request.node.nodeid.replace(place.way.name, "")

    def check(told: object) -> None:
        text = str(told).replace(place.vhost, "{vhost}")
        answers.same(name, text, through_gateway=place.way.name != "direct")

    return check
