"""Claim checks where something is slow, away or old; and bodies that are too large without them."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.test_gateway_bridge import Client
from tests.interop.test_gateway_claims import (
    CONFIG,
    MIB,
    PROFILE,
    body_of,
    connected,
    counted,
    environment,
    four,
    gate,
    get,
    objects,
    queue,
    store_of,
    swift,
    wait_until,
)
from tests.support.gateway import Gateway
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.swift import Swift
from tests.support.versions import SPOKEN, open_up

__all__ = ["environment", "four", "gate", "queue", "swift"]

pytestmark = pytest.mark.slow


@pytest.fixture
def silent_store() -> Iterator[int]:
    """A store that takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        yield listener.getsockname()[1]


def test_other_channels_and_sessions_do_not_wait_for_a_store_that_is_silent(
    four: RabbitMQ, environment: None, silent_store: int, tmp_path: Path, queue: str
) -> None:
    (tmp_path / "policies").mkdir()
    profile = PROFILE.format(store=silent_store).replace("timeout: 5s", "timeout: 1s")
    (tmp_path / "policies" / "three.yaml").write_text(profile)
    with (
        serving(CONFIG.format(port=four.port, connections="own"), folder=tmp_path) as running,
        connected(running.port()) as connection,
        connected(running.port()) as other,
    ):
        slow, quick = connection.channel(), connection.channel()
        quick.confirm_delivery()
        slow.basic_publish("", queue, body_of(2 * MIB))
        slow.basic_publish("", queue, b"behind")
        for number in range(20):
            body = str(number).encode()
            quick.basic_publish("", queue, body)
            assert get(other.channel(), queue)[1] == body
        assert counted(running, "amqpgate_claim_objects_total", operation="put", outcome="failed") == 0
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
            slow.queue_declare(queue, passive=True)
        assert caught.value.reply_code == 406
        assert quick.queue_declare(queue, passive=True).method.message_count == 0


def test_small_frames_on_the_consumers_side(gate: InProcess, queue: str) -> None:
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", queue, body_of(2 * MIB))
    small = pika.ConnectionParameters("127.0.0.1", gate.port(), heartbeat=0, frame_max=4096)
    with pika.BlockingConnection(small) as connection:
        channel = connection.channel()
        assert get(channel, queue)[1] == body_of(2 * MIB)
        channel.confirm_delivery()
        channel.basic_publish("", queue, body_of(2 * MIB + 1))
        assert get(channel, queue)[1] == body_of(2 * MIB + 1)


@pytest.mark.parametrize("version", SPOKEN)
def test_clients_of_all_versions(gate: InProcess, queue: str, version: str) -> None:
    with gate.dial() as talker:
        open_up(talker, SPOKEN[version])
        client = Client(talker, SPOKEN[version])
        client.ask(amqp.ChannelOpen())
        body = body_of(2 * MIB)
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), body, "a/b")
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), b"small")
        got, message = client.message_of(queue)
        assert isinstance(got, amqp.BasicGetOk)
        assert message.body == body
        assert message.header.properties.content_type == "a/b"  # type: ignore[attr-defined]
        assert client.message_of(queue)[1].body == b"small"


def test_a_consumer_that_does_not_read_costs_a_file(gate: InProcess, queue: str) -> None:
    """And it is no obstacle to others; when it reads, it gets all."""
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(3):
            channel.basic_publish("", queue, body_of(20 * MIB + number))
    before = counted(gate, "amqpgate_claim_objects_total", operation="get", outcome="ok")
    with gate.dial() as talker:
        talker.open()
        talker.ask(amqp.BasicConsume(queue=queue), amqp.BasicConsumeOk, 1)
        wait_until(
            lambda: counted(gate, "amqpgate_claim_objects_total", operation="get", outcome="ok") > before,
            "the first body is here",
        )
        waiting = gate.call(
            lambda: [session.relay.endpoints[0].waiting for session in gate.gateway.registry.live.values()]
        )
        assert max(waiting) < 4 * MIB
        for number in range(3):
            message = talker.expect_content(amqp.BasicDeliver)
            assert message.body == body_of(20 * MIB + number)


