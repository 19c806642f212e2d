"""Which channels of a shared connection are kept open ahead, and when it is full. No clock runs here."""

from __future__ import annotations

from amqpgate.gateway.pool.channel_numbers import NumberState
from amqpgate.gateway.pool.connection_state import PATIENCE
from amqpgate.gateway.pool.plan import AcquiredChannel, DialLink
from tests.unit.gateway.pool.planned import opens, play, shuts


def test_channels_are_open_before_they_are_asked_for() -> None:
    it = play(spare_channels=3)
    link = it.link(sessions=1)
    assert opens(it.settle()) == [1, 2, 3]
    assert it.pool.acquire(link, it.now) == AcquiredChannel(1, is_open=True, must_open=False)
    assert opens(it.settle()) == [4]
    it.pool.release(link, 1)
    assert it.settle() == []
    assert it.pool.closed(link, 1, it.now)
    assert it.pool.acquire(link, it.now) == AcquiredChannel(2, is_open=True, must_open=False)
    assert opens(it.settle()) == [1]


def test_spare_channels_are_no_more_than_there_is_room_for() -> None:
    it = play(channels_per_link=5, spare_channels=16)
    link = it.link(sessions=1)
    assert opens(it.settle()) == [1, 2, 3, 4, 5]
    assert [it.pool.acquire(link, it.now) is not None for _ in range(6)] == [True] * 5 + [False]
    assert it.settle() == [DialLink()]


def test_more_are_kept_open_while_many_are_taken() -> None:
    it = play(spare_channels=3)
    link = it.link(sessions=1)
    it.settle()
    for _ in range(100):
        it.now += 0.005
        assert it.pool.acquire(link, it.now) is not None
    it.settle()
    assert link.numbers.count(NumberState.SPARE) == 25
    for number in range(1, 101):
        it.pool.release(link, number)
        it.pool.closed(link, number, it.now)
    it.now += 5
    assert it.settle() == []
    it.now += 10
    # The highest are closed when there are twice too many.
    assert shuts(it.settle()) == list(range(125, 108, -1))
    it.now += 60
    it.settle()
    assert link.numbers.count(NumberState.SPARE) == 3
    # One by one, over time, they are not many.
    for _ in range(20):
        it.now += 1.5
        assert it.pool.acquire(link, it.now) is not None
        it.settle()
    assert link.numbers.count(NumberState.SPARE) == 3


def test_channels_in_confirm_mode_go_when_nobody_asks_for_them() -> None:
    it = play(spare_channels=2, idle_timeout=60)
    link = it.link(sessions=1)
    it.pool.acquire(link, it.now)
    it.pool.acquire_confirming(link, 1, it.now)
    it.settle()
    it.now += 59
    assert it.settle() == []
    it.now += 1
    assert shuts(it.settle()) == [5, 4]


def test_channels_in_confirm_mode_take_no_room_from_others() -> None:
    it = play(channels_per_link=8, spare_channels=8)
    link = it.link(sessions=1)
    it.pool.acquire(link, it.now)
    it.pool.acquire_confirming(link, 1, it.now)
    it.settle()
    assert (link.numbers.count(NumberState.SPARE), link.numbers.count(NumberState.SPARE_CONFIRMING)) == (4, 3)
    for _ in range(4):
        assert it.pool.acquire(link, it.now) is not None
    # Those that wait for it are let in by closing what is not needed as much.
    assert shuts(it.settle()) != []
    for _ in range(3):
        assert it.pool.acquire(link, it.now) is not None
        it.settle()
    assert it.pool.acquire(link, it.now) is None
    assert link.numbers.count(NumberState.TAKEN) == 8


def test_a_broker_that_closes_spare_channels_is_not_asked_again_at_once() -> None:
    it = play(spare_channels=2)
    link = it.link(sessions=1)
    assert opens(it.wants()) == [1, 2]
    assert it.pool.closed(link, 1, it.now)
    assert it.wants() == []
    it.now += PATIENCE
    assert opens(it.wants()) == [1]
    # Nor is one that closes them later.
    it.pool.opened(link, 2, confirming=False)
    assert it.pool.closed(link, 2, it.now)
    assert it.wants() == []
    it.now += PATIENCE
    assert opens(it.wants()) == [2]


