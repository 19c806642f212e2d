"""Messages to the client: what waits for a limit, and what is shown of them to whom."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.rated import ONE_AND_A_HALF, arrives, deliver, rates, received
from tests.unit.gateway.tapped import tap

MakeStage = Callable[..., Stage]


@pytest.mark.parametrize(("limit", "size"), [("deliverMessages: 1/m", 1), ("deliverBytes: 1000/m", 1000)])
def test_deliveries_wait_and_publishes_do_not(make_stage: MakeStage, limit: str, size: int) -> None:
    stage = make_stage(policies=rates(limit, burst=ONE_AND_A_HALF))
    client, broker = stage.opened()
    deliver(broker, 4, size)
    received(client, 2)
    client.hear_nothing(0.3)
    for _ in range(5):
        client.publish(b"x" * 1000, "a")
    arrives(broker, [b"x" * 1000] * 5)


def test_who_closes_its_connection_need_not_wait_for_deliveries(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("deliverMessages: 1/m", burst=ONE_AND_A_HALF))
    client, broker = stage.opened()
    deliver(broker, 4)
    received(client, 2)
    client.hear_nothing(0.2)
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    while not isinstance(method := client.hear()[1], amqp.ConnectionCloseOk):
        assert isinstance(method, amqp.BasicDeliver)
        client.content_of(method)


def test_limits_of_deliveries_come_and_go_with_the_policies(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("deliverMessages: 1/m", burst=ONE_AND_A_HALF))
    gateway = stage.running.gateway
    client, broker = stage.opened()
    deliver(broker, 3)
    received(client, 2)
    client.hear_nothing(0.2)
    policies = gateway.policies
    stage.running.call(lambda: gateway.use(type(policies).empty()))
    assert client.expect_content(amqp.BasicDeliver).method.delivery_tag == 3  # type: ignore[attr-defined]
    stage.running.call(lambda: gateway.use(policies))
    deliver(broker, 3)
    client.hear_nothing(0.2)


# -- what is shown


@pytest.mark.parametrize("size", [0, 9, 100_000])
def test_each_kind_of_message_arrives_as_it_was_while_somebody_looks_on(stage: Stage, size: int) -> None:
    client, broker = stage.opened()
    tap(stage)
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    for method in (
        amqp.BasicDeliver("c", 1, False, "x", "k"),
        amqp.BasicGetOk(2, False, "x", "k", 0),
        amqp.BasicReturn(312, "NO_ROUTE", "x", "k"),
    ):
        broker.content(method, b"b" * size)
        found = client.expect_content(type(method))
        assert (found.method, found.body) == (method, b"b" * size)


def test_a_message_that_nobody_asked_for_arrives_all_the_same(stage: Stage) -> None:
    """Of no queue that is known."""
    client, broker = stage.opened()
    tap(stage)
    broker.content(amqp.BasicGetOk(1, False, "x", "k", 0), b"body")
    assert client.expect_content(amqp.BasicGetOk).body == b"body"
    client.say(amqp.BasicAck(1), 1)
    assert broker.expect(amqp.BasicAck, 1).delivery_tag == 1
