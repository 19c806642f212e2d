"""Closes of the connection: who says what, and when the session is over."""

from __future__ import annotations

import pytest

from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker, relayed
from tests.unit.gateway.conftest import Stage

CLOSE, CLOSE_OK = amqp.ConnectionClose(200, "bye"), amqp.ConnectionCloseOk()


SHUTDOWN = amqp.ConnectionClose(
    320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
)


def heard_nothing(talker: Talker) -> None:
    """What was said until now has brought nothing: the answer to something else comes first."""
    talker.sock.settimeout(0.1)
    with pytest.raises(TimeoutError):
        talker.frame()
    talker.sock.settimeout(20)


def test_the_clients_close_and_the_brokers_answer_pass(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(CLOSE)
    assert broker.expect(amqp.ConnectionClose) == CLOSE
    heard_nothing(client)
    broker.say(CLOSE_OK)
    client.expect(amqp.ConnectionCloseOk)
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


def test_the_brokers_close_and_the_clients_answer_pass(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(SHUTDOWN)
    assert client.expect(amqp.ConnectionClose) == SHUTDOWN
    client.say(CLOSE_OK)
    broker.expect(amqp.ConnectionCloseOk)
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


@pytest.mark.parametrize("first", ["client", "broker"])
def test_crossing_closes_are_both_answered(stage: Stage, first: str) -> None:
    client, broker = stage.opened()
    client.say(CLOSE)
    broker.say(SHUTDOWN)
    broker.expect(amqp.ConnectionClose)
    client.expect(amqp.ConnectionClose)
    one, other = (client, broker) if first == "client" else (broker, client)
    one.say(CLOSE_OK)
    other.expect(amqp.ConnectionCloseOk)
    other.say(CLOSE_OK)
    one.expect(amqp.ConnectionCloseOk)
    for talker in (client, broker):
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"closed": 1}


def test_what_comes_behind_the_brokers_close_is_for_nobody(stage: Stage) -> None:
    """A broker may have said it before it heard close-ok."""
    client, broker = stage.opened(channels=2)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    broker.content(amqp.BasicDeliver("t", 1, False, "", "q"), b"late" * 50_000)
    broker.say(amqp.BasicAck(1), 1)
    broker.say(amqp.ExchangeDeclareOk(), 2)
    client.expect(amqp.ExchangeDeclareOk, 2)
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    # A channel that the client has closed is another matter.
    client.say(amqp.ChannelClose(200, "", 0, 0), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    broker.say(amqp.BasicAck(1), 1)
    assert "which is not open" in client.expect(amqp.ConnectionClose).reply_text


def test_a_close_ok_that_nobody_asked_for_is_a_violation(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(CLOSE_OK)
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id) == (504, 10, 51)
    assert broker.expect(amqp.ConnectionClose).reply_code == 320


def test_a_broker_that_closes_and_drops_at_once(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(SHUTDOWN)
    broker.close()
    assert client.expect(amqp.ConnectionClose) == SHUTDOWN
    client.hear_nothing(0.2)
    client.say(CLOSE_OK)
    client.expect_end()


def test_a_client_that_has_been_told_is_not_told_again(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(SHUTDOWN)
    client.expect(amqp.ConnectionClose)
    # What it says after its mistake is its answer to the close that it knows of.
    client.raw(encode_frame(8, 1, b"") + method_frame(0, CLOSE_OK))
    client.expect_end()
    client.close()
    broker.expect_end()
    broker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"violation": 1}


def test_a_client_may_close_and_drop_at_once(stage: Stage) -> None:
    client, broker = stage.opened()
    client.say(CLOSE)
    client.close()
    broker.expect(amqp.ConnectionClose)
    # The broker may take its time; it is waited for.
    broker.hear_nothing(0.2)
    broker.say(CLOSE_OK)
    broker.expect_end()
