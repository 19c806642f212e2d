"""Frames that the data path does not pass on by itself: what does not belong there, and what is dropped."""

from __future__ import annotations

import pytest

from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import through

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


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        # A class and a method that nobody knows, arguments that end too early, and less than a method.
        (b"\0\xff\0\1", 540),
        (b"\0\x32\0\x0a\0\0\xff", 501),
        (b"\0\x32\0", 501),
    ],
)
@pytest.mark.parametrize("is_broker", [False, True])
def test_what_cannot_be_decoded_is_not_passed_on(
    stage: Stage, payload: bytes, code: int, is_broker: bool
) -> None:
    talkers = stage.opened()
    bystanders = stage.opened()
    talkers[is_broker].raw(encode_frame(1, 1, payload))
    close = talkers[0].expect(amqp.ConnectionClose)
    assert close.reply_code == (541 if is_broker else code)
    assert talkers[1].expect(amqp.ConnectionClose).reply_code == 320
    # Neither has heard the frame before, nor has anybody else.
    through(*bystanders, amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk("q", 0, 0))


def test_what_is_said_behind_a_violation_is_for_nobody(stage: Stage) -> None:
    client, broker = stage.opened()
    client.raw(
        method_frame(1, amqp.ChannelOpen())
        + method_frame(1, amqp.QueueDelete(queue="q"))
        + content_frames(1, amqp.BasicPublish(routing_key="k"), amqp.BasicProperties(), b"x", 4096)
    )
    assert client.expect(amqp.ConnectionClose).reply_code == 504
    assert broker.hear() == (0, amqp.ConnectionClose(320, "CONNECTION_FORCED - client broke the protocol"))
    broker.say(CLOSE_OK)
    broker.expect_end()
