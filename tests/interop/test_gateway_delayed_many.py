"""Many delayed messages, and kills; and by what means the ladder loses none."""

from __future__ import annotations

import json
import os

import pytest

from amqpgate.gateway.session.delay_ladder import LOWEST, PREFIX, end_of, rung_name
from tests.interop.delayed.course import EXCHANGE, course
from tests.interop.delayed_messages import pending, run

pytestmark = pytest.mark.slow


def test_each_queue_of_the_ladder_waits_for_confirms() -> None:
    """RabbitMQ falls back to at most once, without a word, where a queue lacks anything that it needs."""
    with course(rate=0, shortest=0.1, longest=1, publishers=1) as made:
        made.go_direct()
        worked = made.node.eval(
            "[Name || {_, Worker, _, _} <- supervisor:which_children(rabbit_fifo_dlx_sup),"
            " begin {_, _, _, Name} = element(2, sys:get_state(Worker)), true end]."
        )
        queues = {str(row["name"]) for row in made.node.rows("list_queues", "name")}
    rungs = {rung_name(k) for k in range(LOWEST, 11)}
    assert {name for name in queues if name.startswith(PREFIX)} == {
        *rungs,
        end_of(EXCHANGE),
        f"{PREFIX}sink",
    }
    assert {name for name in queues if f'"{name}"' in worked} == {*rungs, end_of(EXCHANGE)}


@pytest.mark.timeout(2400)
def test_a_hundred_thousand_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """They are spread over as many seconds as they take to be published. The error of time is told."""
    count = int(os.environ.get("AMQPGATE_DELAYED", "100000"))
    found = pending(count)
    with capsys.disabled():
        print(f"\n{count} pending: {json.dumps(found.late)}")
    assert found.confirmed == found.deliveries == count
    assert (found.lost, found.odd) == ([], [])


@pytest.mark.timeout(7200)
def test_none_is_lost_when_gateway_and_broker_are_killed(capsys: pytest.CaptureFixture[str]) -> None:
    """`AMQPGATE_DELAYED_SECONDS=3600` is the hour of `make delayed`."""
    seconds = float(os.environ.get("AMQPGATE_DELAYED_SECONDS", "60"))
    found = run(seconds=seconds, rate=100, kill_every=min(60, seconds / 4), longest=min(120, seconds / 3))
    with capsys.disabled():
        print(f"\n{found.text()}")
    assert sum(found.killed.values()) >= 2
    assert (found.lost, found.late_still, found.odd) == ([], [], [])
    assert not found.unmarked
