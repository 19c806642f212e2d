"""What time alone brings about in a gateway: what is looked at, forgotten, and given back."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable
from typing import Any, cast

import pytest

from amqpgate.datapath import reserve
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.server import housekeeping
from amqpgate.gateway.server.housekeeping import Housekeeping
from amqpgate.gateway.transport.memory_trim import MANY, MANY_BLOCKS
from amqpgate.telemetry.faults import FAULTS, PARTS
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import MakeStage, audited
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


class Cycle:
    """One that keeps itself alive."""

    def __init__(self) -> None:
        self.itself = self


def uncollected_cycle() -> weakref.ref[Cycle]:
    """One that Python frees when it looks for cycles."""
    return weakref.ref(Cycle())


def housekeeping_of(stage: Stage) -> Housekeeping:
    (found,) = (
        run.__self__
        for run in stage.running.gateway.services
        if isinstance(getattr(run, "__self__", None), Housekeeping)
    )
    return found


@pytest.mark.usefixtures("uncollected")
def test_cycles_are_freed_when_most_sessions_are_gone(make_stage: MakeStage) -> None:
    """A session is none, but what only some of them have may be."""
    stage = make_stage()
    clients = [stage.opened()[0] for _ in range(4)]
    for client in clients:
        client.close()
    stage.running.wait_idle()
    cycle = uncollected_cycle()
    assert cycle() is not None
    keeping = housekeeping_of(stage)

    def ebbed() -> bool:
        keeping._tide.rise(2 * MANY)
        return cycle() is None

    eventually(lambda: stage.running.call(ebbed))


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


def test_memory_goes_back_when_much_has_become_free_and_once_more_when_it_is_written(
    audited: MakeStage,
) -> None:
    stage = audited()
    keeping = housekeeping_of(stage)
    audit = keeping.settings.audit
    assert audit is not None

    def ebbs() -> list[bool]:
        keeping._tide.rise(2 * MANY)
        keeping._again = math.inf
        first, second = keeping._has_ebbed(), keeping._has_ebbed()
        # The records of what they have done are written by then.
        assert keeping._again < math.inf
        keeping._again = 0.0
        return [first, second, keeping._has_ebbed(), keeping._has_ebbed()]

    assert stage.running.call(ebbs) == [True, False, True, False]


@pytest.mark.usefixtures("often", "uncollected")
def test_memory_goes_back_when_few_sessions_have_had_much(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    trims: list[bool] = []
    blocks = 10 * MANY_BLOCKS
    monkeypatch.setattr(housekeeping, "give_back", lambda: trims.append(True))
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    cycle = uncollected_cycle()
    stage = make_stage()
    looked = housekeeping_of(stage)._blocks
    eventually(lambda: looked._peak == blocks)
    assert not trims
    assert cycle() is not None
    blocks = MANY_BLOCKS
    eventually(lambda: trims == [True])
    assert cycle() is None
