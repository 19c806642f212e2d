"""What is over is looked for, and what is free goes back to the system."""

from __future__ import annotations

import math
import sys
import weakref

import pytest

from amqpgate.gateway.server import housekeeping, memory_keeping
from amqpgate.gateway.server.housekeeping import Housekeeping
from amqpgate.gateway.server.memory_keeping import MemoryKeeping
from amqpgate.gateway.transport.memory_trim import MANY, MANY_BLOCKS
from tests.support.inprocess import eventually
from tests.unit.gateway.audited import MakeStage, audited
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.memory import Cycle, uncollected

__all__ = ["audited", "uncollected"]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is short."""
    monkeypatch.setattr(housekeeping, "INTERVAL", 0.01)


def uncollected_cycle() -> weakref.ref[Cycle]:
    """One that Python frees when it looks for cycles."""
    return weakref.ref(Cycle())


def memory_of(stage: Stage) -> MemoryKeeping:
    (found,) = (
        run.__self__
        for run in stage.running.gateway.services
        if isinstance(getattr(run, "__self__", None), Housekeeping)
    )
    return found.memory


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
    keeping = memory_of(stage)

    def ebbed() -> bool:
        keeping._tide.rise(2 * MANY)
        return cycle() is None

    eventually(lambda: stage.running.call(ebbed))


def test_memory_goes_back_when_much_has_become_free_and_once_more_when_it_is_written(
    audited: MakeStage,
) -> None:
    stage = audited()
    keeping = memory_of(stage)
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
    monkeypatch.setattr(memory_keeping, "give_back", lambda: trims.append(True))
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    cycle = uncollected_cycle()
    stage = make_stage()
    looked = memory_of(stage)._blocks
    eventually(lambda: looked._peak == blocks)
    assert not trims
    assert cycle() is not None
    blocks = MANY_BLOCKS
    eventually(lambda: trims == [True])
    assert cycle() is None
