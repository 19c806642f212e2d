"""Which policies hold for whoever asks while others take their place."""

from __future__ import annotations

from amqpgate.gateway.session.policies_in_force import PoliciesInForce
from amqpgate.policy import PolicySet
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import CAPABILITIES
from tests.unit.gateway.conftest import Stage
from tests.unit.policy.build_set import document, policies

CLOSED = policies(document("effect: deny, operations: [connection.open]", subjects="{user: guest}"))


def test_whoever_has_it_sees_those_that_hold_now() -> None:
    before, after = PolicySet.empty(), PolicySet.empty("deny")
    shared = PoliciesInForce(before)
    seen = [shared.now]
    shared.replace(after)
    assert [*seen, shared.now] == [before, after]


def test_who_logs_in_meanwhile_is_judged_by_those_that_have_come(stage: Stage) -> None:
    """It was let in to log in under others."""
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    stage.running.call(lambda: stage.running.gateway.use(CLOSED))
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    assert client.expect(amqp.ConnectionClose).reply_code == 530
    broker.expect(amqp.ConnectionTuneOk)
    assert not isinstance(broker.hear()[1], amqp.ConnectionOpen)


def test_who_waits_for_open_ok_is_judged_by_them_from_its_first_method_on(stage: Stage) -> None:
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    held = policies(document("effect: allow, operations: [basic.get]", subjects="{user: guest}"))
    stage.running.call(lambda: stage.running.gateway.use(held))
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 1)
    client.say(amqp.QueueDeclare(queue="q"), 1)
    assert broker.expect(amqp.ChannelClose, 1).reply_code == 403
