"""Slopes and their errors, and what is counted of a process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from .churn import Sample, growths, levels, look, probed, slope

_HOUR = [number / 900 for number in range(900)]


def test_a_rise_is_found_in_noise() -> None:
    dice = random.Random(1)
    rises, error = slope(_HOUR, [50 + 5 * at + dice.gauss(0, 2) for at in _HOUR])
    assert abs(rises - 5) < 3 * error
    assert error < 1


@pytest.mark.parametrize("leak", [0, 30])
def test_what_rises_is_told_from_what_is_level(leak: float) -> None:
    dice = random.Random(2)
    samples = [
        Sample(3600 * at, 80 + dice.gauss(0, 1), at, round(100 + leak * at + dice.gauss(0, 3)), 40)
        for at in _HOUR
    ]
    judged = {level.what: level.is_level for level in levels(samples)}
    assert judged == {"memory, MiB": True, "descriptors": not leak, "tasks": True}


def test_the_beginning_does_not_count() -> None:
    samples = [Sample(3600 * at, min(100, 2000 * at), at, 10, 10) for at in _HOUR]
    memory = levels(samples)[0]
    assert (memory.mean, memory.slope) == (100, 0)


@pytest.mark.parametrize("leak", [0, 40])
def test_what_fills_up_is_told_from_what_leaks_by_connections(leak: float) -> None:
    """80 MiB, 2 of which fill up within 100,000 connections, and so many KiB for each 100,000."""
    samples = [
        Sample(300 * at, 80 + min(4 * at, 2) + leak * 2 * at / 1024, 0, 10, 10, round(200_000 * at))
        for at in _HOUR
    ]
    first, last, quarter = growths(samples)
    assert first.slope == pytest.approx(2048 + leak, rel=0.01)
    assert (last.slope, quarter.slope) == pytest.approx((leak, leak), abs=0.1)
    assert (last.connections, quarter.connections) == pytest.approx((100_000, 50_000), rel=0.01)


def test_nobody_came() -> None:
    assert growths([Sample(3600 * at, 80, 0, 10, 10) for at in _HOUR]) == []


_GUEST = """
import mmap, os
ring = os.memfd_create("amqpgate-limits")
os.ftruncate(ring, 1 << 21)
ring = mmap.mmap(ring, 1 << 21)
ring.write(bytes(1 << 20))
import trio
async def main():
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        print("ready", flush=True)
        input()
import trio.testing
calls = []
trio.lowlevel.start_guest_run(main, run_sync_soon_threadsafe=calls.append, done_callback=print)
while True:
    while calls:
        calls.pop(0)()
"""


def test_tasks_of_a_gateway_are_counted(tmp_path: Path) -> None:
    with probed(tmp_path / "tasks") as tasks:
        child = subprocess.Popen(
            [sys.executable, "-c", _GUEST], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    assert "AMQPGATE_TASKS" not in os.environ
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"ready\n"
        sample = look(child.pid, tasks)
        # trio's own two, the main task and its three.
        assert sample.tasks == 6
        assert sample.descriptors > 3
        assert 1 < sample.memory < 60
        # What was written of it, and not all that it may have.
        assert sample.ring == 1
    finally:
        child.kill()
        child.communicate()
