"""The prefetch limit of a channel."""

from __future__ import annotations

from amqpgate.broker.limiter import Limiter


def _limited(limit: int, unsettled: int = 0) -> Limiter:
    limiter = Limiter()
    limiter.set(limit, unsettled)
    return limiter


def test_counts_up_and_down() -> None:
    limiter = _limited(2)
    limiter.delivered()
    assert not limiter.is_reached
    limiter.delivered()
    assert limiter.is_reached
    limiter.settled(1)
    assert not limiter.is_reached


def test_what_was_there_before_counts_only_the_first_time() -> None:
    limiter = _limited(3, unsettled=3)
    assert limiter.is_reached
    limiter.set(4, unsettled=3)
    assert not limiter.is_reached
    limiter.set(4, unsettled=100)
    assert not limiter.is_reached


def test_without_a_limit_nothing_counts() -> None:
    limiter = _limited(0)
    limiter.delivered()
    assert not limiter.is_reached
    limiter.set(1, unsettled=0)
    assert not limiter.is_reached
    limiter.delivered()
    limiter.set(0, unsettled=1)
    assert not limiter.is_reached


def test_settling_what_was_never_counted() -> None:
    limiter = _limited(1)
    limiter.settled(5)
    limiter.delivered()
    assert limiter.is_reached
