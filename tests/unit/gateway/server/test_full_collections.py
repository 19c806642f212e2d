"""Python looks for cycles among all that lives when there is much more of everything, and not of itself."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from collections.abc import Iterator

import pytest

from amqpgate.gateway.server.full_collections import LONG, FullCollections
from tests.unit.gateway.memory import Cycle, uncollected

__all__ = ["uncollected"]

pytestmark = pytest.mark.usefixtures("uncollected")


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_what_is_over_is_freed_where_there_is_a_quarter_more_of_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = 1000
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    collections = FullCollections()
    collections.begin()
    kept = weakref.ref(Cycle())
    then = time.monotonic() + LONG
    collections.look(then)
    assert kept() is not None
    blocks = 1251
    collections.look(then - LONG / 2)
    assert kept() is not None, "the last one was not long ago"
    collections.look(then)
    assert kept() is None
    kept = weakref.ref(Cycle())
    collections.look(then + LONG)
    assert kept() is not None, "there is as much as after the last one"


def test_until_they_are_begun_they_are_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    collections = FullCollections()
    kept = weakref.ref(Cycle())
    collections.look(time.monotonic() + LONG)
    assert kept() is not None
    young, middle, _ = gc.get_threshold()
    collections.begin()
    assert gc.get_threshold()[:2] == (young, middle)
    assert gc.get_threshold()[2] > 1_000_000