def test_a_broker_that_hangs_up_amid_a_body_leaves_nothing(
    gate: InProcess, four: RabbitMQ, swift: Swift
) -> None:
    before = objects(swift)
    store = store_of(swift)
    with gate.dial() as talker:
        talker.open()
        header = ContentHeader(amqp.BasicPublish.CLASS_ID, 20 * MIB, amqp.BasicProperties())
        talker.raw(
            method_frame(1, amqp.BasicPublish(routing_key="nowhere"))
            + encode_frame(amqp.FRAME_HEADER, 1, encode_header(header))
        )
        for _ in range(90):
            talker.raw(encode_frame(amqp.FRAME_BODY, 1, bytes(100_000)))
        wait_until(lambda: bool(list(store.unfinished())), "the upload began")
        four.eval('[rabbit_networking:close_connection(P, "bye") || P <- rabbit_networking:connections()].')
        wait_until(lambda: not list(store.unfinished()), "the upload was aborted")
    assert objects(swift) == before


def test_memory_is_bounded(
    four: RabbitMQ, swift: Swift, environment: None, tmp_path: Path, queue: str
) -> None:
    """Four publishers and four consumers of 60 MiB at once, in a process of its own."""
    (tmp_path / "three.yaml").write_text(PROFILE.format(store=swift.port))
    config = (
        CONFIG.replace("127.0.0.1:0", "127.0.0.1:{{port}}").format(port=four.port, connections="own")
    ).replace("policies: policies", f"policies: {tmp_path}\nadmin: {{bind: '127.0.0.1:{{admin_port}}'}}")
    found = importlib.util.find_spec("boto3")
    assert found is not None
    assert found.origin is not None
    where = str(Path(found.origin).parents[1])
    gateway = Gateway(config=config, env={**os.environ, "PYTHONPATH": where})
    try:
        gateway.start()
        with connected(gateway.port) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", queue, body_of(2 * MIB))
            get(channel, queue)
        before = high_water(gateway.pid)
        errors: list[BaseException] = []

        def play(number: int) -> None:
            try:
                with connected(gateway.port) as connection:
                    channel = connection.channel()
                    channel.confirm_delivery()
                    channel.basic_publish("", queue, body_of(60 * MIB))
                    assert get(channel, queue)[1] == body_of(60 * MIB), number
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=play, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        assert high_water(gateway.pid) - before < 120 * MIB
    finally:
        gateway.stop()


def high_water(pid: int) -> int:
    """Bytes that a process has had at most."""
    (line,) = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024


# -- without a claim check -----------------------------------------------------------------------


@pytest.fixture(scope="module", params=["own", "pooled"])
def plain(four: RabbitMQ, request: pytest.FixtureRequest) -> Iterator[InProcess]:
    config = CONFIG.format(port=four.port, connections=request.param).replace("policies: policies\n", "")
    with serving(config) as running:
        yield running


def test_without_it_the_brokers_words_are_heard(plain: InProcess, queue: str) -> None:
    with connected(plain.port()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
            channel.basic_publish("", queue, body_of(17 * MIB))
    assert caught.value.reply_code == 406
    assert "message size 17825792 is larger than configured max size 16777216" in caught.value.reply_text


@pytest.mark.parametrize("version", ["0-8", "0-9"])
def test_clients_of_old_versions_hear_them_too(plain: InProcess, queue: str, version: str) -> None:
    with plain.dial() as talker:
        open_up(talker, SPOKEN[version])
        client = Client(talker, SPOKEN[version])
        client.ask(amqp.ChannelOpen())
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), body_of(17 * MIB))
        close = client.hear()
        assert isinstance(close, amqp.ChannelClose)
        assert close.reply_code == 406
        assert "message size 17825792 is larger than configured max size 16777216" in close.reply_text
