"""What waits for a mirror: never more than it may be."""

from __future__ import annotations

import random

from amqpgate.gateway.observers.mirror.queue import OVERHEAD, MirroredMessage
from tests.unit.gateway.observers.mirror.test_session import Stand


def test_the_queue_never_holds_more_than_it_may() -> None:
    rng = random.Random(7)
    stand = Stand(buffer=64 << 10)
    waiting: list[MirroredMessage] = []
    for _ in range(5000):
        stand.begin(rng.choice([0, 1, 700, 9000]))
        message_due = list(stand.copier._copies.values())
        if message_due and rng.random() < 0.9:
            stand.body(bytes(message_due[0][0].body_size))
        while len(stand.queue) and rng.random() < 0.4:
            message = stand.queue.take()
            assert message is not None
            waiting.append(message)
        while waiting and rng.random() < 0.4:
            stand.queue.release(waiting.pop())
        assert stand.queue.held <= 64 << 10
        assert stand.count("queue_bytes") == stand.queue.held
    assert stand.dropped("full") > 100
    stand.copier.ended()
    for message in waiting:
        stand.queue.release(message)
    left = len(stand.queue)
    stand.queue.close("stopped")
    assert (stand.queue.held, stand.dropped("stopped")) == (0, left)


def test_a_closed_queue_drops_what_comes_and_what_was_begun() -> None:
    stand = Stand()
    stand.begin(3)
    stand.queue.close("unavailable")
    stand.body(b"abc")
    stand.begin(0)
    assert (stand.dropped("unavailable"), stand.queue.held, stand.arrivals) == (2, 0, 0)
    stand.queue.open()
    stand.begin(0)
    assert (stand.arrivals, stand.queue.held) == (1, stand.queue.held)


def test_small_messages_are_bounded_too() -> None:
    stand = Stand(buffer=64 << 10)
    for _ in range(1000):
        stand.begin(0)
    assert len(stand.queue) <= (64 << 10) // OVERHEAD
