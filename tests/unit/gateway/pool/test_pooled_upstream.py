"""What a session asks of its way to the broker where it shares that: room, and who answers what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import let_in, logged_in, opened, pooled


@pytest.fixture
def narrow(make_stage: Callable[..., Stage]) -> Stage:
    """There are two channels for all."""
    pool = "spareChannels: 0, maxLinks: 1, channelsPerLink: 2"
    return make_stage(upstream=f"connections: pooled, pool: {{{pool}}}", limits="closeTimeout: 100ms")


def waiting(stage: Stage) -> int:
    [pool] = stage.running.gateway.pools.pools.values()
    return stage.running.call(lambda: len(pool.waiting))


def test_who_finds_no_channel_waits_until_another_session_leaves_one(narrow: Stage) -> None:
    client, broker = pooled(narrow)
    opened(client, broker, 2, 2)
    other = logged_in(narrow)
    other.say(amqp.ChannelOpen(), 9)
    eventually(lambda: waiting(narrow) == 1)
    client.say(amqp.ChannelClose(200, "", 0, 0), 2)
    client.expect(amqp.ChannelCloseOk, 2)
    broker.expect(amqp.ChannelClose, 2)
    # The number is nobody's until the broker has answered.
    broker.hear_nothing(0.05)
    broker.say(amqp.ChannelCloseOk(), 2)
    broker.expect(amqp.ChannelOpen, 2)
    broker.say(amqp.ChannelOpenOk(), 2)
    other.expect(amqp.ChannelOpenOk, 9)
    assert waiting(narrow) == 0


def test_who_goes_while_it_waits_takes_no_channel(narrow: Stage) -> None:
    client, broker = pooled(narrow)
    opened(client, broker, 2, 2)
    other = logged_in(narrow)
    other.say(amqp.ChannelOpen(), 1)
    eventually(lambda: waiting(narrow) == 1)
    other.reset()
    eventually(lambda: waiting(narrow) == 0)
    client.say(amqp.ChannelClose(200, "", 0, 0), 2)
    client.expect(amqp.ChannelCloseOk, 2)
    broker.expect(amqp.ChannelClose, 2)
    broker.say(amqp.ChannelCloseOk(), 2)
    broker.hear_nothing(0.05)


def test_who_needs_more_than_there_are_gets_a_connection_of_its_own(narrow: Stage) -> None:
    client, broker = pooled(narrow)
    opened(client, broker, 2, 2)
    client.say(amqp.ChannelOpen(), 3)
    for _ in range(2):
        there, _limit = broker.hear()
        broker.say(amqp.BasicQosOk(), there)
    own = narrow.broker()
    let_in(own)
    for channel in (1, 2):
        own.expect(amqp.ChannelOpen, channel)
        own.say(amqp.ChannelOpenOk(), channel)
    for channel in (1, 2):
        broker.expect(amqp.ChannelClose, channel)
    own.expect(amqp.ChannelOpen, 3)
    own.say(amqp.ChannelOpenOk(), 3)
    client.expect(amqp.ChannelOpenOk, 3)
    [session] = narrow.running.gateway.sessions.values()
    assert not session.upstream.is_pooled


def test_a_confirm_select_is_the_brokers_to_answer_where_no_channel_is_ready(shared: Stage) -> None:
    client, broker = pooled(shared)
    client.say(amqp.ConfirmSelect(), 1)
    broker.expect(amqp.ConfirmSelect, 1)
    client.hear_nothing(0.05)
    broker.say(amqp.ConfirmSelectOk(), 1)
    client.expect(amqp.ConfirmSelectOk, 1)


@pytest.mark.parametrize("answer", [amqp.BasicCancelOk("c"), amqp.ChannelFlowOk(active=True)])
def test_an_answer_that_the_broker_has_not_asked_for_ends_its_session_alone(
    shared: Stage, answer: amqp.BasicCancelOk
) -> None:
    """On the connection that is shared it would end all."""
    client, broker = pooled(shared)
    client.say(answer, 1)
    assert client.expect(amqp.ConnectionClose).reply_code == 503
    broker.expect(amqp.ChannelClose, 1)
    broker.hear_nothing(0.05)
