"""How long bytes are in the gateway: both pumps time one turn of many, and never tell too little."""

from __future__ import annotations

import threading

import pytest

from amqpgate.buckets import ADDED, bucket_of
from amqpgate.datapath.engine import End
from amqpgate.datapath.latency import ROUNDS
from amqpgate.datapath.tables import Side

from .pools import declare
from .rig import received
from .test_turns import COST, Bench, bench, flood  # noqa: F401

#: Seconds that went by unseen.
LATE = 0.25


def timed(bench: Bench) -> list[float]:  # noqa: F811
    """The bounds of what was timed."""
    counts = bench.pump.counters.latency.counts
    return [ADDED[number] for number, count in enumerate(counts) for _ in range(count)]


def bound(seconds: float) -> float:
    return ADDED[bucket_of(ADDED, seconds)]


def test_one_turn_of_many_is_timed(bench: Bench) -> None:  # noqa: F811
    client, broker, _ = bench.own("one")
    for _ in range(10 * ROUNDS):
        client.send(declare(1))
        bench.pump.step()
        received(broker)
    # A look finds the pump's own event, too, and then the next one does it.
    assert 7 <= len(timed(bench)) <= 10
    # Its own upcall, and that of the turn before: it may have come before that one.
    assert set(timed(bench)) == {bound(2 * COST)}
    assert bench.pump.counters.latency.seconds == pytest.approx(len(timed(bench)) * 2 * COST)


def test_what_was_there_is_taken_to_have_come_right_after_the_look_before(bench: Bench) -> None:  # noqa: F811
    client, broker, _ = bench.own("one")
    bench.steps(ROUNDS + 1)
    client.send(declare(1))
    bench.clock.now += LATE
    bench.pump.step(5)
    assert received(broker) == declare(1)
    assert bench.pump.counters.latency.seconds == pytest.approx(LATE + COST)
    assert timed(bench) == [bound(LATE + COST)]


def test_what_the_pump_has_waited_for_has_just_come(bench: Bench) -> None:  # noqa: F811
    client, broker, _ = bench.own("one")
    bench.steps(ROUNDS + 1)
    bench.clock.now += LATE
    sending = threading.Timer(0.02, client.send, [declare(1)])
    sending.start()
    while not (got := received(broker)):
        bench.pump.step(5)
    sending.join()
    assert got == declare(1)
    assert bench.pump.counters.latency.seconds == pytest.approx(COST)


def test_a_turn_that_goes_on_later_is_timed_to_its_end(bench: Bench) -> None:  # noqa: F811
    client, broker, _ = bench.own("long")
    bench.steps(ROUNDS + 1)
    client.send(flood(7))
    assert bench.drain(broker) == flood(7)
    assert bench.pump.counters.latency.seconds == pytest.approx(7 * COST)
    assert len(timed(bench)) == 1


def test_who_waits_for_others_turns_is_timed_with_them(bench: Bench) -> None:  # noqa: F811
    both = [bench.own(name) for name in ("one", "other")]
    bench.steps(ROUNDS + 1)
    for _ in range(2):
        for client, _, _ in both:
            client.send(declare(1))
        bench.pump.step()
        bench.steps(ROUNDS + 1)
    # Each was timed once, whoever comes first: picks go round.
    assert sorted(timed(bench)) == [bound(COST), bound(2 * COST)]


def test_what_a_receiver_makes_wait_is_not_counted(bench: Bench) -> None:  # noqa: F811
    client, broker, handler = bench.own("slow")
    said = flood(100)
    while not handler.relay.endpoints[Side.UPSTREAM].waiting:
        client.send(said)
        bench.steps()
    before = timed(bench)
    # It is below the mark at which the client is read no more.
    for _ in range(3 * ROUNDS):
        client.send(declare(1))
        bench.pump.step()
    assert not handler.relay.endpoints[Side.CLIENT].paused
    assert timed(bench) == before
    bench.drain(broker)
    for _ in range(3 * ROUNDS):
        client.send(declare(1))
        bench.pump.step()
    assert len(timed(bench)) > len(before)


def test_a_session_that_ends_meanwhile_is_not_timed(bench: Bench) -> None:  # noqa: F811
    client, _, handler = bench.own("gone")
    bench.steps(ROUNDS + 1)
    client.send(flood(7))
    bench.pump.step()
    bench.pump.remove(handler.relay, End.FINISHED, None, None)
    bench.steps()
    assert timed(bench) == []
    other, broker, _ = bench.own("other")
    bench.steps(ROUNDS + 1)
    other.send(declare(1))
    bench.steps(2)
    assert received(broker) == declare(1)
    assert timed(bench) == [bound(COST)]
