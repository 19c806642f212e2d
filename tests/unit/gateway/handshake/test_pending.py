"""Who gives way when there are too many that are not logged in yet."""

from __future__ import annotations

import pytest

from amqpgate.gateway.handshake.pending import PendingHandshake, PendingHandshakes, Silence, source_of
from amqpgate.gateway.transport.memory_trim import MANY


def come(handshakes: PendingHandshakes, address: str | None = "10.0.0.1") -> PendingHandshake:
    handshake = handshakes.enter(address)
    assert handshake is not None
    return handshake


def gone(*ones: PendingHandshake) -> list[bool]:
    return [one.gave_way for one in ones]


def test_the_one_that_has_been_silent_for_longest_gives_way() -> None:
    all_ = PendingHandshakes(3, 3)
    first, second, third = come(all_, "1"), come(all_, "2"), come(all_, "3")
    all_.awaits(first, Silence.GREETED)
    fourth = come(all_, "4")
    assert gone(first, second, third, fourth) == [False, True, False, False]
    assert second.scope.cancel_called
    fifth, sixth = come(all_, "5"), come(all_, "6")
    assert gone(first, third, fourth, fifth, sixth) == [False, True, True, False, False]
    for one in (fifth, sixth):
        all_.awaits(one, None)
    come(all_, "7")
    assert first.gave_way
    assert len(all_) == 3


def test_who_has_named_itself_gives_way_last() -> None:
    all_ = PendingHandshakes(3, 3)
    named, greeted, served = come(all_, "1"), come(all_, "2"), come(all_, "3")
    all_.awaits(named, Silence.NAMED)
    all_.awaits(greeted, Silence.GREETED)
    all_.awaits(served, None)
    fourth = come(all_, "4")
    assert gone(named, greeted, served) == [False, True, False]
    all_.awaits(fourth, None)
    come(all_, "5")
    assert gone(named, served, fourth) == [True, False, False]


def test_who_is_served_does_not_give_way() -> None:
    all_ = PendingHandshakes(2, 2)
    both = [come(all_), come(all_)]
    for one in both:
        all_.awaits(one, None)
    assert all_.enter("10.0.0.2") is None
    assert gone(*both) == [False, False]
    all_.leave(both[0])
    all_.leave(both[0])
    assert len(all_) == 1
    come(all_, "10.0.0.2")


def test_a_share_is_taken_from_ones_own() -> None:
    all_ = PendingHandshakes(100, 2)
    stranger, first, second = come(all_, "10.0.0.2"), come(all_), come(all_)
    all_.awaits(first, None)
    third = come(all_)
    assert gone(stranger, first, second, third) == [False, False, True, False]
    all_.awaits(third, None)
    assert all_.enter("10.0.0.1") is None
    assert len(all_) == 3


def test_of_a_balancer_it_is_told_later() -> None:
    all_ = PendingHandshakes(100, 1)
    first, second = come(all_, None), come(all_, None)
    assert all_.of(first, "10.0.0.1")
    all_.awaits(first, None)
    assert not all_.of(second, "10.0.0.1")
    all_.leave(first)
    assert all_.of(second, "10.0.0.1")


def test_one_that_gave_way_is_not_waited_for_again() -> None:
    all_ = PendingHandshakes(1, 1)
    first = come(all_)
    second = come(all_)
    all_.awaits(first, Silence.GREETED)
    all_.leave(first)
    assert (len(all_), second.gave_way) == (1, False)
    all_.cancel()
    assert (second.scope.cancel_called, second.gave_way) == (True, False)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8::1:7", "2001:db8::/64"),
        ("[2001:db8:0:0:ffff::7]", "2001:db8::/64"),
        ("2001:db8:0:1::7", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("somewhere", "somewhere"),
    ],
)
def test_whom_an_address_stands_for(address: str, source: str) -> None:
    assert source_of(address) == source


def test_many_that_are_over() -> None:
    all_ = PendingHandshakes(2 * MANY, 2 * MANY)
    few = [come(all_) for _ in range(MANY - 1)]
    for one in few:
        all_.leave(one)
    assert not all_.has_fallen()
    many = [come(all_) for _ in range(MANY)]
    assert not all_.has_fallen()
    for one in many:
        all_.leave(one)
    assert [all_.has_fallen(), all_.has_fallen()] == [True, False]
