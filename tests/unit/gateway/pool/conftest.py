"""Sessions that share a connection, with clients and a broker that are the test itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.gateway.conftest import Stage


@pytest.fixture
def shared(make_stage: Callable[..., Stage]) -> Stage:
    """A gateway whose clients share one connection, on which nothing is opened ahead."""
    # These brokers do not answer when the gateway stops.
    limits = "closeTimeout: 100ms"
    return make_stage(upstream="connections: pooled, pool: {spareChannels: 0, maxLinks: 1}", limits=limits)
