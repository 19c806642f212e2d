"""The close of a session that shares its connection: its client is answered when the broker has heard all."""

from __future__ import annotations

import pytest

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.pool.pooled import asked, joined, opened, pooled


def closes(client: Talker) -> None:
    client.say(amqp.ConnectionClose(200, "bye", 0, 0))


def test_where_nothing_is_under_way_the_broker_is_not_waited_for(shared: Stage) -> None:
    client, broker = pooled(shared)
    closes(client)
    client.expect(amqp.ConnectionCloseOk)
    client.expect_end()
    broker.expect(amqp.ChannelClose, 1)
    eventually(lambda: shared.running.outcomes() == {"closed": 1})


def test_what_was_asked_before_is_heard_before_the_answer(shared: Stage) -> None:
    client, broker = pooled(shared)
    opened(client, broker, 2, 2)
    for channel in (1, 2):
        asked(client, broker, channel, channel)
    closes(client)
    for channel in (1, 2):
        broker.expect(amqp.ChannelClose, channel)
    # What the broker says of it now is for nobody: the client has said that it hears nothing any more.
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.hear_nothing(0.05)
    broker.say(amqp.ChannelCloseOk(), 2)
    client.expect(amqp.ConnectionCloseOk)
    eventually(lambda: shared.running.outcomes() == {"closed": 1})


def test_only_its_own_channels_close(shared: Stage) -> None:
    client, broker = pooled(shared)
    other = joined(shared, broker)
    closes(client)
    client.expect(amqp.ConnectionCloseOk)
    broker.expect(amqp.ChannelClose, 1)
    asked(other, broker, 1, 2)
    broker.say(amqp.QueueDeclareOk("q", 0, 0), 2)
    other.expect(amqp.QueueDeclareOk, 1)


def test_a_broker_that_goes_meanwhile_has_heard_all_that_it_will(shared: Stage) -> None:
    client, broker = pooled(shared)
    asked(client, broker)
    closes(client)
    broker.expect(amqp.ChannelClose, 1)
    broker.close()
    client.expect(amqp.ConnectionCloseOk)
    client.expect_end()


@pytest.mark.parametrize("resets", [False, True])
def test_a_client_that_goes_meanwhile_leaves_its_channels_closed(shared: Stage, resets: bool) -> None:
    client, broker = pooled(shared)
    asked(client, broker)
    closes(client)
    broker.expect(amqp.ChannelClose, 1)
    if resets:
        client.reset()
    else:
        client.close()
    eventually(lambda: not shared.running.gateway.sessions)
    broker.say(amqp.ChannelCloseOk(), 1)
    # The number is free: the next session has it.
    joined(shared, broker, 1)


def test_a_client_that_says_it_twice_or_goes_on_is_not_heard(shared: Stage) -> None:
    client, broker = pooled(shared)
    asked(client, broker)
    client.raw(
        method_frame(0, amqp.ConnectionClose(200, "bye", 0, 0)) * 2
        + method_frame(1, amqp.QueueDelete(queue="q"))
        + method_frame(2, amqp.ChannelOpen())
    )
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ConnectionCloseOk)
    client.expect_end()
    broker.hear_nothing(0.05)
