"""The hour of a gateway: what its rings keep, for how long, and how several become one."""

from __future__ import annotations

import pytest
import trio

from amqpgate.buckets import ADDED, bucket_of, percentile
from amqpgate.buckets import CONFIRMS as BUCKETS
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.history import (
    PERCENTILES,
    RING,
    SERIES,
    SLOTS,
    STEP,
    History,
    Ring,
    slot_at,
)

NOW = 1_800_000_002.0
SLOT = slot_at(NOW)
NONE = [0] * (len(BUCKETS) + 1)


def row(**values: float) -> list[float]:
    return [values.get(name, 0.0) for name in SERIES]


def took(*seconds: float) -> list[int]:
    counts = NONE.copy()
    for one in seconds:
        counts[bucket_of(BUCKETS, one)] += 1
    return counts


def made(workers: int = 1) -> tuple[memoryview, History]:
    memory = memoryview(bytearray(RING * workers))
    return memory, History.of(memory)


def told(history: History, minutes: int = 60, now: float = NOW) -> dict[str, JSON]:
    return trio.run(history.told, minutes, now)


def test_nothing_is_told_where_nothing_was_written() -> None:
    found = told(made()[1])
    assert found.pop("step") == STEP
    assert set(found) == {"at", "workers", *SERIES, *PERCENTILES}
    assert all(column == [] for column in found.values())


