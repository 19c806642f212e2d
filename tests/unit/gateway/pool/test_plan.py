"""Which connection a session is assigned to, and what is dialled, opened and closed. No clock runs here."""

from __future__ import annotations

import pytest

from amqpgate.gateway.pool.channel_numbers import NumberState
from amqpgate.gateway.pool.connection_state import PATIENCE
from amqpgate.gateway.pool.plan import AcquiredChannel, Action, CloseLink, DialLink
from tests.unit.gateway.pool.planned import opens, play, shuts

# -- sessions ------------------------------------------------------------------------------------------------


def test_without_a_link_a_session_waits_for_one() -> None:
    it = play()
    assert it.pool.is_empty
    assert it.wants() == []
    it.pool.entered()
    assert it.pool.assign() is None
    assert it.wants(waiting=1) == [DialLink()]
    assert it.wants(waiting=1) == []
    link = it.pool.added(0, it.now)
    assert it.pool.assign() is link
    assert link.sessions == 1
    assert it.wants() == []


def test_the_fullest_link_that_has_room_is_assigned_but_not_the_last_eighth() -> None:
    it = play(channels_per_link=16)
    first, second = it.link(taken=1, sessions=1), it.link(taken=13, sessions=1)
    third = it.link(taken=14, sessions=1)
    assert it.pool.assign() is second
    assert it.pool.acquire(second, it.now) is not None
    # It is nearly full now.
    assert it.pool.assign() is first
    for _ in range(13):
        assert it.pool.acquire(first, it.now) is not None
    # All are: the numbers go where most are left.
    assert it.pool.acquire(third, it.now) is not None
    assert it.pool.assign() is first
    for link, most in ((first, 2), (second, 2), (third, 1)):
        for _ in range(most):
            assert it.pool.acquire(link, it.now) is not None
        assert it.pool.acquire(link, it.now) is None
    assert it.pool.assign() is None


# -- channels ------------------------------------------------------------------------------------------------


def test_the_lowest_number_comes_first_and_again_only_after_close_ok() -> None:
    it = play(channels_per_link=3)
    link = it.link(sessions=1)
    fresh = [it.pool.acquire(link, it.now) for _ in range(4)]
    assert fresh == [*(AcquiredChannel(number, is_open=False, must_open=True) for number in (1, 2, 3)), None]
    it.pool.release(link, 2)
    it.pool.release(link, 1)
    assert it.pool.acquire(link, it.now) is None
    assert it.pool.assign() is None
    assert it.pool.closed(link, 2, it.now)
    assert not it.pool.closed(link, 2, it.now)
    assert it.pool.acquire(link, it.now) == AcquiredChannel(2, is_open=False, must_open=True)
    # The broker may close one itself.
    assert it.pool.closed(link, 3, it.now)
    assert it.pool.closed(link, 1, it.now)
    assert it.pool.acquire(link, it.now) == AcquiredChannel(1, is_open=False, must_open=True)


def test_a_channel_whose_open_is_under_way_is_taken_when_no_other_is_left() -> None:
    it = play(channels_per_link=3, spare_channels=2)
    link = it.link(sessions=1)
    assert opens(it.wants()) == [1, 2]
    assert it.pool.acquire(link, it.now) == AcquiredChannel(3, is_open=False, must_open=True)
    assert it.pool.acquire(link, it.now) == AcquiredChannel(1, is_open=False, must_open=False)
    # Its session has gone before the broker said open-ok.
    it.pool.release(link, 1)
    it.pool.opened(link, 1, confirming=False)
    assert link.numbers.at(1) is NumberState.CLOSING
    it.pool.opened(link, 2, confirming=False)
    assert it.pool.acquire(link, it.now) == AcquiredChannel(2, is_open=True, must_open=False)
    assert it.pool.acquire(link, it.now) is None


