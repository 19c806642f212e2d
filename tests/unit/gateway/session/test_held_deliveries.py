"""What is kept on a channel, and how much that is; what the client sees of it is in `test_channel_flow`."""

from __future__ import annotations

import pytest

from amqpgate.datapath.unacked import Unacked
from amqpgate.gateway.session import held_deliveries
from amqpgate.gateway.session.held_deliveries import HeldBytes, HeldDeliveries, HeldDelivery
from amqpgate.gateway.session.shown_deliveries import ShownDeliveries


def keep(kept: HeldBytes, held: HeldDeliveries, number: int, body: bytes) -> None:
    kept.keep(held, HeldDelivery("c", number, is_acked=False))
    kept.add(held, body)


def test_what_is_taken_does_not_count_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_deliveries, "ROOM", 2000)
    kept = HeldBytes()
    one, two = HeldDeliveries(ShownDeliveries(Unacked())), HeldDeliveries(ShownDeliveries(Unacked()))
    for number in range(1, 100):
        keep(kept, one, number, b"x" * 800)
        assert not kept.are_too_many
        keep(kept, two, number, b"y" * 800)
        assert kept.are_too_many, "of all channels together, and something for each message"
        assert kept.take(one) == b"x" * 800
        assert not kept.are_too_many
        assert kept.take(two) == b"y" * 800


def test_what_is_kept_stays_and_counts() -> None:
    kept, held = HeldBytes(), HeldDeliveries(ShownDeliveries(Unacked()))
    for number in (1, 2, 3):
        keep(kept, held, number, b"%d" % number)
    assert kept.take(held, lambda one: one.number == 2) == b"13"
    assert kept.take(held, lambda _: True) == b""
    assert kept.take(held) == b"2"
    assert kept.take(held) == b""


def test_the_rest_of_what_the_broker_has_again_is_dropped() -> None:
    held = HeldDeliveries(ShownDeliveries(Unacked()))
    first, last = (HeldDelivery("c", number, is_acked=False) for number in (1, 2))
    held.keep(first)
    held.keep(last)
    held.drop_rest_of([first])
    assert not held.is_dropping
    held.drop_rest_of([first, last])
    assert held.is_dropping
    held.begin()
    held.drop_rest_of([last])
    assert not held.is_dropping, "it has come whole"
