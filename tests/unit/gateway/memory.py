"""What is in memory, where Python does not look for cycles by itself."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest


class Cycle:
    """One that keeps itself alive."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Python does not look for cycles by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def living(kind: type) -> int:
    """How many there are in memory, whether anything leads there or not."""
    return sum(type(one) is kind for one in gc.get_objects())


def held() -> Counter[str]:
    """How many objects of amqpgate's classes lead from somewhere, by the names of their classes."""
    gc.collect()
    return in_memory()


def in_memory() -> Counter[str]:
    """The same of all that are in memory, whether anything leads there or not."""
    kinds = [type(one) for one in gc.get_objects()]
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("amqpgate."))
