"""Every step of `tests.interop.steps` with every client library, directly and through the gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Protocol

import attrs
import pytest

from tests.interop.clients import aio_pika_async, pika_blocking, pika_select, py_amqp
from tests.interop.clients.scripts import NODE_AMQPLIB, NODE_AMQPLIB_0_10, PHP_AMQPLIB, RUBY_BUNNY
from tests.interop.conftest import Answers
from tests.interop.steps import EXPECTED, Setting, expected


class Driver(Protocol):
    """A client library, as the tests see it."""

    @property
    def name(self) -> str:
        """Name of the library, and of its vhost."""

    @property
    def own(self) -> Mapping[str, object]:
        """What this library shows in another way than the rest: step and expectation."""

    def steps(self) -> list[str]: ...

    def play(self, step: str, at: Setting) -> object: ...


@attrs.frozen
class InProcess:
    """A Python library: a module with a function per step."""

    module: ModuleType

    @property
    def name(self) -> str:
        return self.module.__name__.rpartition(".")[2]

    @property
    def own(self) -> Mapping[str, object]:
        return getattr(self.module, "OWN", {})

    def steps(self) -> list[str]:
        return [step for step in EXPECTED if hasattr(self.module, step)]

    def play(self, step: str, at: Setting) -> object:
        return getattr(self.module, step)(at)


DRIVERS: list[Driver] = [
    *map(InProcess, (pika_blocking, pika_select, aio_pika_async, py_amqp)),
    NODE_AMQPLIB,
    PHP_AMQPLIB,
    RUBY_BUNNY,
]

PLAYS = [
    pytest.param(driver, step, id=f"{driver.name}-{step}") for driver in DRIVERS for step in driver.steps()
] + [
    pytest.param(NODE_AMQPLIB_0_10, step, id=f"{NODE_AMQPLIB_0_10.name}-{step}", marks=pytest.mark.slow)
    for step in NODE_AMQPLIB_0_10.steps()
]


@pytest.mark.usefixtures("litter")
@pytest.mark.parametrize(("driver", "step"), PLAYS)
def test_client(driver: Driver, step: str, setting: Callable[[str], Setting], answers: Answers) -> None:
    at = setting(driver.name)
    seen = driver.play(step, at)
    if step == "connection_list":
        seen = check_connection_list(seen, at)
    elif step == "server":
        assert seen["properties"]["product"] == "RabbitMQ"
    elif step == "header_types":
        sent, got = seen
        assert got == sent
    else:
        assert seen == (driver.own[step] if step in driver.own else expected(step, at.vhost))
    answers.same(f"{driver.name}: {step}", seen, through_gateway=at.through_gateway)


def check_connection_list(rows: list[dict[str, object]], at: Setting) -> dict[str, object]:
    """One connection, with all that the client says of itself, and the gateway's entry if there is one."""
    (row,) = rows
    assert row["user"] == at.user
    told = dict(row["client_properties"])
    assert told["product"]
    entry = told.pop("amqpgate", None)
    if at.through_gateway:
        assert isinstance(entry, dict), "the gateway's own entry is missing"
        assert any("127.0.0.1" in str(value) for value in entry.values()), f"no client address in {entry}"
    else:
        assert entry is None
    return told
