"""``amqpgate close`` on RabbitMQ: what the client had sent is answered before it is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pika
import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.rolling import QUEUE, at_work
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

CONFIG = """
workers: {workers}
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"{pool}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: {window}, closeTimeout: 2s}}
"""

TOLD = amqp.ConnectionClose(320, "CONNECTION_FORCED - moving")
#: Messages that are under way when the session is closed.
UNDER_WAY = 100


@contextlib.contextmanager
def gateway_to(
    rabbitmq: RabbitMQ, *, window: str = "60s", pool: str = "", workers: int = 1
) -> Iterator[Gateway]:
    text = CONFIG.format(address=rabbitmq.address, window=window, pool=pool, workers=workers)
    gateway = Gateway(config=text)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.kill()


@contextlib.contextmanager
def stopped(rabbitmq: RabbitMQ) -> Iterator[None]:
    """The broker answers nothing inside."""
    rabbitmq.pause()
    try:
        yield
    finally:
        rabbitmq.resume()


@pytest.fixture
def queue(rabbitmq: RabbitMQ) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(rabbitmq.url))) as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        yield channel
        channel.queue_delete(QUEUE)


def amqpgate(gateway: Gateway, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--admin", f"{gateway.host}:{gateway.admin_port}"])


def sessions(gateway: Gateway) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(amqpgate(gateway, "sessions", "--json").stdout)["sessions"]
    return found


def one(gateway: Gateway) -> dict[str, Any]:
    (row,) = sessions(gateway)
    return row


def close(gateway: Gateway, *words: str) -> None:
    said = amqpgate(gateway, "close", one(gateway)["id"], "--reason", "moving", *words)
    assert (said.exit_code, said.stdout) == (0, "closing\n"), said.output


def publish(client: Talker, count: int = UNDER_WAY) -> None:
    for number in range(count):
        client.publish(b"%d" % number, QUEUE, properties=amqp.BasicProperties(delivery_mode=2))


def leave(client: Talker) -> None:
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()


def held(channel: pika.adapters.blocking_connection.BlockingChannel) -> int:
    """How many messages are in the queue."""
    count: int = channel.queue_declare(QUEUE, passive=True).method.message_count
    return count


@pytest.mark.parametrize("pool", ["", ", pool: {}"], ids=["own", "pooled"])
def test_what_is_under_way_is_confirmed_first(
    rabbitmq: RabbitMQ, queue: pika.adapters.blocking_connection.BlockingChannel, pool: str
) -> None:
    with gateway_to(rabbitmq, pool=pool) as gateway, Talker.dial(gateway.port) as client:
        client.open()
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        with stopped(rabbitmq):
            publish(client)
            eventually(lambda: one(gateway)["published"] == UNDER_WAY)
            close(gateway)
            assert one(gateway)["flow"] == "closing"
            # Nobody reads these, and nobody confirms them.
            publish(client, 10)
            client.hear_nothing(0.5)
        confirmed = 0
        while isinstance(method := client.hear()[1], amqp.BasicAck):
            confirmed = max(confirmed, method.delivery_tag)
        assert (method, confirmed) == (TOLD, UNDER_WAY)
        leave(client)
        eventually(lambda: not sessions(gateway))
        assert held(queue) == UNDER_WAY


def test_a_commit_is_answered_first(
    rabbitmq: RabbitMQ, queue: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    with gateway_to(rabbitmq) as gateway, Talker.dial(gateway.port) as client:
        client.open(channels=2)
        client.ask(amqp.TxSelect(), amqp.TxSelectOk, 1)
        with stopped(rabbitmq):
            publish(client)
            client.say(amqp.TxCommit(), 1)
            # When this one has been read the commit has been, too.
            client.publish(b"behind", QUEUE, channel=2)
            eventually(lambda: one(gateway)["published"] == UNDER_WAY + 1)
            close(gateway)
            # Nobody reads these.
            publish(client, 10)
            client.hear_nothing(0.5)
        client.expect(amqp.TxCommitOk, 1)
        assert client.expect(amqp.ConnectionClose) == TOLD
        leave(client)
        eventually(lambda: not sessions(gateway))
        assert held(queue) == UNDER_WAY + 1


def test_now_waits_for_nothing(rabbitmq: RabbitMQ, queue: object) -> None:
    with gateway_to(rabbitmq) as gateway, Talker.dial(gateway.port) as client:
        client.open()
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        with stopped(rabbitmq):
            publish(client)
            eventually(lambda: one(gateway)["published"] == UNDER_WAY)
            # The broker is stuck; who waits already may be told, too.
            close(gateway)
            close(gateway, "--now")
            assert client.expect(amqp.ConnectionClose) == TOLD
            leave(client)


def test_a_broker_that_is_stuck_is_waited_for_no_longer_than_in_a_drain(
    rabbitmq: RabbitMQ, queue: object
) -> None:
    with gateway_to(rabbitmq, window="3s") as gateway, Talker.dial(gateway.port) as client:
        client.open()
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        with stopped(rabbitmq):
            publish(client)
            eventually(lambda: one(gateway)["published"] == UNDER_WAY)
            close(gateway)
            assert client.expect(amqp.ConnectionClose) == TOLD
            leave(client)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_all_are_sent_away_under_load(rabbitmq: RabbitMQ, queue: object, workers: int) -> None:
    """Nothing that was confirmed is lost, and nobody has to publish anything twice."""
    with gateway_to(rabbitmq, workers=workers) as gateway:
        with at_work(gateway.port, 4, 4) as tally:
            for times in range(1, 4):
                count = len(tally.arrived)
                eventually(lambda count=count: len(tally.arrived) > count + 20)
                eventually(lambda: len(sessions(gateway)) == 8)
                ids = [row["id"] for row in sessions(gateway)]
                assert amqpgate(gateway, "close", *ids).stdout == "8 closing\n"
                eventually(lambda times=times: tally.ends["320"] >= 8 * times)
        assert tally.failures == []
        assert tally.confirmed - tally.arrived == set(), "lost"
        assert {body: count for body, count in tally.delivered.items() if count > 1} == {}, "duplicates"
        assert set(tally.ends) == {"320"}, tally.ends
