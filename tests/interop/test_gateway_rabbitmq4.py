"""What RabbitMQ 4 does otherwise than 3, and no policy has to mend: directly, and through the gateway."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.test_gateway_compatibility import CONFIG, connected
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker
from tests.support.versions import SPOKEN, ask_for, bye, greet, log_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(rabbitmq4: RabbitMQ, request: pytest.FixtureRequest) -> Iterator[InProcess]:
    text = CONFIG.format(port=rabbitmq4.port, connections=request.param)
    with serving(text.replace("policies: policies", "")) as running:
        yield running


def test_clients_of_0_8_are_hung_up_on_directly(rabbitmq4: RabbitMQ) -> None:
    with Talker.dial(rabbitmq4.port) as client:
        client.raw(SPOKEN["0-8"].header)
        try:
            said = client.receive()
        except Gone:
            said = b""
        # It names the version that it would speak, at most.
        assert said == b"" or (said[:4], len(said)) == (b"AMQP", 8)


@pytest.mark.parametrize("version", ["0-8", "0-9"])
def test_old_clients_get_what_they_publish(gate: InProcess, version: str) -> None:
    spoken, queue = SPOKEN[version], f"old-{secrets.token_hex(4)}"
    words = spoken.words
    with gate.dial() as client:
        greet(client, spoken)
        log_in(client, spoken)
        ask_for(client, spoken)
        client.expect(words.ConnectionOpenOk)
        client.ask(words.ChannelOpen(), words.ChannelOpenOk, 1)
        ticket = client.ask(words.AccessRequest(realm="/data"), words.AccessRequestOk, 1).ticket
        declare = words.QueueDeclare(ticket=ticket, queue=queue, durable=True)
        client.ask(declare, words.QueueDeclareOk, 1)
        publish = words.BasicPublish(ticket=ticket, routing_key=queue)
        client.content(publish, b"x" * 10_000, properties=words.BasicProperties(delivery_mode=2))
        while True:
            client.say(words.BasicGet(ticket=ticket, queue=queue, no_ack=True), 1)
            _, got = client.hear()
            if isinstance(got, words.BasicGetOk):
                break
        assert client.content_of(got).body == b"x" * 10_000
        client.ask(words.QueueDelete(ticket=ticket, queue=queue), words.QueueDeleteOk, 1)
        bye(client, spoken)


def small_frames(port: int) -> object:
    """A client that takes frames of 4,096 bytes at most, as many of old did."""
    parameters = pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, frame_max=4096)
    queue = f"small-{secrets.token_hex(4)}"
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"x" * 50_000)
        _, _, body = channel.basic_get(queue, auto_ack=True)
        channel.queue_delete(queue)
        return body == b"x" * 50_000


def test_frames_of_4096_bytes(rabbitmq4: RabbitMQ, gate: InProcess) -> None:
    with pytest.raises(pika.exceptions.AMQPError):
        small_frames(rabbitmq4.port)
    assert small_frames(gate.port()) is True


def test_a_passive_declare_needs_no_configure_permission(
    rabbitmq: RabbitMQ, rabbitmq4: RabbitMQ, gate: InProcess
) -> None:
    """4.2.6 and 4.3.0 wanted it; 4.3.1 and later are as 3."""
    name, queue = f"reader-{secrets.token_hex(4)}", f"passive-{secrets.token_hex(4)}"
    for node, port in ((rabbitmq, rabbitmq.port), (rabbitmq4, gate.port())):
        node.ctl("add_user", name, "secret")
        node.ctl("set_permissions", "-p", "/", name, "^$", "^$", ".*")
        with connected(node.port) as owner:
            owner.channel().queue_declare(queue, durable=True)
            credentials = pika.PlainCredentials(name, "secret")
            parameters = pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, credentials=credentials)
            with pika.BlockingConnection(parameters) as connection:
                assert connection.channel().queue_declare(queue, passive=True).method.queue == queue
                with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
                    connection.channel().queue_declare(queue, durable=True)
                assert refused.value.reply_code == 403
            owner.channel().queue_delete(queue)
        node.ctl("delete_user", name)


def timed_out(port: int) -> list[object]:
    """What a consumer hears that does not acknowledge in time, and what comes of the message."""
    queue, heard = f"slow-{secrets.token_hex(4)}", []
    with connected(port) as connection:
        channel: BlockingChannel = connection.channel()
        arguments = {"x-queue-type": "quorum", "x-consumer-timeout": 1000}
        channel.queue_declare(queue, durable=True, arguments=arguments)
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"body")
        cancelled: list[object] = []
        channel.add_on_cancel_callback(cancelled.append)
        channel.basic_consume(queue, lambda *_: heard.append("message"))
        while not cancelled:
            connection.process_data_events(30)
        heard.append("cancelled")
        method, _, body = connection.channel().basic_get(queue, auto_ack=True)
        heard.append((method is not None and method.redelivered, body))
    # With its own queue gone the client would be cancelled once more, and pika does not bear that.
    with connected(port) as connection:
        connection.channel().queue_delete(queue)
    return heard


@pytest.mark.timeout(120)
def test_a_consumer_that_is_too_slow_is_cancelled(rabbitmq4: RabbitMQ, gate: InProcess) -> None:
    """RabbitMQ 3 closes its channel. A cancel may as well mean that the queue is gone: it passes as it is."""
    assert timed_out(gate.port()) == timed_out(rabbitmq4.port) == [
        "message", "cancelled", (True, b"body")
    ]  # fmt: skip
