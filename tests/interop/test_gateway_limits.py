"""Each hop has its own frame-max and its own heartbeat."""

from __future__ import annotations

import random
import secrets
import threading
import time

import pytest

from amqpgate.protocol.frames import HEARTBEAT
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.mortal import running_node
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.inprocess import PATIENCE, eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

#: Around every boundary that a frame-max of 4096 or 131072 makes, up to 3 MiB.
SIZES = sorted(
    {
        size + near
        for size in (0, 4088, 4096, 8176, 65536, 131064, 131072, 262128, 3 << 20)
        for near in (-1, 0, 1)
        if size + near >= 0
    }
)

HOPS = """
listeners: [{{name: main, bind: "127.0.0.1:0"{listener}}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {port}{upstream}}}]
"""


def hops(port: int, listener: str = "", upstream: str = "") -> str:
    return HOPS.format(
        port=port,
        listener=f", {listener}" if listener else "",
        upstream=f", {upstream}" if upstream else "",
    )


# -- frame-max -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listener", "upstream", "largest_header"),
    [
        ("frameMax: 4096", "frameMax: 131072", 3900),
        # What cannot be cut must fit the broker's hop.
        ("frameMax: 131072", "frameMax: 4096", 3900),
        ("frameMax: 131072", "frameMax: 131072", 100_000),
        ("frameMax: 65536", "frameMax: 16384", 16_000),
    ],
)
def test_messages_of_all_sizes_between_hops_of_different_frame_max(
    rabbitmq: RabbitMQ, listener: str, upstream: str, largest_header: int
) -> None:
    random_bytes = random.Random(listener).randbytes(3 << 20) + b"!"
    queue = f"frames-{secrets.token_hex(4)}"
    with serving(hops(rabbitmq.port, listener, upstream)) as running, running.dial() as client:
        offered = client.open()
        assert f"frameMax: {offered.frame_max}" == listener
        client.ask(amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk, 1)
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
        for number, size in enumerate(SIZES, start=1):
            header = largest_header if number % 2 else 10
            properties = amqp.BasicProperties(headers=Table.of({"h": "x" * header}), message_id=str(number))
            body = random_bytes[-size:] if size else b""
            client.publish(body, queue, properties=properties)
            message, confirmed = None, False
            while message is None or not confirmed:
                channel, method = client.hear()
                assert channel == 1
                if isinstance(method, amqp.BasicAck):
                    assert method.delivery_tag == number
                    confirmed = True
                else:
                    assert isinstance(method, amqp.BasicDeliver)
                    message = client.content_of(method)
            assert message.body == body
            assert message.header.properties == properties
            # A header cannot be cut; nothing else is larger than was agreed.
            assert message.largest <= max(offered.frame_max, header + 100)
        client.bye()


