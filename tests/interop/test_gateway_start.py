"""The first clients of a start: none is reset, whether they come before the port is open or right after."""

from __future__ import annotations

import pytest

from tests.interop.starts import EARLY, outcomes
from tests.support.rabbitmq import RabbitMQ


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_nobody_who_is_taken_is_reset(rabbitmq: RabbitMQ, workers: int) -> None:
    assert outcomes(rabbitmq, 3, workers) == {"served": 3 * EARLY, "exit code 0": 3}
