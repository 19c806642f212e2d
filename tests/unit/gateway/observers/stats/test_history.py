"""What a gateway writes into its hour: rates of what was counted, and how it stands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from amqpgate.gateway.observers.stats import history
from amqpgate.gateway.observers.stats.history import HistorySampler
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.history import RING, STEP, History
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.audited import ACCESS, MakeStage, confirming
from tests.unit.gateway.conftest import Stage

WALL = 1_800_000_000.0


class Hour:
    """The hour of a stage's gateway, with looks of one's own."""

    def __init__(self, stage: Stage) -> None:
        self.running = stage.running
        gateway = stage.running.gateway
        self.history = History.of(memoryview(bytearray(RING)))
        self.sampler = HistorySampler(
            self.history.rings[0],
            gateway.pump,
            gateway.observers.metrics,
            gateway.observers.decisions,
            gateway.observers.ended,
        )

    def look(self, wall: float, now: float) -> None:
        async def do() -> None:
            await self.sampler.look(self.running.gateway.sessions.values(), wall, now)

        self.running.ask(do)

    def told(self, wall: float) -> dict[str, JSON]:
        return trio.run(self.history.told, 60, wall + 2)


@pytest.fixture
def hour(make_stage: Callable[..., Stage]) -> Hour:
    return Hour(make_stage())


def test_rates_and_sessions(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    client, broker = stage.opened()
    confirming(client, broker)
    hour = Hour(stage)
    hour.sampler.begin(WALL, 100.0)
    for exchange, size in (("x", 3), ("y", 5), ("x", 7)):
        client.publish(b"b" * size, "big", exchange=exchange)
    for _ in range(2):
        broker.expect_content(amqp.BasicPublish)
    client.expect(amqp.BasicNack, 1)
    hour.sampler.confirmed(0.02)
    hour.look(WALL + STEP, 104.0)
    # It ends, counts on, and another one comes.
    client.close()
    stage.running.wait_idle()
    client, broker = stage.opened()
    client.publish(b"b", "big", exchange="x")
    broker.expect_content(amqp.BasicPublish)
    hour.look(WALL + 2 * STEP, 109.0)
    found = hour.told(WALL + 2 * STEP)
    assert found["published"] == [0.5, 0.2]
    assert found["published_bytes"] == [2.5, 0.2]
    assert found["refused"] == [0.25, 0.0]
    assert found["denied"] == [0.25, 0.0]
    assert found["sessions"] == [1, 1]
    assert found["confirm_p50"] == [pytest.approx(0.02, rel=0.25), None]
    assert found["memory"][0] > 1e6  # type: ignore[index, operator]
    assert found["cpu"][0] > 0  # type: ignore[index, operator]


def test_what_passes_before_the_first_look_is_told(make_stage: MakeStage) -> None:
    """A process begins in the midst of a slot: its row is of all that it has passed in it."""
    stage = make_stage()
    hour = Hour(stage)
    hour.sampler.begin(WALL + 4, 100.0)
    client, broker = stage.opened()
    client.publish(b"b", "big", exchange="x")
    broker.expect_content(amqp.BasicPublish)
    hour.look(WALL + STEP, 101.0)
    hour.look(WALL + 2 * STEP, 106.0)
    assert hour.told(WALL + 2 * STEP)["published"] == [1 / (STEP - 1), 0.0]


def test_one_row_for_each_slot(hour: Hour) -> None:
    hour.sampler.begin(WALL, 100.0)
    for seconds in range(3 * STEP):
        hour.look(WALL + seconds, 100.0 + seconds)
    assert hour.told(WALL + 3 * STEP)["at"] == [WALL + STEP, WALL + 2 * STEP]


def test_a_loop_that_stood_still_leaves_a_gap(hour: Hour) -> None:
    hour.sampler.begin(WALL, 100.0)
    for seconds in (STEP, 5 * STEP):
        hour.look(WALL + seconds, 100.0 + seconds)
    assert hour.told(WALL + 5 * STEP)["workers"] == [1, 0, 0, 0, 1]


def test_a_clock_that_is_put_back_invents_no_rate(hour: Hour) -> None:
    hour.sampler.begin(WALL, 100.0)
    hour.look(WALL - 3600, 100.0)
    assert hour.told(WALL + 10)["at"] == []
    hour.look(WALL - 3600 + STEP, 105.0)
    assert hour.told(WALL - 3600 + STEP)["workers"] == [1]


def test_a_clock_that_is_put_back_a_little_replaces_no_row(hour: Hour) -> None:
    hour.sampler.begin(WALL, 100.0)
    hour.sampler.confirmed(0.02)
    hour.look(WALL + STEP, 105.0)
    hour.look(WALL + STEP - 1, 106.0)
    hour.look(WALL + STEP, 107.0)
    hour.look(WALL + 2 * STEP, 112.0)
    found = hour.told(WALL + 2 * STEP)
    assert found["workers"] == [1, 1]
    assert found["confirm_p50"] == [pytest.approx(0.02, rel=0.25), None]


def test_rows_are_written_where_no_descriptor_is_left(hour: Hour, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> int:
        raise OSError(24, "Too many open files")

    hour.sampler.begin(WALL, 100.0)
    hour.look(WALL + STEP, 105.0)
    monkeypatch.setattr(history, "resident", none_left)
    hour.look(WALL + 2 * STEP, 110.0)
    found = hour.told(WALL + 2 * STEP)["memory"]
    assert isinstance(found, list)
    assert len(found) == 2
    assert found[0] == found[1]
