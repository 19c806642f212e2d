"""What sessions have passed, summed by passage."""

from __future__ import annotations

from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, RETURNED, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.audited import ACCESS, MakeStage, confirming
from tests.unit.gateway.conftest import Stage


def totals(stage: Stage) -> SessionTotals:
    """Of the sessions that live."""
    found = SessionTotals()
    stage.running.call(lambda: [found.add(one) for one in stage.running.gateway.sessions.values()])
    return found


def test_each_message_is_in_one_passage(make_stage: MakeStage) -> None:
    stage = make_stage(policies=ACCESS % "nack")
    client, broker = stage.opened()
    confirming(client, broker)
    for exchange, size in (("x", 3), ("y", 5), ("x", 4)):
        client.publish(b"b" * size, "big", exchange=exchange)
    for _ in range(2):
        broker.expect_content(amqp.BasicPublish)
    client.expect(amqp.BasicNack, 1)
    client.say(amqp.BasicConsume(queue="q", consumer_tag="c"), 1)
    broker.expect(amqp.BasicConsume, 1)
    broker.say(amqp.BasicConsumeOk("c"), 1)
    client.expect(amqp.BasicConsumeOk, 1)
    for method, size in (
        (amqp.BasicDeliver("c", 1, False, "x", "k"), 10),
        (amqp.BasicDeliver("c", 2, False, "x", "k"), 20),
        (amqp.BasicReturn(312, "NO_ROUTE", "x", "k"), 7),
    ):
        broker.content(method, b"b" * size)
        client.expect_content(type(method))
    expected = {
        PUBLISHED: Traffic(2, 7),
        REFUSED: Traffic(1, 5),
        DELIVERED: Traffic(2, 30),
        GOT: Traffic(0, 0),
        RETURNED: Traffic(1, 7),
    }
    assert totals(stage).traffic() == expected
    # What is over counts as it was, once.
    ended = stage.running.gateway.observers.ended
    assert stage.running.call(ended.copy).traffic()[PUBLISHED] == Traffic(0, 0)
    client.close()
    stage.running.wait_idle()
    assert ended.traffic() == expected


def test_what_is_got_is_no_delivery(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(amqp.BasicGet(queue="q"), 1)
    broker.expect(amqp.BasicGet, 1)
    broker.content(amqp.BasicGetOk(1, False, "x", "k", 0), b"12345")
    client.expect_content(amqp.BasicGetOk)
    found = totals(stage).traffic()
    assert (found[GOT], found[DELIVERED]) == (Traffic(1, 5), Traffic(0, 0))


def test_a_copy_is_added_to_and_the_first_is_not() -> None:
    first = SessionTotals(published=3, published_bytes=30)
    second = first.copy()
    second.published += 1
    assert (first.published, second.traffic()[PUBLISHED]) == (3, Traffic(4, 30))