def test_a_channel_in_confirm_mode_is_swapped_for() -> None:
    it = play(spare_channels=2)
    link = it.link(sessions=1)
    assert opens(it.settle(), confirming=True) == []
    taken = it.pool.acquire(link, it.now)
    assert taken == AcquiredChannel(1, is_open=True, must_open=False)
    # There is none the first time.
    assert it.pool.acquire_confirming(link, 1, it.now) is None
    actions = it.wants()
    assert (opens(actions), opens(actions, confirming=True)) == ([3], [4, 5])
    it.pool.opened(link, 3, confirming=False)
    it.pool.opened(link, 5, confirming=False)
    # open-ok is not enough.
    assert it.pool.acquire_confirming(link, 1, it.now) is None
    it.pool.opened(link, 5, confirming=True)
    assert it.pool.acquire_confirming(link, 1, it.now) == 5
    assert [link.numbers.at(number) for number in (1, 5)] == [NumberState.SPARE, NumberState.TAKEN]
    assert it.pool.acquire(link, it.now) == AcquiredChannel(1, is_open=True, must_open=False)
    assert opens(it.settle(), confirming=True) == [6]


# -- dials ---------------------------------------------------------------------------------------------------


def test_one_dial_is_enough_for_all_that_fit_on_one_link() -> None:
    it = play(channels_per_link=100)
    for _ in range(250):
        it.pool.entered()
    assert it.wants(waiting=1) == [DialLink()]
    assert it.wants(waiting=100) == []
    assert it.wants(waiting=250) == [DialLink(), DialLink()]
    assert it.wants(waiting=250) == []


def test_none_is_dialled_for_those_who_have_not_looked_again() -> None:
    """A link has come, and those who wait for it are told."""
    it = play(channels_per_link=10)
    for _ in range(15):
        it.pool.entered()
    assert it.wants(waiting=5) == [DialLink()]
    link = it.pool.added(10, it.now)
    assert it.wants(waiting=5) == []
    assert it.wants(waiting=15) == [DialLink()]
    it.pool.added(10, it.now)
    # But nobody waits for the end of an alarm.
    link.is_blocked = True
    assert it.wants(waiting=15) == [DialLink()]


@pytest.mark.parametrize("waiting", [0, 1000])
def test_links_are_never_more_than_the_most(waiting: int) -> None:
    it = play(channels_per_link=10, max_links=3)
    it.link(sessions=1, taken=10)
    assert len(it.wants(waiting)) == (2 if waiting else 1)
    it.pool.added(10, it.now)
    it.link(taken=10)
    assert not it.pool.may_grow
    assert it.wants(waiting) == []


def test_a_link_is_dialled_ahead_when_all_are_nearly_full() -> None:
    it = play(channels_per_link=16)
    link = it.link(sessions=1, taken=13)
    assert it.wants() == []
    it.pool.acquire(link, it.now)
    assert it.wants() == [DialLink()]
    assert it.pool.assign() is link  # and nobody waits for it
    assert it.wants() == []
    other = it.pool.added(16, it.now)
    assert it.pool.assign() is other
    assert it.wants() == []


def test_none_is_dialled_for_nobody() -> None:
    it = play(channels_per_link=16)
    it.link(taken=16)
    assert it.wants() == []
    it.pool.entered()
    assert it.wants() == [DialLink()]


def test_after_a_failure_none_is_dialled_for_a_while() -> None:
    it = play()
    it.pool.entered()
    assert it.wants(waiting=1) == [DialLink()]
    it.pool.dial_failed(it.now)
    assert it.wants(waiting=5000) == []
    it.now += PATIENCE
    assert len(it.wants(waiting=5000)) == 5


@pytest.mark.parametrize(("age", "dials"), [(0.0, []), (PATIENCE, [DialLink()])])
def test_a_broker_that_hangs_up_at_once_is_left_alone_for_a_while(age: float, dials: list[Action]) -> None:
    it = play()
    link = it.link()
    it.pool.entered()
    it.now += age
    it.pool.lost(link, it.now)
    assert it.wants() == dials
    it.now += PATIENCE
    assert it.wants() == ([] if dials else [DialLink()])


