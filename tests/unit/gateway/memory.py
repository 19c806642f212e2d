"""What is in memory, where Python does not look for cycles by itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


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
