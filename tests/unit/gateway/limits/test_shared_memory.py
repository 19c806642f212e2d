"""Buckets and counts that several processes share."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol

import attrs
import pytest

from amqpgate.datapath.flows import LEVEL
from amqpgate.gateway.limits import shared_memory as module
from amqpgate.gateway.limits.shared_memory import SLOTS, SharedMemory
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.policy import SharedLimit
from amqpgate.telemetry.history import SERIES, History

LIMIT = SharedLimit("p", "l", ("bob",), (("messages", 1e-9),), 3e9, action="reject", concurrent=2)
NOW = 1e9


@pytest.fixture(params=["reference", "_scan"])
def engine(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(f"amqpgate.datapath.{request.param}")


@pytest.fixture
def made() -> Iterator[SharedMemory]:
    board = SharedMemory.make(3)
    yield board
    os.close(board.fd)


def worker(made: SharedMemory, number: int) -> TokenBuckets:
    return TokenBuckets(shared_memory=SharedMemory(made.fd, made.workers, number))


def test_two_buckets_in_the_same_place_are_one(engine: ModuleType) -> None:
    memory = bytearray(3 * LEVEL)
    one, other = engine.Bucket(10.0, 3.0), engine.Bucket(10.0, 3.0)
    one.share(memory, LEVEL)
    other.share(memory, LEVEL)
    one.tokens, one.stamp = 3.0, 100.0
    other.take(5)
    assert (one.tokens, one.stamp) == (-2.0, 100.0)
    assert one.ready_at(100.0) == pytest.approx(100.3)
    assert other.ready_at(100.25) == 100.25
    assert one.tokens == pytest.approx(0.5)
    assert memory[:LEVEL] == memory[2 * LEVEL :] == bytes(LEVEL)


@pytest.mark.parametrize("offset", [-8, 4, LEVEL + 8, 1 << 40])
def test_a_place_that_there_is_not(engine: ModuleType, offset: int) -> None:
    bucket = engine.Bucket(1.0, 2.0)
    with pytest.raises(ValueError, match="no place"):
        bucket.share(bytearray(2 * LEVEL), offset)
    assert bucket.tokens == 2.0
    bucket.share(bytearray(2 * LEVEL), LEVEL)
    with pytest.raises(ValueError, match="shared already"):
        bucket.share(bytearray(2 * LEVEL), 0)


class Pipe(Protocol):
    """One end of a conversation with a process."""

    def send(self, said: float | None) -> None: ...

    def recv(self) -> float | None: ...


def _draw(fd: int, number: int, times: int, pipe: Pipe) -> None:
    (share,) = TokenBuckets(shared_memory=SharedMemory(fd, 3, number)).take((LIMIT,), NOW).shares
    pipe.send(None)
    pipe.recv()
    for _ in range(times):
        share.buckets["messages"].take(1)
    pipe.send(share.buckets["messages"].tokens)
    pipe.recv()


def test_no_token_is_lost_between_processes_and_a_killed_one_keeps_nothing(made: SharedMemory) -> None:
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    (share,) = worker(made, 0).take((LIMIT,), NOW).shares
    for number in (1, 2):
        ours, theirs = context.Pipe()
        process = context.Process(target=_draw, args=(made.fd, number, 200_000, theirs))
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    assert share.together == 3
    for pipe in pipes:
        pipe.send(None)
    for pipe in pipes:
        pipe.recv()
    assert share.buckets["messages"].tokens == pytest.approx(3 - 400_000, abs=0.01)
    for number, process in enumerate(processes, 1):
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        made.forget(number)
    assert share.together == 1


def test_connections_at_once_are_those_of_all(made: SharedMemory) -> None:
    one, other = worker(made, 0), worker(made, 1)
    first = one.take((LIMIT,), NOW)
    second = other.take((LIMIT,), NOW)
    assert first.shares[0].together == second.shares[0].together == 2
    other.give_back(second, NOW)
    assert first.shares[0].together == 1


def test_what_is_spent_stays_so_while_nobody_uses_it_and_other_limits_are_others(made: SharedMemory) -> None:
    one, other = worker(made, 0), worker(made, 1)
    limits = one.take((LIMIT,), NOW)
    limits.shares[0].buckets["messages"].take(2)
    one.give_back(limits, NOW)
    assert len(one) == 0
    assert other.take((LIMIT,), NOW).shares[0].buckets["messages"].tokens == pytest.approx(1)
    for fresh in (
        attrs.evolve(LIMIT, key=("eve",)),
        attrs.evolve(LIMIT, burst=4e9),
        attrs.evolve(LIMIT, rates=(("messages", 2e-9),)),
    ):
        bucket = other.take((fresh,), NOW).shares[0].buckets["messages"]
        assert bucket.tokens == bucket.burst


def test_a_limit_of_one_connection_is_nobody_elses(made: SharedMemory) -> None:
    own = attrs.evolve(LIMIT, is_own=True)
    worker(made, 0).take((own,), NOW).shares[0].buckets["messages"].take(3)
    assert worker(made, 1).take((own,), NOW).shares[0].buckets["messages"].tokens == 3


def test_without_a_place_a_worker_counts_alone(
    made: SharedMemory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Places that are in use, or not full again, are nobody else's; those that are, are given away."""
    monkeypatch.setattr(module, "NEAR", 0)
    buckets = worker(made, 0)
    (share,) = buckets.take((LIMIT,), NOW).shares
    assert (share.slots, share.counted, share.buckets["messages"].tokens) == ((), None, 3)
    assert "counted by each worker alone" in caplog.text


def test_a_slot_that_is_idle_is_given_to_the_next(
    made: SharedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLOTS", 1)
    monkeypatch.setattr(module, "NEAR", 1)
    limit = attrs.evolve(LIMIT, concurrent=None, rates=(("messages", 1.0),), burst=5.0)
    other = attrs.evolve(limit, key=("eve",))
    buckets = worker(made, 0)
    limits = buckets.take((limit,), NOW)
    assert limits.shares[0].slots
    assert not buckets.take((other,), NOW).shares[0].slots
    limits.shares[0].buckets["messages"].take(1e6)
    buckets.give_back(limits, NOW)
    again = attrs.evolve(limit, key=("mallory",))
    assert not buckets.take((again,), NOW).shares[0].slots, "it is not full yet"
    back = buckets.take((limit,), NOW)
    back.shares[0].buckets["messages"].take(-1e6)
    buckets.give_back(back, NOW)
    assert buckets.take((attrs.evolve(limit, key=("zoe",)),), NOW).shares[0].slots


def test_the_hour_of_each_worker_is_its_own_and_outlives_it(made: SharedMemory) -> None:
    whole = History.of(made.history)
    assert len(whole.rings) == 3
    for number in range(3):
        mine = History.of(SharedMemory(made.fd, made.workers, number).history).rings[number]
        mine.write(100, [float(number)] * len(SERIES))
        made.forget(number)
    assert [values[0] for ring in whole.rings for values, _ in [ring.read(100) or ([], {})]] == [
        0.0,
        1.0,
        2.0,
    ]
    # Whatever a worker is forgotten for.
    made.put(2, SLOTS - 1, 1, 7)
    assert whole.rings[0].read(100) is not None
