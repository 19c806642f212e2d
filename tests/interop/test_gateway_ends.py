"""Clients and brokers that go, in good order or not, in the middle of whatever."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from amqpgate.telemetry.readings import PUBLISHED
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.mortal import running_node
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.inprocess import InProcess, eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker

SETTINGS = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {port}}}]
"""


def half_close(talker: Talker) -> None:
    talker.sock.shutdown(socket.SHUT_WR)


# -- clients -------------------------------------------------------------------------------------------------


@pytest.fixture
def witness(rabbitmq: RabbitMQ) -> Iterator[Talker]:
    """A client of the broker itself."""
    with Talker.dial(rabbitmq.port) as talker:
        talker.open()
        yield talker
        talker.bye()


@pytest.mark.parametrize("cut", ["between messages", "within a message", "within a frame"])
@pytest.mark.parametrize("leave", [Talker.close, Talker.reset, half_close])
def test_a_client_that_vanishes_gives_back_what_it_held(
    gateway: Gateway, witness: Talker, leave: Callable[[Talker], None], cut: str
) -> None:
    queue = f"held-{secrets.token_hex(4)}"
    message = content_frames(
        1, amqp.BasicPublish(routing_key=queue), amqp.BasicProperties(), b"x" * 300_000, 131072
    )
    witness.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    with Talker.dial(gateway.port) as client:
        client.open()
        client.raw(message * 2)
        client.ask(amqp.BasicConsume(queue=queue), amqp.BasicConsumeOk, 1)
        for _ in range(2):
            client.expect_content(amqp.BasicDeliver)
        passive = amqp.QueueDeclare(queue=queue, passive=True)
        held = witness.ask(passive, amqp.QueueDeclareOk, 1)
        assert (held.message_count, held.consumer_count) == (0, 1)
        client.raw(message[: {"between messages": 0, "within a message": -131_072}.get(cut, 200_000)])
        leave(client)

        def given_back() -> bool:
            now = witness.ask(passive, amqp.QueueDeclareOk, 1)
            return (now.message_count, now.consumer_count) == (2, 0)

        eventually(given_back)
    witness.ask(amqp.QueueDelete(queue=queue), amqp.QueueDeleteOk, 1)


def test_a_client_that_closes_and_drops_at_once(gateway: Gateway, witness: Talker) -> None:
    """Its last messages arrive all the same."""
    queue = f"last-{secrets.token_hex(4)}"
    witness.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    for _ in range(10):
        with Talker.dial(gateway.port) as client:
            client.open()
            client.publish(b"x" * 200_000, queue)
            client.say(amqp.ConnectionClose(200, "bye"))
    passive = amqp.QueueDeclare(queue=queue, passive=True)
    eventually(lambda: witness.ask(passive, amqp.QueueDeclareOk, 1).message_count == 10)
    witness.ask(amqp.QueueDelete(queue=queue), amqp.QueueDeleteOk, 1)


# -- brokers -------------------------------------------------------------------------------------------------


@pytest.fixture
def mortal() -> RabbitMQ:
    return running_node()


@pytest.fixture
def running(mortal: RabbitMQ) -> Iterator[InProcess]:
    with serving(SETTINGS.format(port=mortal.port)) as gateway:
        yield gateway


def end_of(client: Talker) -> amqp.ConnectionClose:
    """The close that a client hears behind whatever else; every frame before it is whole."""
    for frame in client.all():
        if frame.type == amqp.FRAME_METHOD and frame.channel == 0:
            method = decode_method(frame.payload)
            assert isinstance(method, amqp.ConnectionClose)
            client.say(amqp.ConnectionCloseOk())
            client.expect_end()
            return method
    raise AssertionError("no close")


def flood(client: Talker, queue: str) -> threading.Thread:
    """Publish in a thread until the connection is over."""
    message = content_frames(
        1, amqp.BasicPublish(routing_key=queue), amqp.BasicProperties(), b"x" * 400_000, 131072
    )
    sock = client.sock.dup()
    sock.settimeout(30)

    def send() -> None:
        with sock, contextlib.suppress(OSError):
            while True:
                sock.sendall(message)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


def consumer(running: InProcess, queue: str) -> Talker:
    """A client that has a long queue of large messages under way to it."""
    client = running.dial()
    client.open()
    client.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    for _ in range(40):
        client.publish(b"y" * 400_000, queue)
    client.ask(amqp.BasicConsume(queue=queue), amqp.BasicConsumeOk, 1)
    client.expect_content(amqp.BasicDeliver)
    return client


