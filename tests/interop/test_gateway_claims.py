"""Bodies that RabbitMQ 4 refuses, by way of an object store: OpenStack Swift, which speaks S3."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyarrow import fs

from tests.support.inprocess import InProcess, serving
from tests.support.metrics import sample_value
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4
from tests.support.swift import Swift

pytestmark = pytest.mark.slow

MIB = 1 << 20

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: four, host: 127.0.0.1, port: {port}, connections: {connections}}}]
policies: policies
limits: {{maxMessageBytes: 130Mi}}
"""

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {{name: three}}
spec:
  subjects: [{{}}]
  as: rabbitmq-3.13
  claimCheck:
    store: "s3://claims/prod?endpoint_override=http://127.0.0.1:{store}"
    above: 1Mi
    timeout: 5s
"""

KEYS = "k" * 40


@pytest.fixture(scope="module")
def swift() -> Iterator[Swift]:
    if importlib.util.find_spec("boto3") is None:
        missing("boto3 is not installed (pip install 'amqpgate[claims]')")
    server = Swift()
    try:
        server.start()
        server.client().create_dir("claims")
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="module")
def four() -> Iterator[RabbitMQ]:
    node = RabbitMQ(root=root_of_4())
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture(scope="module")
def environment(swift: Swift) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in swift.environment().items():
            patch.setenv(name, value)
        patch.delenv("AWS_ENDPOINT_URL")
        patch.setenv("AMQPGATE_CLAIM_KEYS", KEYS)
        yield


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(
    four: RabbitMQ,
    swift: Swift,
    environment: None,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("claims")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE.format(store=swift.port))
    with serving(CONFIG.format(port=four.port, connections=request.param), folder=folder) as running:
        yield running


def connected(port: int) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))


@pytest.fixture
def channel(gate: InProcess) -> Iterator[BlockingChannel]:
    connection = connected(gate.port())
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


@pytest.fixture
def queue(four: RabbitMQ) -> Iterator[str]:
    name = f"claims-{secrets.token_hex(4)}"
    with connected(four.port) as connection:
        connection.channel().queue_declare(name, durable=True)
        yield name
        connection.channel().queue_delete(name)


def body_of(size: int) -> bytes:
    return hashlib.sha256(str(size).encode()).digest() * (size // 32) + b"x" * (size % 32)


def objects(swift: Swift) -> list[str]:
    found = swift.client().get_file_info(fs.FileSelector("claims/prod", recursive=True, allow_not_found=True))
    return sorted(info.path for info in found if info.is_file)


def get(channel: BlockingChannel, queue: str) -> tuple[pika.BasicProperties, bytes]:
    method, properties, body = channel.basic_get(queue, auto_ack=True)
    assert method is not None
    assert properties is not None
    assert body is not None
    return properties, body


@pytest.mark.parametrize("size", [MIB + 1, 17 * MIB, 120 * MIB])
def test_a_body_goes_to_the_store_and_comes_back(
    channel: BlockingChannel, four: RabbitMQ, queue: str, size: int
) -> None:
    body = body_of(size)
    said = pika.BasicProperties(
        content_type="a/b", headers={"x": 1, "y": [True]}, priority=3, delivery_mode=2, message_id="m"
    )
    channel.confirm_delivery()
    channel.basic_publish("", queue, body, said, mandatory=True)
    method, properties, got = next(iter(channel.consume(queue, inactivity_timeout=60)))
    assert got == body
    assert properties == said
    assert method is not None
    channel.basic_nack(method.delivery_tag)
    method, properties, got = next(iter(channel.consume(queue, inactivity_timeout=60)))
    assert method is not None
    assert method.redelivered
    assert (got, properties) == (body, said)
    channel.basic_nack(method.delivery_tag)
    channel.cancel()
    with connected(four.port) as direct:
        _, properties, reference = direct.channel().basic_get(queue)
        assert properties is not None
        assert set(properties.headers) == {"x", "y", "x-amqpgate-claim"}
        assert reference is not None
        assert reference.startswith(b"The body of this message is in an object store")
    properties, got = get(channel, queue)
    assert (got, properties) == (body, said)


def test_a_message_without_headers_has_none_afterwards(channel: BlockingChannel, queue: str) -> None:
    channel.basic_publish("", queue, body_of(2 * MIB))
    channel.basic_publish("", queue, body_of(2 * MIB), pika.BasicProperties(headers={}))
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"small")
    first, second = get(channel, queue), get(channel, queue)
    assert first[0].headers is None
    assert second[0].headers == {}
    assert get(channel, queue)[1] == b"small"
