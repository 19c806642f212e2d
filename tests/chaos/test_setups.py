"""What clients are told of each set-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.setups import QUEUES, SETUPS, World, named
from tests.chaos.wires import Wires


@pytest.mark.parametrize("broker", QUEUES)
@pytest.mark.parametrize("name", SETUPS)
def test_somebody_publishes_to_each_queue(name: str, broker: str) -> None:
    """Else its consumers get nothing, and the set-up counts as stuck."""
    wires = Wires()
    try:
        plan = World(named(f"{name}@{broker}"), Path(), [], wires, [], []).plan(1, 0)
    finally:
        wires.close()
    # Those with confirms publish to each one in turn, each transaction to one.
    by_transactions = plan.tx_queues[: plan.transactions]
    assert plan.publishers or set(by_transactions) == set(plan.queues)
