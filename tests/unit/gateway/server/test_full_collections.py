"""Python looks for cycles among all that lives when sessions have ended, and not of itself."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from amqpgate.gateway.handshake.accept import Connections
from amqpgate.gateway.server.full_collections import FEW, LONG, FullCollections
from amqpgate.telemetry.metrics import Metrics
from tests.unit.gateway.memory import uncollected

__all__ = ["uncollected"]


class Cycle:
    """One that keeps itself alive."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.fixture
def connections() -> Connections:
    return Connections(10_000, Metrics(lambda: None))


def end(connections: Connections, count: int) -> None:
    for _ in range(count):
        connections.begun()
        connections.ended("closed")


@pytest.mark.usefixtures("uncollected")
def test_what_is_over_is_freed_once_there_is_as_much_of_it_as_lives(connections: Connections) -> None:
    live = dict.fromkeys(range(3 * FEW))
    collections = FullCollections(connections, live)
    collections.begin()
    kept = weakref.ref(Cycle())
    end(connections, len(live) - 1)
    collections.look(1.0)
    assert kept() is not None
    end(connections, 1)
    collections.look(2.0)
    assert kept() is None
    kept = weakref.ref(Cycle())
    collections.look(3.0)
    assert kept() is not None, "none has ended since"


@pytest.mark.usefixtures("uncollected")
def test_where_nobody_has_begun_them_they_are_pythons(connections: Connections) -> None:
    collections = FullCollections(connections, {})
    kept = weakref.ref(Cycle())
    end(connections, FEW)
    collections.look(1.0)
    assert kept() is not None
    young, middle, _ = gc.get_threshold()
    collections.begin()
    assert gc.get_threshold()[:2] == (young, middle)
    assert gc.get_threshold()[2] > 1_000_000


def test_few_that_are_over_are_worth_none(connections: Connections) -> None:
    collections = FullCollections(connections, {})
    collections._note(0.0)
    end(connections, FEW - 1)
    assert not collections._is_due(1.0)
    end(connections, 1)
    assert collections._is_due(1.0)


def test_where_there_is_much_more_of_everything_one_is_due_in_the_end(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = FullCollections(connections, {})
    blocks = 1000
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    collections._note(0.0)
    assert not collections._is_due(LONG)
    blocks = 1251
    assert not collections._is_due(LONG - 1)
    assert collections._is_due(LONG)