def test_what_is_said_of_a_lost_link_changes_nothing() -> None:
    it = play()
    link, other = it.link(sessions=1, taken=2), it.link(sessions=1)
    it.pool.lost(link, it.now)
    it.pool.release(link, 1)
    it.pool.closed(link, 1, it.now)
    it.pool.left(link, it.now)
    assert it.pool.links == [other]
    assert it.pool.assign() is other


def test_the_connection_that_proved_a_login_may_be_a_link() -> None:
    it = play()
    it.pool.entered()
    link = it.pool.added(2047, it.now, asked=False)
    assert it.pool.dialling == 0
    assert it.pool.assign() is link
    assert it.wants() == []


@pytest.mark.parametrize(("allowed", "most"), [(2047, 1024), (100, 100), (0, 1024)])
def test_a_link_has_as_many_channels_as_both_allow(allowed: int, most: int) -> None:
    assert play().link(allowed).numbers.most == most


def test_each_link_has_an_id_of_its_own() -> None:
    it = play()
    first = it.link()
    it.pool.lost(first, it.now)
    assert it.link().id != first.id


# -- ends ----------------------------------------------------------------------------------------------------


def test_a_link_that_nobody_is_on_is_closed_if_there_is_another() -> None:
    it = play(idle_timeout=60)
    used, unused = it.link(sessions=1, taken=5), it.link(sessions=1)
    it.now += 100
    it.pool.left(unused, it.now)
    it.now += 59
    assert it.settle() == []
    it.now += 1
    assert it.wants() == [CloseLink(unused, "is not used")]
    assert it.wants() == []
    it.pool.left(used, it.now)
    assert it.pool.assign() is used


def test_of_several_that_nobody_is_on_one_stays_for_clients_that_are_there() -> None:
    it = play(idle_timeout=60)
    first, second, third = (it.link() for _ in range(3))
    it.pool.entered()
    it.now += 1000
    assert it.wants() == [CloseLink(first, "is not used"), CloseLink(second, "is not used")]
    it.pool.lost(first, it.now)
    it.pool.lost(second, it.now)
    it.now += 1000
    assert it.wants() == []
    assert not it.pool.is_empty
    it.pool.gone()
    assert it.wants() == [CloseLink(third, "is not used")]
    assert not it.pool.is_empty
    it.pool.lost(third, it.now)
    assert it.pool.is_empty
    assert it.wants() == []


def test_one_that_is_nearly_full_is_no_other() -> None:
    it = play(idle_timeout=60, channels_per_link=16)
    it.link(sessions=1, taken=15)
    ahead = it.link()
    it.now += 1000
    assert it.wants() == []
    assert it.pool.links[1] is ahead


def test_the_pool_outlives_its_clients_for_a_while() -> None:
    """Clients that come and go one by one find it ready."""
    it = play(idle_timeout=60)
    for _ in range(10):
        it.pool.entered()
        if not it.pool.links:
            it.link()
        link = it.pool.assign()
        assert link is not None
        it.now += 1
        it.pool.left(link, it.now)
        it.pool.gone()
        it.now += 59
        assert it.wants() == []
    assert (len(it.pool.links), link.id) == (1, 1)


def test_a_link_that_is_too_old_is_replaced() -> None:
    it = play(max_age=3600, spare_channels=1)
    old = it.link(sessions=2, taken=2)
    it.settle()
    it.now += 3599
    assert it.wants() == []
    it.now += 1
    assert it.wants() == [DialLink()]
    # Nobody waits for the new one.
    assert it.pool.assign() is old
    assert not old.retiring
    new = it.pool.added(0, it.now)
    actions = it.wants()
    assert (old.retiring, shuts(actions), opens(actions)) == (True, [3], [1])
    assert it.pool.assign() is new
    # Who is there may open more.
    assert it.pool.acquire(old, it.now) == AcquiredChannel(4, is_open=False, must_open=True)
    for _ in range(2):
        it.pool.left(old, it.now)
        assert it.wants() == []
    it.pool.left(old, it.now)
    assert it.wants() == [CloseLink(old, "has reached its age")]
    assert it.wants() == []


