"""connection.blocked of the gateway's own: who is told that it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from amqpgate.gateway.session.blocked_notices import NOT_BLOCKED
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.publish import PublishHandler
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
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
    publishes = PublishHandler(cast(SessionChannels, None), cast(SessionPolicies, None))
    assert publishes.notice is NOT_BLOCKED

    def told(*waits: bool) -> list[Method | None]:
        return [publishes.look(waits=one) for one in waits]

    assert told(True, False) == [None, None]
    assert publishes.notice == NOT_BLOCKED
    assert told(True, True) == [None, blocked]
    assert not publishes.hears(amqp.ConnectionBlocked("memory")), "it knows that it is blocked"
    assert publishes.notice.is_by_broker
    assert told(False, False) == [None, None], "the broker still blocks"
    assert publishes.hears(amqp.ConnectionUnblocked())
    assert publishes.hears(amqp.ConnectionBlocked("memory"))
    assert told(True, True) == [None, None], "it knows already"
    assert publishes.hears(amqp.BasicQosOk()), "that is another matter"
    assert not publishes.hears(amqp.ConnectionUnblocked()), "we still block"
    assert told(False, False) == [None, unblocked]
    assert publishes.notice == NOT_BLOCKED


def test_who_does_not_take_notices_hears_none(make_stage: MakeStage) -> None:
    stage = make_stage(policies=rates("messages: 1/m, notify: true", burst=ONE_AND_A_HALF))
    client, _broker = stage.opened(properties=Table.of({"product": "old"}))
    for _ in range(3):
        client.publish(b"x", "a")
    eventually(lambda: counted(stage, "amqpgate_throttle_seconds").get(("few", "few"), 0) >= 3)
    client.hear_nothing(0.1)
