"""What is looked at all the time finds what it looks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.simulation.checks import Checks
from tests.simulation.client import PATIENCE
from tests.simulation.clock import Clock
from tests.simulation.entries import Delivery
from tests.simulation.held import Channel
from tests.simulation.ledger import Ledger, Violation

from .test_ledger import delivered

if TYPE_CHECKING:
    from tests.simulation.world import World


def looked_at(delivery: Delivery, seconds: float) -> None:
    """While a broker holds it for so long."""
    channel = Channel(1, held={1: (delivery, None)})
    broker = SimpleNamespace(queues={}, ends=[SimpleNamespace(channels={1: channel})])
    clock = Clock()
    world = SimpleNamespace(
        clock=clock, clients=[], brokers={"a": broker}, life=None, is_ending=False, is_over=False
    )
    Checks(cast("World", world)).begin()
    end = clock.now + seconds
    while clock.now < end:
        clock.fire()
        clock.jump(end)


def test_no_broker_waits_for_what_its_client_has_said() -> None:
    ledger = Ledger()
    consumer, (delivery,) = delivered(ledger)
    looked_at(delivery, 3 * PATIENCE)
    ledger.hear(consumer, "c", "q0", 1, False, ledger.content_of(delivery))
    looked_at(delivery, 3 * PATIENCE)
    ledger.answer(consumer, 1, "ack", multiple=False)
    looked_at(delivery, PATIENCE)
    with pytest.raises(Violation, match="waits for the settlement of delivery 1"):
        looked_at(delivery, PATIENCE + 60)
