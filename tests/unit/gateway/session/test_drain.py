"""Which sessions a drain tells when."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from amqpgate.gateway.session.drain import Times, staying
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.leaving import DrainStage, confirming, published, say_goodbye

MakeStage = Callable[..., Stage]


@pytest.mark.parametrize(
    ("window", "close_timeout", "times"),
    [
        (25, 5, Times(16, 20, 25)),
        (60, 5, Times(44, 55, 60)),
        (2, 5, Times(0.8, 1, 5)),
        (0, 5, Times(0, 0, 5)),
    ],
)
def test_the_times_of_a_drain(window: float, close_timeout: float, times: Times) -> None:
    assert attrs.astuple(Times.of(window, close_timeout)) == pytest.approx(attrs.astuple(times))


def test_few_stay_until_the_end_and_many_go_evenly() -> None:
    times = Times.of(25, 5)
    assert [staying(1, after, times) for after in (0, 8, 15.9, 16)] == [1, 1, 1, 0]
    assert [staying(1000, after, times) for after in (0, 4, 8, 12, 16, 17)] == [1000, 750, 500, 250, 0, 0]
    assert staying(0, 0, times) == 0
    assert staying(5, 0, Times.of(0, 5)) == 0


def test_slices_begin_with_the_oldest(stage: Stage) -> None:
    pairs = [stage.opened() for _ in range(4)]
    drain = DrainStage.begin(stage)
    drain.look(0)
    assert drain.live == 4
    drain.look(8)
    assert drain.live == 2
    for pair in pairs[:2]:
        say_goodbye(*pair)
    for client, broker in pairs[2:]:
        published(client, broker, b"goes on")
    drain.look(8)
    assert drain.live == 2
    drain.look(16)
    for pair in pairs[2:]:
        say_goodbye(*pair)


def test_who_leaves_by_himself_has_been_counted(stage: Stage) -> None:
    pairs = [stage.opened() for _ in range(4)]
    drain = DrainStage.begin(stage)
    for client, broker in pairs[:2]:
        client.close()
        broker.expect(amqp.ConnectionClose)
        broker.close()
    eventually(lambda: drain.live == 2)
    drain.look(8)
    assert drain.live == 2


def test_who_is_closing_already_is_left_alone(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    DrainStage.begin(stage).look()
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    client.close()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes()["closed"] == 1


def test_at_the_end_who_still_waits_is_told(make_stage: MakeStage) -> None:
    stage = make_stage(limits="drainTimeout: 200ms")
    client, broker = confirming(stage)
    published(client, broker, b"never confirmed")
    stage.running.call(stage.running.gateway.drain)
    say_goodbye(client, broker)
    stage.running.join()


def test_a_second_drain_changes_nothing(stage: Stage) -> None:
    client, broker = stage.opened()
    gateway = stage.running.gateway
    stage.running.call(lambda: gateway.drain(60))
    stage.running.call(lambda: gateway.drain(0))
    published(client, broker, b"goes on")
    assert stage.running.call(gateway.standing).state == "draining"
