"""Established sessions: what ends them, and what passes."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.unit.gateway.conftest import Stage

CLOSE_OK = amqp.ConnectionCloseOk()


# -- what does not belong there ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "channel", "answer"),
    [
        (
            amqp.ConnectionBlocked(),
            0,
            (504, 10, 60, "CHANNEL_ERROR - unexpected method in connection state running"),
        ),
        (
            amqp.ChannelOpen(),
            0,
            (504, 20, 10, "CHANNEL_ERROR - unexpected method in connection state running"),
        ),
        (amqp.QueueDeclareOk(), 1, (503, 50, 11, "COMMAND_INVALID - unimplemented method")),
        (amqp.ConnectionClose(), 1, (503, 10, 50, "COMMAND_INVALID - unimplemented method")),
        (amqp.ChannelCloseOk(), 1, (503, 20, 41, "COMMAND_INVALID - unimplemented method")),
        (amqp.ChannelOpen(), 1, (504, 20, 10, "CHANNEL_ERROR - second 'channel.open' seen")),
        (amqp.QueueDeclare(), 2, (504, 50, 10, "CHANNEL_ERROR - expected 'channel.open'")),
        (amqp.QueueDeclareOk(), 2, (504, 50, 11, "CHANNEL_ERROR - expected 'channel.open'")),
        (amqp.BasicPublish(), 2, (504, 60, 40, "CHANNEL_ERROR - expected 'channel.open'")),
    ],
)
def test_a_clients_violation_ends_the_connection(
    stage: Stage, said: Method, channel: int, answer: tuple[int, int, int, str]
) -> None:
    client, broker = stage.opened()
    client.say(said, channel)
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, close.class_id, close.method_id, close.reply_text) == answer
    assert broker.expect(amqp.ConnectionClose) == amqp.ConnectionClose(
        320, "CONNECTION_FORCED - client broke the protocol"
    )
    for talker in (client, broker):
        talker.say(CLOSE_OK)
        talker.expect_end()
        talker.close()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"violation": 1}


def test_more_channels_than_were_agreed(stage: Stage) -> None:
    client, _ = stage.opened(2, tune=amqp.ConnectionTune(2, 131072, 0))
    client.say(amqp.ChannelOpen(), 3)
    text = "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    assert client.expect(amqp.ConnectionClose) == amqp.ConnectionClose(530, text)


@pytest.mark.parametrize(
    ("said", "channel"),
    [
        (amqp.ConnectionUpdateSecret(), 0),
        (amqp.QueueDeclare(), 1),
        (amqp.BasicPublish(), 1),
        (amqp.ConnectionBlocked(), 1),
        # The client has opened channel 1, and no other.
        (amqp.BasicAck(1), 7),
        (amqp.BasicNack(1), 7),
        (amqp.QueueDeclareOk(queue="q"), 7),
        (amqp.BasicConsumeOk("t"), 7),
        (amqp.BasicCancel("t"), 7),
        (amqp.BasicCancelOk("t"), 7),
        (amqp.TxCommitOk(), 7),
        (amqp.BasicGetEmpty(), 7),
        (amqp.BasicDeliver("t", 1, False, "", "k"), 7),
        (amqp.ChannelOpenOk(), 7),
        (amqp.ChannelClose(404, "NOT_FOUND - nothing"), 7),
        (amqp.ChannelCloseOk(), 7),
        (amqp.ChannelCloseOk(), 1),
    ],
)
def test_a_brokers_violation_is_told_both(stage: Stage, said: Method, channel: int) -> None:
    client, broker = stage.opened()
    broker.say(said, channel)
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 541
    assert close.reply_text.startswith("INTERNAL_ERROR - upstream broke the protocol: ")
    assert broker.expect(amqp.ConnectionClose).reply_code == 320


# -- what passes ---------------------------------------------------------------------------------------------


def test_methods_of_the_connection_pass_while_it_is_open(stage: Stage) -> None:
    client, broker = stage.opened()
    broker.say(amqp.ConnectionBlocked("low on memory"))
    assert client.expect(amqp.ConnectionBlocked).reason == "low on memory"
    client.say(amqp.ConnectionUpdateSecret(b"\0new", "expired"))
    assert broker.expect(amqp.ConnectionUpdateSecret) == amqp.ConnectionUpdateSecret(b"\0new", "expired")
    broker.say(amqp.ConnectionUpdateSecretOk())
    client.expect(amqp.ConnectionUpdateSecretOk)
    broker.say(amqp.ConnectionUnblocked())
    client.expect(amqp.ConnectionUnblocked)


def test_after_the_brokers_channel_close_the_clients_mistakes_are_dropped(stage: Stage) -> None:
    client, broker = stage.opened(2)
    broker.say(amqp.ChannelClose(404, "NOT_FOUND - nothing there", 50, 10), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.QueueDeclareOk(), 1)
    client.say(amqp.ConnectionOpen(), 1)
    client.say(amqp.ChannelCloseOk(), 1)
    broker.expect(amqp.ChannelCloseOk, 1)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)


def test_a_content_header_larger_than_was_agreed_passes_downwards(stage: Stage) -> None:
    """As RabbitMQ sends it: it cuts bodies only."""
    client, broker = stage.opened(tune_ok=amqp.ConnectionTuneOk(2047, 4096, 0))
    broker.content(
        amqp.BasicDeliver("c", 1, False, "", "q"),
        b"b" * 10_000,
        properties=amqp.BasicProperties(message_id="m" * 255, headers=amqp.Table.of({"big": "h" * 20_000})),
    )
    message = client.expect_content(amqp.BasicDeliver)
    assert message.body == b"b" * 10_000
    assert message.header.properties.headers.get("big") == "h" * 20_000
    assert message.frames == 3
