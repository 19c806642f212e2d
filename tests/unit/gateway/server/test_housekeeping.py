"""What time alone brings about in a gateway: what is looked at, forgotten, and given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from amqpgate.datapath import reserve
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.server import housekeeping
from amqpgate.telemetry.faults import FAULTS, PARTS
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import audited
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.memory import uncollected

__all__ = ["audited", "uncollected"]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is short."""
    monkeypatch.setattr(housekeeping, "INTERVAL", 0.01)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = dict.fromkeys(PARTS, 0)
    monkeypatch.setattr(FAULTS, "counts", counts)
    return cast("dict[str, int]", counts)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("of", ["rates", "failures"])
def test_a_look_back_that_fails(make_stage: Callable[..., Stage], faults: dict[str, int], of: str) -> None:
    stage = make_stage()
    gateway = stage.running.gateway

    def spoil() -> None:
        if of == "rates":
            gateway.observers.rates._last = cast("Any", object())
        else:
            failures = gateway.acceptor.failures
            failures._told, failures._outcomes = 1, cast("Any", {"refused": 1})

    stage.running.call(spoil)
    eventually(lambda: sum(faults.values()) > 3)
    stage.opened()


@pytest.mark.usefixtures("often")
def test_a_look_at_a_session_that_fails_keeps_nothing_else_from_its_time(
    make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, faults: dict[str, int]
) -> None:
    forgotten: list[float] = []

    async def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(housekeeping, "look", fails)
    monkeypatch.setattr(TokenBuckets, "forget", lambda _, now: forgotten.append(now))
    stage = make_stage()
    stage.opened()
    eventually(lambda: len(forgotten) > 3)
    assert faults["metrics"] > 2


@pytest.mark.usefixtures("often")
def test_it_is_not_ready_while_memory_is_short_and_says_so_once(
    make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_short = False
    monkeypatch.setattr(reserve, "is_short", lambda: is_short)
    gateway = make_stage().running.gateway
    eventually(lambda: gateway.ready)
    is_short = True
    eventually(lambda: not gateway.ready)
    is_short = False
    eventually(lambda: gateway.ready)
    told = [record.message for record in caplog.records if record.message.startswith("memory is")]
    assert [message.partition(":")[0] for message in told] == ["memory is short", "memory is there again"]
