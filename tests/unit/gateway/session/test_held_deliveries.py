"""What is kept of deliveries on one channel: which of them go on, and what the client is known to have."""

from __future__ import annotations

from amqpgate.datapath.unacked import Unacked
from amqpgate.gateway.session.held_deliveries import HeldDeliveries, HeldDelivery


def held(*tags: int) -> HeldDeliveries:
    """A channel whose client has the deliveries of these tags."""
    out = Unacked()
    for tag in tags:
        out.delivered(tag)
    return HeldDeliveries(out)


def one(number: int, *, is_acked: bool = False) -> HeldDelivery:
    return HeldDelivery(f"c{number}", number, is_acked, bytearray(b"%d" % number))


def test_what_is_taken_is_in_order_and_kept_no_more() -> None:
    state = held()
    first, second, third = one(1), one(2, is_acked=True), one(3)
    for delivery in (first, second, third):
        state.keep(delivery)
    third.add(b"-more")
    assert state.waiting == [first, third]
    assert state.take(lambda delivery: delivery is second) == [b"1", b"3-more"]
    assert state.kept == [second]
    assert state.take(lambda _: False) == [b"2"]
    assert state.kept == []


def test_the_message_under_way_is_the_last_that_is_kept() -> None:
    state = held()
    state.keep(one(1))
    state.begin()
    assert not state.is_under_way
    last = one(2)
    state.keep(last)
    assert state.is_under_way
    # The broker has only the one before again: the rest of this one is still to come.
    state.drop_rest_of([state.kept[0]])
    assert not state.is_dropping
    state.drop_rest_of([last])
    assert state.is_dropping
    state.begin()
    assert not state.is_dropping
    state.keep(one(3))
    state.pass_rest()
    state.drop_rest_of(state.kept)
    assert not state.is_dropping


def test_what_the_client_has_and_the_highest_of_it() -> None:
    assert (held().count(transacts=False), held().top()) == (0, 0)
    state = held(1, 2, 7)
    assert (state.count(transacts=False), state.top()) == (3, 7)
    state.out.settled(7, False)
    assert (state.count(transacts=False), state.top()) == (2, 2)
    state.out.settled(2, True)
    assert (state.count(transacts=False), state.top()) == (0, 0)


def test_where_that_is_not_known_no_number_is_the_highest() -> None:
    # The broker's tags do not rise.
    state = held(5, 3)
    assert (state.count(transacts=False), state.top()) == (1, 5)
    state.out.settled(5, False)
    assert state.top() is None


def test_in_a_transaction_those_count_that_the_client_has_acknowledged() -> None:
    state = held(1, 2, 3)
    state.out.settled(2, True)
    assert (state.count(transacts=False), state.count(transacts=True)) == (1, 3)


def test_a_limit_and_a_stop_are_two_things() -> None:
    state = held()
    state.stop()
    state.limit_to(5)
    state.postpone()
    assert (state.is_off, state.is_ending, state.limit, state.is_limited) == (True, True, 5, True)
    state.resume()
    assert (state.is_off, state.is_ending, state.limit, state.is_limited) == (False, False, 5, True)
    state.limit_to(0)
    # There may be the connection's.
    assert (state.limit, state.is_limited) == (0, True)
    state.lift()
    assert (state.limit, state.is_limited) == (0, False)