def test_a_broker_that_is_killed_in_the_middle_of_messages(mortal: RabbitMQ, running: InProcess) -> None:
    with (
        contextlib.closing(consumer(running, "killed-1")) as reading,
        running.dial() as writing,
        running.dial() as idle,
    ):
        for client in (writing, idle):
            client.open()
        writing.ask(amqp.QueueDeclare(queue="killed-2"), amqp.QueueDeclareOk, 1)
        sender = flood(writing, "killed-2")
        eventually(lambda: running.ask(running.gateway.totals).traffic[PUBLISHED].messages > 60)
        mortal.kill()
        for client in (reading, idle):
            close = end_of(client)
            assert close.reply_code == 320
            assert close.reply_text.startswith("CONNECTION_FORCED - upstream ")
        # One that is in the middle of a message is told, too; it hears it if it listens.
        assert next(frame for frame in writing.all() if frame.channel == 0).payload[:4] == b"\0\x0a\0\x32"
        writing.close()
        sender.join()
        running.wait_idle()
        assert running.outcomes() == {"upstream_gone": 3}
        # The gateway recovers by itself.
        with running.dial() as refused:
            refused.raw(amqp.PROTOCOL_HEADER)
            refused.expect(amqp.ConnectionStart)
            said = amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest")
            assert refused.ask(said, amqp.ConnectionClose).reply_code == 320
        mortal.start()
        with running.dial() as client:
            client.open()
            client.bye()


def test_a_broker_that_shuts_down_in_good_order_says_so_itself(mortal: RabbitMQ, running: InProcess) -> None:
    with (
        contextlib.closing(consumer(running, "stopped-1")) as reading,
        running.dial() as writing,
        running.dial() as idle,
        Talker.dial(mortal.port) as direct,
    ):
        for client in (writing, idle, direct):
            client.open()
        writing.ask(amqp.QueueDeclare(queue="stopped-2"), amqp.QueueDeclareOk, 1)
        sender = flood(writing, "stopped-2")
        eventually(lambda: running.ask(running.gateway.totals).traffic[PUBLISHED].messages > 60)
        stopping = threading.Thread(target=mortal.stop)
        stopping.start()
        text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
        for client in (direct, idle, writing):
            close = next(close_of(frame.payload) for frame in client.all() if frame.channel == 0)
            assert (close.reply_code, close.reply_text) == (320, text)
            client.close()
        # RabbitMQ may not get its own word in where deliveries fill the socket.
        close = next(close_of(frame.payload) for frame in reading.all() if frame.channel == 0)
        assert close.reply_code == 320
        sender.join()
        stopping.join()
    running.wait_idle()


def close_of(payload: bytes) -> amqp.ConnectionClose:
    method = decode_method(payload)
    assert isinstance(method, amqp.ConnectionClose)
    return method


def test_an_operator_closes_a_connection(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    rabbitmq.fresh_vhost("operated")
    with Talker.dial(gateway.port) as client:
        client.open(vhost="operated")
        rabbitmq.close_connections("for maintenance", vhost="operated")
        close = end_of(client)
        assert close.reply_text == "CONNECTION_FORCED - for maintenance"


# -- leaks ---------------------------------------------------------------------------------------------------


def come_and_go(running: InProcess, number: int, dice: random.Random) -> None:
    """One connection that ends in one of many ways, at one of many times."""
    with running.dial() as client:
        if number % 5 == 0:
            client.raw(dice.choice([b"", b"AM", b"GET / HTTP/1.1\r\n\r\n", amqp.PROTOCOL_HEADER]))
            client.close()
            return
        if number % 5 == 1:
            client.raw(amqp.PROTOCOL_HEADER)
            client.expect(amqp.ConnectionStart)
            if dice.random() < 0.5:
                client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest"))
                client.expect(amqp.ConnectionTune)
            dice.choice([Talker.close, Talker.reset])(client)
            return
        client.open(channels=2)
        client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1)
        client.publish(b"x" * dice.choice([0, 100, 200_000]), "nowhere")
        how = dice.choice(["bye", "close", "reset", "half message", "violation", "half close"])
        if how == "bye":
            client.bye()
        elif how == "violation":
            client.say(amqp.ChannelOpen(), 1)
            assert end_of(client).reply_code == 504
        elif how == "half message":
            message = content_frames(1, amqp.BasicPublish(), amqp.BasicProperties(), b"x" * 9000, 4096)
            client.raw(message[: dice.randrange(len(message))])
            client.close()
        elif how == "half close":
            half_close(client)
            with contextlib.suppress(Gone):
                client.expect_end()
        else:
            (client.close if how == "close" else client.reset)()


def test_nothing_is_left_of_a_thousand_connections(rabbitmq: RabbitMQ) -> None:
    with serving(SETTINGS.format(port=rabbitmq.port)) as running:
        with running.dial() as client:
            client.open()
            client.bye()
        running.wait_idle()

        def state() -> tuple[int, int, int, int, int]:
            gateway = running.gateway
            return (
                len(os.listdir("/proc/self/fd")),
                running.tasks(),
                len(gateway.sessions)
                + len(gateway.acceptor.context.pending)
                + gateway.acceptor.connections.count,
                len(gateway.pump),
                gateway.pump.deadlines,
            )

        before = state()
        dice = random.Random(7)
        threads = [
            threading.Thread(
                target=lambda first=first: [
                    come_and_go(running, number, dice) for number in range(first, 1000, 8)
                ]
            )
            for first in range(8)
        ]
        failures: list[object] = []
        hook, threading.excepthook = threading.excepthook, failures.append
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            threading.excepthook = hook
        assert failures == []
        running.wait_idle()
        eventually(lambda: state() == before)
        assert sum(running.outcomes().values()) == 1001
        assert running.gateway.pump.counters.relays == 0
        assert "failed" not in running.outcomes()
