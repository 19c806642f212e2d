"""What a compatibility policy costs messages that it does not change: nothing. Counted, not timed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import InProcess
from tests.support.talker import relayed
from tests.unit.gateway import claiming
from tests.unit.gateway.conftest import Stage

#: With a claim check, all that a policy can do.
ITEMS = """
  deliveryLimits: [{limit: -1}]
  quorumQueues: [{queue: {prefix: orders}}]
  delayedExchanges: [{exchange: {prefix: later}}]
"""

#: As applications say them.
HEADERS = Table.of({"tenant": "acme", "order": 4711})


@pytest.fixture(params=["without", "with"])
def stage(
    request: pytest.FixtureRequest, make_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> Stage:
    """A gateway without a policy, and one with everything that there is."""
    if request.param == "without":
        return make_stage()
    return claiming.make(make_stage, monkeypatch, items=ITEMS).stage


def upcalls(running: InProcess) -> int:
    return sum(running.ask(running.gateway.totals).upcalls.values())


@pytest.mark.parametrize(
    ("exchange", "headers"),
    [("orders", HEADERS), ("later", HEADERS), ("orders", HEADERS.with_("x-delay", 100))],
)
def test_what_it_does_not_change_stays_on_the_data_path(stage: Stage, exchange: str, headers: Table) -> None:
    """Published with confirms, delivered and acknowledged: no upcall once the flows are there."""
    client, broker = stage.opened()
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)
    consume = amqp.BasicConsume(queue="orders", consumer_tag="t")
    relayed(client, broker, consume, amqp.BasicConsumeOk("t"), 1)
    properties = amqp.BasicProperties(content_type="application/json", headers=headers, delivery_mode=2)
    counts = []
    for number in range(1, 12):
        client.publish(b"body", "a.b", exchange=exchange, properties=properties)
        assert broker.expect_content(amqp.BasicPublish).header.properties == properties
        broker.say(amqp.BasicAck(number), 1)
        client.expect(amqp.BasicAck, 1)
        deliver = amqp.BasicDeliver("t", number, exchange=exchange, routing_key="a.b")
        broker.content(deliver, b"body", properties=properties)
        assert client.expect_content(amqp.BasicDeliver).header.properties == properties
        client.say(amqp.BasicAck(number), 1)
        broker.expect(amqp.BasicAck, 1)
        counts.append(upcalls(stage.running))
    # The first message makes the flows.
    assert counts[0] > 0
    assert counts == [counts[0]] * 11
