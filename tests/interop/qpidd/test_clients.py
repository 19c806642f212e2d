"""The steps of all clients, as far as qpidd has what they ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
import pytest

from tests.interop.old_clients.clients import CLIENTS, PIKA, At, Saw
from tests.interop.qpidd.conftest import WAYS
from tests.interop.qpidd.expected import NOT_PLAYED, compared
from tests.interop.steps import Setting, expected
from tests.interop.test_clients import DRIVERS, Driver
from tests.support.missing import missing
from tests.support.qpidd import Qpidd

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("litter")]

PLAYS = [
    pytest.param(driver, step, id=f"{driver.name}-{step}")
    for driver in DRIVERS
    for step in driver.steps()
    if step not in NOT_PLAYED
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("driver", "step"), PLAYS)
def test_client(driver: Driver, step: str, way: str, gateways: Mapping[str, int], broker: Qpidd) -> None:
    at = Setting("127.0.0.1", gateways[way], driver.name, True, broker)  # type: ignore[arg-type]
    must = driver.own[step] if step in driver.own else expected(step, at.vhost)
    assert compared(step, driver.play(step, at)) == compared(step, must)


@attrs.frozen
class Here(At):
    """Where the operator publishes through the gateway, too."""

    @property
    def operators_port(self) -> int:
        return self.port


@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if client is not PIKA])
@pytest.mark.parametrize("way", WAYS)
def test_old_client(name: str, way: str, gateways: Mapping[str, int], broker: Qpidd) -> None:
    client = CLIENTS[name]
    lack = client.lacks()
    if lack is not None:
        missing(lack)
    at = Here("127.0.0.1", gateways[way], name, True, broker)  # type: ignore[arg-type]
    steps = [step for step in client.expected if step not in NOT_PLAYED]
    seen = client.play(at, steps)
    # Who does not take a close then hears it, unlike from RabbitMQ.
    expectations = {**client.expected, "wrong_password": [403]}
    for step, outcome in seen.items():
        assert isinstance(outcome, Saw), f"{step}: {outcome.text}"
        must = json.loads(json.dumps(expectations[step]).replace("{vhost}", at.vhost))
        assert compared(step, outcome.value) == compared(step, must), step