def test_a_broker_that_closes_a_clients_channel_is_asked_on() -> None:
    it = play(spare_channels=1)
    link = it.link(sessions=1)
    it.settle()
    it.pool.acquire(link, it.now)
    it.pool.closed(link, 1, it.now)
    assert opens(it.settle()) == [1]


def test_a_link_is_full_for_new_sessions_when_those_on_it_will_fill_it() -> None:
    it = play(channels_per_link=100, max_links=3, spare_channels=1)
    it.pool.entered()
    it.wants(waiting=1)
    first = it.pool.added(0, it.now)
    second = it.pool.added(0, it.now, asked=False)
    # Sessions of this pool had twenty channels each: four of them leave no room for a fifth.
    it.pool.sizes.outgrew(20)
    assigned = [it.pool.assign() for _ in range(10)]
    assert assigned[:5] == [first] * 5
    assert assigned[5:] == [second] * 5


def test_what_is_typical_follows_the_sessions_that_were_there() -> None:
    it = play()
    for _ in range(50):
        it.pool.entered()
        it.pool.gone(8)
    assert 7 < it.pool.sizes.typical <= 8
    it.pool.entered()
    it.pool.gone()
    assert it.pool.sizes.typical > 7


def test_a_login_has_no_more_channels_than_the_broker_has_opened_for_it() -> None:
    it = play(spare_channels=4, max_age=3600)
    first, second = it.link(sessions=1, taken=3), it.link(sessions=1, taken=2)
    assert it.pool.has_spares is False
    assert opens(it.wants()) == [4, 5, 6, 7, 3, 4, 5, 6]
    it.pool.opened(second, 3, confirming=False)
    assert it.pool.has_spares
    # One of those that are taken is not open yet.
    it.pool.limited(first, 1, 100, it.now)
    it.pool.lost(first, it.now)
    assert it.pool.ceiling.most == 5
    # What is ahead of need is closed, but for what is only being opened: somebody may take that.
    assert shuts(it.wants()) == [3]
    assert not it.pool.ceiling.is_reached
    assert it.pool.closed(second, 3, it.now)
    for number in (4, 5, 6):
        it.pool.opened(second, number, confirming=False)
        assert shuts(it.wants()) == [number]
    # What is being closed is still counted.
    assert (it.pool.ceiling.left, second.room, it.pool.acquire(second, it.now)) == (0, 0, None)
    assert not it.pool.ceiling.is_reached
    for number in (4, 5, 6):
        assert it.pool.closed(second, number, it.now)
    assert (it.pool.ceiling.left, second.room) == (3, 3)
    for number in (3, 4, 5):
        assert it.pool.acquire(second, it.now) == AcquiredChannel(number, is_open=False, must_open=True)
    assert it.pool.acquire(second, it.now) is None
    assert it.pool.assign() is None
    assert it.pool.ceiling.is_reached
    # Another link would not help.
    it.now += PATIENCE
    assert it.wants(waiting=5) == []
    it.now += 3600
    assert opens(it.wants(waiting=5)) == [6, 7, 8, 9]
    assert not it.pool.ceiling.is_reached


def test_what_the_broker_says_counts_if_it_is_less() -> None:
    it = play()
    link = it.link(sessions=1, taken=20)
    it.pool.limited(link, 0, 12, it.now)
    assert it.pool.ceiling.most == 12


def test_channels_that_are_being_closed_are_still_in_use() -> None:
    it = play(channels_per_link=16)
    link = it.link(sessions=1, taken=14)
    it.pool.release(link, 1)
    assert it.wants() == [DialLink()]


def test_sessions_are_counted() -> None:
    it = play()
    link = it.link()
    assert it.pool.assign() is it.pool.assign() is link
    assert link.sessions == 2
    it.now += 5
    it.pool.left(link, it.now)
    assert link.idle_since == 1000
    it.pool.left(link, it.now)
    assert (link.sessions, link.idle_since) == (0, 1005)


def test_a_new_link_is_as_ready_as_the_busiest() -> None:
    it = play(spare_channels=3, channels_per_link=800)
    for taken in (0, 700):
        link = it.link(sessions=1)
        for _ in range(taken):
            it.pool.acquire(link, it.now)
    assert it.pool.acquire_confirming(link, 1, it.now) is None
    third = it.link()
    it.settle()
    assert third.numbers.count(NumberState.SPARE) == 175
    assert third.numbers.count(NumberState.SPARE_CONFIRMING) == 3
