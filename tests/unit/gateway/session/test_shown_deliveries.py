"""What a client has and has not acknowledged: transactions, and what is not known well."""

from __future__ import annotations

from amqpgate.datapath.unacked import Unacked
from amqpgate.gateway.session.shown_deliveries import ShownDeliveries


def test_a_rollback_makes_due_what_was_acked_and_an_ack_of_several_takes_a_part_of_it() -> None:
    shown = ShownDeliveries(Unacked())
    shown.begin_transaction()
    for tag in range(1, 5):
        shown.delivered(tag)
    for tag in (1, 3):
        shown.unacked.settled(tag, False)
    shown.delivered(5)
    shown.roll_back()
    shown.unacked.settled(2, True)
    assert (shown.unacked.count, shown.count(transacts=True), shown.top()) == (3, 5, 5)
    shown.begin_transaction()
    shown.roll_back()
    assert shown.count(transacts=True) == 3, "what was committed stays so"


def test_a_rollback_of_what_is_not_known_that_well() -> None:
    shown = ShownDeliveries(Unacked())
    shown.begin_transaction()
    shown.delivered(1)
    shown.recover()
    shown.delivered(2)
    shown.unacked.settled(2, False)
    shown.roll_back()
    assert shown.unacked.count == 1
