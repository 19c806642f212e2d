"""SIGTERM: no new connections, and those that are there hear connection.close 320 in their turn."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.ports import refuses
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker

CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbit, host: 127.0.0.1, port: BROKER}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: DRAIN, closeTimeout: 1s}
"""


@pytest.fixture
def start(rabbitmq: RabbitMQ) -> Iterator[Callable[[str], Gateway]]:
    """Starts a gateway with that drain timeout."""
    started = []

    def make(drain: str) -> Gateway:
        gateway = Gateway(config=CONFIG.replace("BROKER", str(rabbitmq.port)).replace("DRAIN", drain))
        gateway.start()
        started.append(gateway)
        return gateway

    yield make
    for gateway in started:
        gateway.kill()


def round_trip(client: Talker) -> None:
    client.ask(amqp.QueueDeclare(queue="", exclusive=True), amqp.QueueDeclareOk, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sessions_go_on_until_they_are_done(start: Callable[[str], Gateway], number: signal.Signals) -> None:
    gateway = start("60s")
    with Talker.dial(gateway.port) as client:
        client.open()
        gateway.child.signal(number)
        eventually(lambda: not gateway.ready())
        assert gateway.get("/readyz")[0] == 503
        assert gateway.get("/livez")[0] == 200
        eventually(lambda: refuses(gateway.port))
        for _ in range(3):
            round_trip(client)
            time.sleep(0.1)
        client.bye()
    assert gateway.child.wait() == 0


def test_in_their_turn_sessions_are_closed(start: Callable[[str], Gateway]) -> None:
    gateway = start("1s")
    with Talker.dial(gateway.port) as client, Talker.dial(gateway.port) as deaf:
        client.open()
        deaf.open()
        gateway.child.signal(signal.SIGTERM)
        close = client.expect(amqp.ConnectionClose)
        assert close == amqp.ConnectionClose(320, "CONNECTION_FORCED - amqpgate is shutting down")
        client.say(amqp.ConnectionCloseOk())
        client.expect_end()
        # One that does not answer has until the close timeout.
        assert gateway.child.wait() == 0
        assert deaf.expect(amqp.ConnectionClose) == close


def test_without_sessions_it_ends_at_once(start: Callable[[str], Gateway]) -> None:
    gateway = start("60s")
    since = time.monotonic()
    gateway.child.signal(signal.SIGTERM)
    assert gateway.child.wait() == 0
    assert time.monotonic() - since < 20


def test_a_second_signal_ends_at_once(start: Callable[[str], Gateway]) -> None:
    gateway = start("60s")
    with Talker.dial(gateway.port) as client:
        client.open()
        gateway.child.signal(signal.SIGTERM)
        eventually(lambda: refuses(gateway.port))
        round_trip(client)
        since = time.monotonic()
        gateway.child.signal(signal.SIGTERM)
        assert gateway.child.wait() == 1
        assert time.monotonic() - since < 20
        with pytest.raises(Gone):
            client.frame()


def test_a_drain_in_the_middle_of_messages_loses_none(
    start: Callable[[str], Gateway], rabbitmq: RabbitMQ
) -> None:
    """Every confirm that the client has seen stands for a message in the queue."""
    gateway = start("500ms")
    with Talker.dial(gateway.port) as client, Talker.dial(rabbitmq.port) as witness:
        client.open()
        witness.open()
        witness.ask(amqp.QueueDeclare(queue="drained"), amqp.QueueDeclareOk, 1)
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        gateway.child.signal(signal.SIGTERM)
        published = confirmed = 0
        closed = None
        while closed is None:
            client.publish(b"x" * 50_000, "drained")
            published += 1
            _, method = client.hear()
            if isinstance(method, amqp.BasicAck):
                assert method.delivery_tag == confirmed + 1
                confirmed += 1
            else:
                assert isinstance(method, amqp.ConnectionClose)
                closed = method
        assert closed.reply_code == 320
        client.say(amqp.ConnectionCloseOk())
        assert gateway.child.wait() == 0
        passive = amqp.QueueDeclare(queue="drained", passive=True)
        assert confirmed > 1
        assert witness.ask(passive, amqp.QueueDeclareOk, 1).message_count in (confirmed, published)
        witness.ask(amqp.QueueDelete(queue="drained"), amqp.QueueDeleteOk, 1)
        witness.bye()
