"""Publishes that a policy denies: what is dropped, what still passes, and what the client hears."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.guarded import refused, through


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 1_000_000])
def test_a_denied_publish_is_swallowed_whole(guarded: Stage, size: int) -> None:
    client, broker = guarded.opened(2)
    client.publish(b"x" * size, "key", exchange="no", channel=1)
    client.publish(b"behind it", "key", exchange="ok", channel=1)
    client.publish(b"beside it", "key", exchange="ok", channel=2)
    text = "ACCESS_REFUSED - access to exchange 'no' in vhost '/' refused for user 'guest'"
    assert refused_beside(client, broker) == text
    client.publish(b"afterwards", "key", exchange="ok", channel=1)
    assert broker.expect_content(amqp.BasicPublish, 1).body == b"afterwards"


def refused_beside(client: Talker, broker: Talker) -> str:
    """As `refused`, with a message on channel 2 behind it."""
    said = broker.expect(amqp.ChannelClose, 1)
    assert broker.expect_content(amqp.BasicPublish, 2).body == b"beside it"
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1) == said
    assert (said.reply_code, said.class_id, said.method_id) == (403, 60, 40)
    client.say(amqp.ChannelCloseOk(), 1)
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk())
    return said.reply_text


def test_a_refusal_that_is_too_long_to_tell_is_cut(guarded: Stage) -> None:
    """As RabbitMQ cuts it, and as everything that a client named fits a reply text."""
    client, broker = guarded.opened()
    client.publish(b"x", "k" * 255, exchange="ä" * 127)
    text = refused(client, broker, (60, 40))
    assert text.startswith("ACCESS_REFUSED - access to exchange 'ää")
    assert text.endswith("...")
    assert len(text.encode()) <= 255


def test_a_denied_publish_byte_by_byte(guarded: Stage) -> None:
    client, broker = guarded.opened()
    data = content_frames(1, amqp.BasicPublish(exchange="no"), amqp.BasicProperties(), b"x" * 300, 131072)
    data += content_frames(1, amqp.BasicPublish(exchange="ok"), amqp.BasicProperties(), b"y" * 300, 131072)
    for octet in data:
        client.raw(bytes([octet]))
    refused(client, broker, (60, 40))


def test_a_client_may_answer_a_refusal_in_the_middle_of_its_message(guarded: Stage) -> None:
    client, broker = guarded.opened()
    whole = content_frames(1, amqp.BasicPublish(exchange="no"), amqp.BasicProperties(), b"x" * 9000, 4096)
    client.raw(whole[:5000])
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelClose, 1)
    # It was in the middle of a frame: that one it must finish.
    end = len(whole) - 832
    client.raw(whole[5000:end])
    client.say(amqp.ChannelCloseOk(), 1)
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk())
    client.publish(b"z", "", exchange="ok")
    assert broker.expect_content(amqp.BasicPublish, 1).body == b"z"


@pytest.mark.parametrize("begun", [1, 2, 3], ids=["method", "header", "body"])
def test_what_is_left_of_a_message_may_come_behind_the_answer_to_its_refusal(
    guarded: Stage, begun: int
) -> None:
    """RabbitMQ would have closed the channel behind the message: no answer to that comes amid it."""
    client, broker = guarded.opened(2)
    frames = published_in_pieces("no")
    client.raw(b"".join(frames[:begun]))
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelClose, 1)
    client.say(amqp.ChannelCloseOk(), 1)
    client.raw(b"".join(frames[begun:]))
    client.publish(b"beside it", "key", exchange="ok", channel=2)
    assert broker.expect_content(amqp.BasicPublish, 2).body == b"beside it"
    through(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk())
    client.publish(b"z", "", exchange="ok")
    assert broker.expect_content(amqp.BasicPublish, 1).body == b"z"


def test_content_on_a_channel_that_is_open_anew_is_no_rest(guarded: Stage) -> None:
    client, broker = guarded.opened()
    frames = published_in_pieces("no")
    client.raw(frames[0])
    refused(client, broker, (60, 40))
    client.say(amqp.ChannelClose(200), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.ChannelCloseOk, 1)
    client.raw(frames[1])
    assert client.expect(amqp.ConnectionClose).reply_code == 505


def published_in_pieces(exchange: str) -> list[bytes]:
    """Method, header and three bodies."""
    publish = amqp.BasicPublish(exchange=exchange)
    data = content_frames(1, publish, amqp.BasicProperties(), b"x" * 12000, 4096)
    frames = []
    while data:
        size = int.from_bytes(data[3:7], "big") + 8
        frames.append(data[:size])
        data = data[size:]
    return frames


def test_confirms_and_deliveries_from_before_a_refusal_arrive(guarded: Stage) -> None:
    client, broker = guarded.opened()
    client.publish(b"first", "", exchange="ok")
    client.say(amqp.BasicGet(queue="theirs"), 1)
    broker.expect_content(amqp.BasicPublish)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.BasicAck(1), 1)
    broker.content(amqp.BasicDeliver("c", 1, False, "", "q"), b"late")
    broker.say(amqp.ChannelCloseOk(), 1)
    client.expect(amqp.BasicAck, 1)
    assert client.expect_content(amqp.BasicDeliver).body == b"late"
    told = client.expect(amqp.ChannelClose, 1)
    assert (told.reply_code, told.class_id, told.method_id) == (403, 60, 70)
