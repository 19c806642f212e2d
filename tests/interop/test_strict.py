"""The strict listener is strict, and where it is not, it is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.strict import StrictListener
from tests.support.talker import Gone, Talker


@pytest.fixture
def strict(rabbitmq: RabbitMQ) -> Iterator[StrictListener]:
    listener = StrictListener(rabbitmq.port)
    yield listener
    listener.close()


def shaken(talker: Talker) -> amqp.ConnectionTune:
    """A client's handshake up to tune."""
    talker.raw(amqp.PROTOCOL_HEADER)
    talker.expect(amqp.ConnectionStart)
    start_ok = amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    return talker.ask(start_ok, amqp.ConnectionTune)


@pytest.mark.parametrize("header", [b"\1\1\x08\0", b"\1\1\x09\1", b"\1\1\0\x09", b"\1\1\0\x0a", b"\0\1\0\0"])
def test_other_headers_are_answered_with_its_own(strict: StrictListener, header: bytes) -> None:
    with Talker.dial(strict.port) as talker:
        talker.raw(b"AMQP" + header)
        assert talker.exactly(8) == amqp.PROTOCOL_HEADER
        talker.expect_end()
    assert strict.refused == [b"AMQP" + header]


@pytest.mark.parametrize("frame_max", [4096, 8191])
def test_a_small_frame_max_is_refused(strict: StrictListener, frame_max: int) -> None:
    with Talker.dial(strict.port) as talker:
        tune = shaken(talker)
        # What the client says next, before it hears of it, is thrown away.
        talker.say(amqp.ConnectionTuneOk(tune.channel_max, frame_max, 0))
        talker.say(amqp.ConnectionOpen())
        close = talker.expect(amqp.ConnectionClose)
        assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 30)
        assert close.reply_text == (
            f"NOT_ALLOWED - negotiated frame_max = {frame_max} is lower than the minimum allowed value (8192)"
        )
        talker.say(amqp.ConnectionCloseOk())
        talker.expect_end()
    assert strict.refused == [frame_max]


def test_the_words_are_rabbitmqs(rabbitmq: RabbitMQ) -> None:
    """RabbitMQ 3.10 has another minimum, and writes to its log what later versions also say to the client."""
    with Talker.dial(rabbitmq.port) as talker:
        tune = shaken(talker)
        talker.say(amqp.ConnectionTuneOk(tune.channel_max, 1024, 0))
        with pytest.raises(Gone):
            talker.frame()
    words = "negotiated frame_max = 1024 is lower than the minimum allowed value (4096)"
    eventually(lambda: words in rabbitmq.log.read_text().replace("\n", " "))


@pytest.mark.parametrize("frame_max", [8192, 131072])
def test_all_else_is_relayed(strict: StrictListener, frame_max: int) -> None:
    body = bytes(range(256)) * 2000
    with Talker.dial(strict.port) as talker:
        talker.open(frame_max=frame_max)
        queue = talker.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        talker.publish(body, queue)
        talker.say(amqp.BasicGet(queue=queue, no_ack=True), 1)
        got = talker.expect_content(amqp.BasicGetOk)
        assert got.body == body
        assert got.largest <= frame_max
        talker.bye()
    assert strict.refused == []


def test_what_comes_with_tune_ok_is_relayed(strict: StrictListener) -> None:
    with Talker.dial(strict.port) as talker:
        tune = shaken(talker)
        tune_ok = amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0)
        rest = method_frame(0, amqp.ConnectionOpen(virtual_host="/")) + method_frame(1, amqp.ChannelOpen())
        talker.raw(method_frame(0, tune_ok) + rest)
        talker.expect(amqp.ConnectionOpenOk)
        talker.expect(amqp.ChannelOpenOk, 1)
        talker.bye()


def test_the_end_of_either_side_ends_the_other(strict: StrictListener, rabbitmq: RabbitMQ) -> None:
    rabbitmq.fresh_vhost("strict")
    with Talker.dial(strict.port) as talker:
        talker.open(vhost="strict")
        rabbitmq.close_connections("over", vhost="strict")
        talker.expect(amqp.ConnectionClose)
        talker.say(amqp.ConnectionCloseOk())
        talker.expect_end()
    with Talker.dial(strict.port) as talker:
        talker.open(vhost="strict")
        strict.close()
        talker.expect_end()
