"""What tests of sessions share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import POLICIES


@pytest.fixture
def guarded(make_stage: Callable[..., Stage]) -> Stage:
    """A stage whose policy allows exchanges that begin with ok, and queues that begin with mine."""
    return make_stage(policies=POLICIES)