def test_it_keeps_an_hour_and_no_more() -> None:
    memory, history = made()
    (ring,) = history.rings
    for slot in range(SLOT - 3 * SLOTS, SLOT + 1):
        ring.write(slot, row(sessions=slot - SLOT), NONE)
    assert len(memory) == RING
    found = told(history)
    assert found["sessions"] == list(range(-3600 // STEP, 0))
    # The last is over, and the one that is under way is not told.
    assert found["at"] == [(slot + 1) * STEP for slot in range(SLOT - 3600 // STEP, SLOT)]
    assert found["at"][-1] <= NOW < found["at"][-1] + STEP  # type: ignore[index, operator]
    assert told(history, minutes=2)["sessions"] == list(range(-24, 0))


def test_a_slot_is_told_when_all_may_have_written_it() -> None:
    _, history = made()
    history.rings[0].write(SLOT - 1, row(), NONE)
    assert told(history, now=SLOT * STEP + 1.9)["workers"] == []
    assert told(history, now=SLOT * STEP + 2.1)["workers"] == [1]
    # The gateway says nothing of slots since then, as nobody has written them.
    assert told(history, now=SLOT * STEP + 100)["workers"] == [1]


def test_a_gap_is_a_gap_and_not_what_was_there_an_hour_before() -> None:
    _, history = made()
    (ring,) = history.rings
    for slot in range(SLOT - SLOTS - 3, SLOT - SLOTS):
        ring.write(slot, row(cpu=9), took(9))
    for slot in (SLOT - 4, SLOT - 1):
        ring.write(slot, row(cpu=0.5), took(0.001))
    found = told(history)
    assert found["cpu"] == [0.5, None, None, 0.5]
    assert found["workers"] == [1, 0, 0, 1]
    assert [one is None for one in found["confirm_p99"]] == [False, True, True, False]  # type: ignore[union-attr]


def test_workers_are_added_up_and_the_slowest_loop_is_told() -> None:
    _, history = made(2)
    one, other = history.rings
    one.write(SLOT - 2, row(published=10, lag=0.25, memory=1e6), took(*[0.001] * 99))
    other.write(SLOT - 2, row(published=5, lag=0.5, memory=2e6), took(1.0))
    one.write(SLOT - 1, row(published=7), NONE)
    found = told(history)
    assert found["published"] == [15.0, 7.0]
    assert found["memory"] == [3e6, 0.0]
    assert found["lag"] == [0.5, 0.0]
    assert found["workers"] == [2, 1]
    # Of all that was timed, and not a mean of two medians.
    assert found["confirm_p50"] == [pytest.approx(0.001, rel=0.125), None]
    assert found["confirm_p99"][0] < 0.0013  # type: ignore[index, operator]


def test_a_worker_that_is_started_again_goes_on_in_its_ring() -> None:
    memory, history = made(2)
    history.rings[1].write(SLOT - 3, row(published=4), NONE)
    # It is gone for a while, and another process maps the same memory.
    again = History.of(memory[:]).rings[1]
    again.write(SLOT - 1, row(published=6), NONE)
    assert told(history)["published"] == [4.0, None, 6.0]


def test_a_row_that_is_being_written_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, history = made()
    (ring,) = history.rings
    ring.write(SLOT - 1, row(published=1), NONE)
    with pytest.raises(ZeroDivisionError):
        ring.write(SLOT - 1, (1 / 0 for _ in SERIES), NONE)
    assert told(history)["published"] == []
    assert Ring(memory).read(SLOT - 1) is None


def test_counts_beyond_what_a_row_keeps() -> None:
    _, history = made()
    history.rings[0].write(SLOT - 1, row(), [1 << 20, *NONE[1:]])
    assert told(history)["confirm_p50"] == [pytest.approx(5e-5, rel=0.01)]


@pytest.mark.parametrize("share", [0.5, 0.99])
@pytest.mark.parametrize("seconds", [0.00011, 0.0004, 0.0123, 0.7, 8.0])
def test_a_percentile_is_at_most_a_quarter_off(seconds: float, share: float) -> None:
    assert percentile(BUCKETS, took(*[seconds] * 7), share) == pytest.approx(seconds, rel=0.25)


def test_percentiles_of_many() -> None:
    counts = took(*(number / 1000 for number in range(1, 1001)))
    assert percentile(BUCKETS, counts, 0.5) == pytest.approx(0.5, rel=0.02)
    assert percentile(BUCKETS, counts, 0.99) == pytest.approx(0.99, rel=0.25)
    assert percentile(BUCKETS, NONE, 0.5) is None
    assert percentile(BUCKETS, took(3600.0), 0.99) == BUCKETS[-1]


def test_a_slot_is_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever floods the gateway with questions has it read what was written since, and no more."""
    _, history = made(2)
    for ring in history.rings:
        for slot in range(SLOT - 100, SLOT):
            ring.write(slot, row(published=slot - SLOT), took(0.001))
    reads: list[int] = []
    read = Ring.read

    def counted(ring: Ring, slot: int) -> object:
        reads.append(slot)
        return read(ring, slot)

    monkeypatch.setattr(Ring, "read", counted)
    first = told(history)
    assert len(reads) == 200
    assert told(history) == first
    assert told(history, minutes=2)["published"] == first["published"][-24:]  # type: ignore[index]
    assert len(reads) == 200
    # What was written late, or anew where the clock was put back, is told.
    history.rings[0].write(SLOT - 7, row(published=70), NONE)
    assert told(history)["published"][-7] == 63  # type: ignore[index]
    assert reads[200:] == [SLOT - 7] * 2


def test_of_many_confirms_the_shares_stay() -> None:
    _, history = made(2)
    many, few = history.rings
    many.write(SLOT - 1, row(), [1_000_000, 500_000, *NONE[2:]])
    few.write(SLOT - 1, row(), [0, 0, 20_000, *NONE[3:]])
    # 1.52 million: the worker that had few has 1.3 % of them.
    p99 = told(history)["confirm_p99"][0]  # type: ignore[index]
    assert p99 == pytest.approx(BUCKETS[2], rel=0.25)
    assert BUCKETS[1] < p99  # type: ignore[operator]
    assert told(history)["confirm_p50"] == [pytest.approx(BUCKETS[0] * 0.76, rel=0.01)]


def test_what_the_gateway_adds_is_told() -> None:
    _, history = made(2)
    one, other = history.rings
    counts = [0] * (len(ADDED) + 1)
    counts[bucket_of(ADDED, 20e-6)] = 980
    one.write(SLOT - 1, row(), NONE, counts)
    counts[bucket_of(ADDED, 20e-6)], counts[bucket_of(ADDED, 3e-3)] = 0, 20
    other.write(SLOT - 1, row(), took(0.5), counts)
    found = told(history)
    assert found["added_p50"] == [pytest.approx(20e-6, rel=0.42)]
    assert found["added_p99"] == [pytest.approx(3e-3, rel=0.42)]
    assert found["confirm_p50"] == [pytest.approx(0.5, rel=0.25)]
