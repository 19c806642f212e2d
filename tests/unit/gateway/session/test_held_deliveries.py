"""What is kept on a channel, and how much that is; what the client sees of it is in `test_channel_flow`."""

from __future__ import annotations

import pytest

from amqpgate.datapath.unacked import Unacked
from amqpgate.gateway.session import held_deliveries
from amqpgate.gateway.session.held_deliveries import HeldBytes, HeldDeliveries, HeldDelivery


def keep(kept: HeldBytes, held: HeldDeliveries, number: int, body: bytes) -> None:
    kept.keep(held, HeldDelivery("c", number, is_acked=False))
    kept.add(held, body)


def test_what_is_taken_does_not_count_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_deliveries, "ROOM", 2000)
    kept = HeldBytes()
    one, two = HeldDeliveries(Unacked()), HeldDeliveries(Unacked())
    for number in range(1, 100):
        keep(kept, one, number, b"x" * 800)
        assert not kept.are_too_many
        keep(kept, two, number, b"y" * 800)
        assert kept.are_too_many, "of all channels together, and something for each message"
        assert kept.take(one) == b"x" * 800
        assert not kept.are_too_many
        assert kept.take(two) == b"y" * 800


def test_what_is_kept_stays_and_counts() -> None:
    kept, held = HeldBytes(), HeldDeliveries(Unacked())
    for number in (1, 2, 3):
        keep(kept, held, number, b"%d" % number)
    assert kept.take(held, lambda one: one.number == 2) == b"13"
    assert kept.take(held, lambda _: True) == b""
    assert kept.take(held) == b"2"
    assert kept.take(held) == b""


def test_the_rest_of_what_the_broker_has_again_is_dropped() -> None:
    held = HeldDeliveries(Unacked())
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


def test_a_rollback_makes_due_what_was_acked_and_an_ack_of_several_takes_a_part_of_it() -> None:
    held = HeldDeliveries(Unacked())
    held.begin_transaction()
    for tag in range(1, 5):
        held.delivered(tag)
    for tag in (1, 3):
        held.out.settled(tag, False)
    held.delivered(5)
    held.roll_back()
    held.out.settled(2, True)
    assert (held.out.count, held.count(transacts=True), held.top()) == (3, 5, 5)
    held.begin_transaction()
    held.roll_back()
    assert held.count(transacts=True) == 3, "what was committed stays so"


def test_a_rollback_of_what_is_not_known_that_well() -> None:
    held = HeldDeliveries(Unacked())
    held.begin_transaction()
    held.delivered(1)
    held.recover()
    held.delivered(2)
    held.out.settled(2, False)
    held.roll_back()
    assert held.out.count == 1
