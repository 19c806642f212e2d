"""Sessions that are traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.otlp import Collector
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.traced import ALL, SETTINGS, MakeStage


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture
def traced(collector: Collector, make_stage: MakeStage) -> Callable[..., Stage]:
    def make(policies: str = ALL, *, queue: int = 1000) -> Stage:
        return make_stage(text=SETTINGS % (collector.endpoint, queue), policies=policies)

    return make
