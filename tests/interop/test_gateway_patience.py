"""What old clients do and RabbitMQ drops: each fails directly, and gets in through the gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from amqpgate.protocol.sasl import amqplain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.gateway import Gateway
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.strict import StrictListener
from tests.support.talker import Gone, Talker, Unexpected
from tests.support.versions import GUEST, SPOKEN, ask_for, bye, greet, log_in, open_up

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}}}]
"""
NEAR = SPOKEN["0-9-1"]


def says_zero(client: Talker, **zero: int) -> None:
    greet(client, NEAR)
    log_in(client, NEAR)
    tune = client.expect(amqp.ConnectionTune)
    ask = {"channel_max": tune.channel_max, "frame_max": tune.frame_max, "heartbeat": 0, **zero}
    client.say(amqp.ConnectionTuneOk(**ask))
    client.say(amqp.ConnectionOpen("/"))
    client.expect(amqp.ConnectionOpenOk)


def expects_secure(client: Talker) -> None:
    greet(client, NEAR)
    log_in(client, NEAR, response=b"")
    client.expect(amqp.ConnectionSecure)
    client.say(amqp.ConnectionSecureOk(GUEST))
    ask_for(client, NEAR)
    client.expect(amqp.ConnectionOpenOk)


def uses_amqplain(client: Talker) -> None:
    greet(client, NEAR)
    log_in(client, NEAR, mechanism="AMQPLAIN", response=amqplain_response("guest", "guest"))
    ask_for(client, NEAR)
    client.expect(amqp.ConnectionOpenOk)


HABITS: dict[str, Callable[[Talker], None]] = {
    "channel_max 0": lambda client: says_zero(client, channel_max=0),
    "frame_max 0": lambda client: says_zero(client, frame_max=0),
    "PLAIN in two steps": expects_secure,
}


@pytest.mark.parametrize("habit", HABITS)
def test_habits_that_rabbitmq_drops(rabbitmq: RabbitMQ, gateway: Gateway, habit: str) -> None:
    with Talker.dial(rabbitmq.port) as client, pytest.raises(Gone):
        HABITS[habit](client)
    with Talker.dial(gateway.port) as client:
        HABITS[habit](client)
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        client.bye()


@pytest.fixture(scope="module")
def plain_only() -> Iterator[RabbitMQ]:
    """A broker that has no AMQPLAIN."""
    node = RabbitMQ(config=["auth_mechanisms.1 = PLAIN"])
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture
def before_plain_only(plain_only: RabbitMQ) -> Iterator[InProcess]:
    with serving(SETTINGS.format(port=plain_only.port)) as running:
        yield running


def test_amqplain_to_a_broker_without_it(plain_only: RabbitMQ, before_plain_only: InProcess) -> None:
    with Talker.dial(plain_only.port) as client, pytest.raises(Gone):
        uses_amqplain(client)
    with before_plain_only.dial() as client:
        uses_amqplain(client)
        client.bye()
    # A wrong password stays one.
    with before_plain_only.dial() as client:
        greet(client, NEAR)
        log_in(client, NEAR, mechanism="AMQPLAIN", response=amqplain_response("guest", "wrong"))
        assert client.expect(amqp.ConnectionClose).reply_code == 403


@pytest.fixture
def strict(rabbitmq: RabbitMQ) -> Iterator[StrictListener]:
    """As RabbitMQ 4.1: only 0-9-1, and no frame-max under 8192."""
    listener = StrictListener(rabbitmq.port)
    yield listener
    listener.close()


def test_a_small_frame_max(strict: StrictListener) -> None:
    body = bytes(range(256)) * 100
    with Talker.dial(strict.port) as client, pytest.raises(Unexpected, match="frame_max = 4096 is lower"):
        client.open(frame_max=4096)
    with serving(SETTINGS.format(port=strict.port)) as running, running.dial() as client:
        client.open(frame_max=4096)
        queue = client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        client.publish(body, queue)
        client.ask(amqp.BasicConsume(queue=queue, consumer_tag="tag"), amqp.BasicConsumeOk, 1)
        heard = client.expect_content(amqp.BasicDeliver)
        assert heard.body == body
        assert heard.largest <= 4096
        client.bye()


@pytest.mark.parametrize("near", SPOKEN)
def test_every_client_gets_to_a_broker_that_is_strict(strict: StrictListener, near: str) -> None:
    if near != "0-9-1":
        with Talker.dial(strict.port) as client:
            greet(client, SPOKEN[near])
            assert client.exactly(8) == amqp.PROTOCOL_HEADER
            client.expect_end()
    words = SPOKEN[near].words
    with serving(SETTINGS.format(port=strict.port)) as running, running.dial() as client:
        open_up(client, SPOKEN[near], tune_ok=(0, 4096, 0))
        client.ask(words.ChannelOpen(), words.ChannelOpenOk, 1)
        bye(client, SPOKEN[near])