def test_headers_of_a_neighbour_that_are_larger_than_was_agreed(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    """RabbitMQ cuts bodies only, so a client with small frames gets large headers either way."""
    queue = f"headers-{secrets.token_hex(4)}"
    for port in (rabbitmq.port, gateway.port):
        with Talker.dial(port) as client, Talker.dial(rabbitmq.port) as neighbour:
            client.open(frame_max=4096)
            neighbour.open()
            client.ask(amqp.QueueDeclare(queue=queue, auto_delete=True), amqp.QueueDeclareOk, 1)
            client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
            properties = amqp.BasicProperties(headers=Table.of({"h": "x" * 50_000}))
            neighbour.publish(b"b" * 10_000, queue, properties=properties)
            message = client.expect_content(amqp.BasicDeliver)
            assert message.header.properties == properties
            assert message.body == b"b" * 10_000
            assert message.frames == 3
            client.bye()
            neighbour.bye()


# -- heartbeats ----------------------------------------------------------------------------------------------


@pytest.fixture
def mortal() -> RabbitMQ:
    return running_node()


def beating(client: Talker, every: float = 0.4) -> threading.Event:
    """Heartbeats from a thread, until the event is set."""
    enough = threading.Event()

    def beat() -> None:
        while not enough.wait(every):
            try:
                client.raw(HEARTBEAT)
            except OSError:
                return

    threading.Thread(target=beat, daemon=True).start()
    return enough


def test_a_silent_client_is_given_up_and_its_broker_connection_closed(mortal: RabbitMQ) -> None:
    with serving(hops(mortal.port)) as running, running.dial() as client, Talker.dial(mortal.port) as witness:
        client.open(heartbeat=1)
        witness.open()
        queue = f"silent-{secrets.token_hex(4)}"
        client.ask(amqp.QueueDeclare(queue=queue, exclusive=True), amqp.QueueDeclareOk, 1)
        since = time.monotonic()
        client.expect_end()
        # Two intervals without a word, and what a loaded machine adds.
        assert 1.9 <= time.monotonic() - since < 2 + PATIENCE
        client.close()
        running.wait_idle()
        assert running.outcomes() == {"client_silent": 1}
        close = witness.ask(amqp.QueueDeclare(queue=queue, passive=True), amqp.ChannelClose, 1)
        assert close.reply_code == 404, (
            "the broker has closed the client's connection, exclusive queue and all"
        )
        witness.say(amqp.ChannelCloseOk(), 1)
        witness.bye()


def test_a_silent_broker_is_given_up_and_its_client_told(mortal: RabbitMQ) -> None:
    # RabbitMQ takes what the client's side of its connection asks for.
    with serving(hops(mortal.port, upstream="heartbeat: 1")) as running, running.dial() as client:
        client.open()
        mortal.pause()
        try:
            close = client.expect(amqp.ConnectionClose)
            assert close == amqp.ConnectionClose(320, "CONNECTION_FORCED - upstream sent no heartbeats")
            client.say(amqp.ConnectionCloseOk())
            client.expect_end()
            client.close()
            running.wait_idle()
        finally:
            mortal.resume()
        assert running.outcomes() == {"upstream_silent": 1}


def test_quiet_but_alive_sides_stay(mortal: RabbitMQ) -> None:
    """Nobody says anything but heartbeats, each side at its own pace, for twice the patience with silence."""
    with serving(hops(mortal.port, upstream="heartbeat: 1")) as running, running.dial() as client:
        client.open(heartbeat=1)
        enough = beating(client)
        client.hear_nothing(4)
        assert client.heartbeats >= 3, "the gateway's own heartbeats, two per interval"
        enough.set()
        client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1)
        client.bye()


def test_heartbeats_go_on_while_the_broker_has_blocked_the_connection(mortal: RabbitMQ) -> None:
    with serving(hops(mortal.port, upstream="heartbeat: 1")) as running, running.dial() as client:
        client.open(heartbeat=1)
        queue = f"blocked-{secrets.token_hex(4)}"
        client.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
        message = content_frames(
            1, amqp.BasicPublish(routing_key=queue), amqp.BasicProperties(), b"x" * 100_000, 131072
        )
        enough = beating(client)
        with mortal.memory_alarm():
            client.raw(message)
            assert client.expect(amqp.ConnectionBlocked).reason == "low on memory"
            enough.set()
            # What is between the client and the broker fills up; the client cannot even send heartbeats
            # then, and must not be called silent for that.
            sent = client.fill(message * 300)
            assert len(message) < sent < 300 * len(message)
            before = client.heartbeats
            client.hear_nothing(4)
            assert client.heartbeats - before >= 3
        client.expect(amqp.ConnectionUnblocked)
        client.raw((message * 300)[sent:])
        passive = amqp.QueueDeclare(queue=queue, passive=True)
        eventually(lambda: client.ask(passive, amqp.QueueDeclareOk, 1).message_count == 301)
        client.ask(amqp.QueueDelete(queue=queue), amqp.QueueDeleteOk, 1)
        client.bye()