def test_where_none_may_be_dialled_an_old_link_goes_on_until_nobody_is_on_it() -> None:
    it = play(max_age=3600, max_links=1)
    old = it.link(sessions=1)
    it.now += 4000
    assert it.wants() == []
    assert it.pool.assign() is old
    it.pool.left(old, it.now)
    it.pool.left(old, it.now)
    assert it.wants(waiting=1) == [CloseLink(old, "has reached its age")]
    # While it is being closed it counts.
    assert it.pool.assign() is None
    assert it.wants(waiting=1) == []
    it.pool.lost(old, it.now)
    assert it.wants(waiting=1) == [DialLink()]


def test_an_old_link_is_assigned_only_when_no_other_has_room() -> None:
    it = play(max_age=3600, channels_per_link=2, max_links=2)
    old = it.link(sessions=1)
    it.now += 4000
    new = it.link()
    assert it.kinds() == []
    assert it.pool.assign() is new
    for _ in range(2):
        it.pool.acquire(new, it.now)
    assert it.pool.assign() is old


def test_an_old_link_without_clients_is_closed_at_once() -> None:
    it = play(max_age=3600, idle_timeout=7200)
    old = it.link()
    it.now += 3600
    assert it.wants() == [CloseLink(old, "has reached its age")]


def test_an_old_link_without_a_session_stays_until_its_successor_is_there() -> None:
    it = play(max_age=3600)
    old = it.link()
    it.pool.entered()
    it.now += 4000
    assert it.wants() == [DialLink()]
    assert it.wants() == []
    it.pool.added(0, it.now)
    assert it.wants() == [CloseLink(old, "has reached its age")]


def test_a_link_that_is_blocked_is_assigned_only_when_no_other_may_be_dialled() -> None:
    at = play(max_links=2)
    blocked = at.link(sessions=1, taken=1)
    blocked.is_blocked = True
    assert at.pool.assign() is None
    # Not for channels ahead on the blocked one: it would not answer.
    assert at.wants(waiting=1) == [DialLink()]
    assert at.pool.assign() is None
    other = at.pool.added(2047, at.now)
    assert at.pool.assign() is other
    other.is_blocked = True
    assert at.pool.assign() in (blocked, other)
    blocked.is_blocked = False
    assert at.pool.assign() is blocked


def test_a_link_that_is_nearly_full_comes_before_one_that_is_too_old() -> None:
    it = play(max_age=3600, channels_per_link=16, max_links=2)
    old = it.link(sessions=1)
    it.now += 4000
    new = it.link()
    it.wants()
    assert old.retiring
    for _ in range(15):
        it.pool.acquire(new, it.now)
    assert it.pool.assign() is new


def test_a_link_that_was_not_needed_is_no_failure() -> None:
    it = play(idle_timeout=0.1)
    link = it.link()
    it.now += 0.2
    assert it.wants() == [CloseLink(link, "is not used")]
    it.pool.lost(link, it.now)
    it.pool.entered()
    assert it.wants() == [DialLink()]


def test_the_broker_has_time_to_forget_the_channels_of_the_link_that_it_has_ended() -> None:
    it = play()
    link = it.link(sessions=1, taken=20)
    it.now += 60
    it.pool.limited(link, 0, 12, it.now)
    it.pool.lost(link, it.now)
    assert it.wants(waiting=1) == []
    it.now += PATIENCE
    assert it.wants(waiting=1) == [DialLink()]
