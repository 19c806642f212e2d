"""What is remembered of deliveries: the latest, by queue."""

from __future__ import annotations

from amqpgate.gateway.session.recent_deliveries import RecentDeliveries


def test_a_message_comes_again_from_the_queue_that_it_came_from() -> None:
    recent = RecentDeliveries()
    came = [(1, "q"), (1, "other"), (2, "q"), (1, "q"), (1, "q")]
    assert [recent.again(*one) for one in came] == [False, False, False, True, True]


def test_the_oldest_is_forgotten() -> None:
    recent = RecentDeliveries(2)
    assert [recent.again(number, "q") for number in (1, 2, 3, 2, 1)] == [False, False, False, True, False]
