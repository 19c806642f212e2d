"""connection.blocked of the gateway's own: who is told that it waits."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.gateway.session.blocked_notices import BlockedNotice
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.rated import ONE_AND_A_HALF, counted, rates

MakeStage = Callable[..., Stage]


def test_who_waits_is_told_if_it_takes_it(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("messages: 1/m, notify: true", burst=ONE_AND_A_HALF))
    client, _broker = stage.opened()
    for _ in range(3):
        client.publish(b"x", "a")
    assert client.expect(amqp.ConnectionBlocked).reason == "rate limit reached"
    waits = counted(stage, "amqpgate_throttle_seconds")
    assert waits["few", "few"] >= 2
    stage.running.call(lambda: stage.running.gateway.use(type(stage.running.gateway.policies).empty()))
    client.expect(amqp.ConnectionUnblocked)


def test_a_notice_takes_two_looks_and_respects_the_brokers() -> None:
    blocked, unblocked = amqp.ConnectionBlocked("rate limit reached"), amqp.ConnectionUnblocked()
    notice = BlockedNotice(is_understood=True)
    assert [notice.look(waits=waits) for waits in (True, False, True, True)] == [None, None, None, blocked]
    assert not notice.passes(amqp.ConnectionBlocked("memory")), "it knows that it is blocked"
    assert [notice.look(waits=False) for _ in range(2)] == [None, None], "the broker still blocks"
    assert notice.passes(amqp.ConnectionUnblocked())
    assert notice.passes(amqp.ConnectionBlocked("memory"))
    assert [notice.look(waits=True) for _ in range(2)] == [None, None], "it knows already"
    assert not notice.passes(amqp.ConnectionUnblocked()), "we still block"
    assert [notice.look(waits=False) for _ in range(2)] == [None, unblocked]
    assert BlockedNotice().look(waits=True) is BlockedNotice().look(waits=True) is None


def test_who_does_not_take_notices_hears_none(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("messages: 1/m, notify: true", burst=ONE_AND_A_HALF))
    client, _broker = stage.opened(properties=Table.of({"product": "old"}))
    for _ in range(3):
        client.publish(b"x", "a")
    eventually(lambda: counted(stage, "amqpgate_throttle_seconds").get(("few", "few"), 0) >= 3)
    client.hear_nothing(0.1)
