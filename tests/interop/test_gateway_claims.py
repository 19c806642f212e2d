"""Bodies that RabbitMQ 4 refuses, by way of an object store: OpenStack Swift, which speaks S3."""

from __future__ import annotations

import hashlib
import importlib.util
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyarrow import fs

from amqpgate.gateway.objects.s3 import S3Store
from amqpgate.policy.kinds.claim_check import StoreAddress
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import InProcess, serving
from tests.support.metrics import sample_value
from tests.support.missing import missing
from tests.support.ports import free_port
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


def store_of(swift: Swift) -> S3Store:
    address = f"s3://claims/prod?endpoint_override=http://127.0.0.1:{swift.port}"
    return S3Store.connect(StoreAddress.parse(address), 10)


def write(swift: Swift, name: str, data: bytes) -> None:
    with swift.client().open_output_stream(name) as stream:
        stream.write(data)


def counted(running: InProcess, name: str, **labels: str) -> float:
    registry = running.gateway.metrics.registry
    return sample_value(registry, name, labels) or 0


def wait_until(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.2)


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
    channel.cancel()
    channel.basic_nack(method.delivery_tag)
    channel.queue_declare(queue, passive=True)
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


def test_the_order_of_a_channel_stays(channel: BlockingChannel, gate: InProcess, queue: str) -> None:
    """Small messages behind large ones, with confirms, and more than what is kept of a channel."""
    bodies = [
        body_of(3 * MIB if number % 8 == 0 else 300_000 if number % 5 == 0 else 20) + str(number).encode()
        for number in range(40)
    ]
    for body in bodies:
        channel.basic_publish("", queue, body)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"last")
    with connected(gate.port()) as other:
        consumer = other.channel()
        consumer.basic_qos(prefetch_count=10)
        got = []
        for method, _, body in consumer.consume(queue, inactivity_timeout=60):
            assert method is not None
            assert body is not None
            consumer.basic_ack(method.delivery_tag)
            got.append(body)
            if body == b"last":
                break
        consumer.cancel()
    assert got == [*bodies, b"last"]


def test_who_closes_at_once_loses_nothing(gate: InProcess, four: RabbitMQ, queue: str) -> None:
    with connected(gate.port()) as connection:
        connection.channel().basic_publish("", queue, body_of(4 * MIB))
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.basic_publish("", queue, body_of(5 * MIB))
        channel.close()
        assert [len(get(connection.channel(), queue)[1]) for _ in range(2)] == [4 * MIB, 5 * MIB]


def test_a_transaction_waits_for_the_store(channel: BlockingChannel, queue: str) -> None:
    channel.tx_select()
    channel.basic_publish("", queue, body_of(2 * MIB))
    channel.tx_rollback()
    channel.basic_publish("", queue, body_of(3 * MIB))
    channel.basic_publish("", queue, b"small")
    channel.tx_commit()
    assert [len(get(channel, queue)[1]) for _ in range(2)] == [3 * MIB, 5]


def test_a_message_that_is_returned_comes_back_whole(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    body = body_of(2 * MIB)
    with pytest.raises(pika.exceptions.UnroutableError) as caught:
        channel.basic_publish("", "nowhere", body, pika.BasicProperties(type="t"), mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.body, returned.properties.type, returned.properties.headers) == (body, "t", None)


def test_who_hangs_up_amid_a_body_leaves_nothing(gate: InProcess, swift: Swift, queue: str) -> None:
    before = objects(swift)
    talker = gate.dial()
    talker.open()
    header = ContentHeader(amqp.BasicPublish.CLASS_ID, 20 * MIB, amqp.BasicProperties())
    talker.raw(
        method_frame(1, amqp.BasicPublish(routing_key=queue))
        + encode_frame(amqp.FRAME_HEADER, 1, encode_header(header))
    )
    for _ in range(90):
        talker.raw(encode_frame(amqp.FRAME_BODY, 1, bytes(100_000)))
    store = store_of(swift)
    wait_until(lambda: bool(list(store.unfinished())), "the upload began")
    talker.close()
    wait_until(lambda: not list(store.unfinished()), "the upload was aborted")
    assert objects(swift) == before


def test_a_forged_reference_reads_nothing(channel: BlockingChannel, four: RabbitMQ, queue: str) -> None:
    """Neither one that is made up, nor a true one that is changed, or from another virtual host."""
    channel.confirm_delivery()
    channel.basic_publish("", queue, body_of(2 * MIB))
    with connected(four.port) as direct:
        _, properties, _ = direct.channel().basic_get(queue, auto_ack=True)
        assert properties is not None
        true = properties.headers["x-amqpgate-claim"]
    version, key, size, digest, flag, mac = true.split(";")
    for forged in (
        "1;../../secret;5;x;0;y",
        ";".join([version, key, "100", digest, flag, mac]),
        ";".join([version, "f" * 16 + key[16:], size, digest, flag, mac]),
        mac,
        "",
        7,
    ):
        channel.basic_publish("", queue, b"!", pika.BasicProperties(headers={"x-amqpgate-claim": forged}))
    channel.basic_publish("", queue, b"end")
    for method, _, body in channel.consume(queue, inactivity_timeout=60):
        assert method is not None
        assert body == b"end"
        channel.basic_ack(method.delivery_tag)
        break
    channel.cancel()
    assert channel.queue_declare(queue, passive=True).method.message_count == 0


def test_a_body_that_is_not_what_it_was_goes_to_the_dead_letters(
    channel: BlockingChannel, swift: Swift, queue: str
) -> None:
    dead = f"{queue}-dead"
    source = f"{queue}-source"
    channel.queue_declare(dead, exclusive=True)
    channel.queue_declare(
        source, exclusive=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    )
    channel.confirm_delivery()
    for spoil in (
        lambda name: write(swift, name, b"!" * 2 * MIB),
        lambda name: write(swift, name, b"short"),
        lambda name: swift.client().delete_file(name),
    ):
        before = set(objects(swift))
        channel.basic_publish("", source, body_of(2 * MIB))
        (name,) = set(objects(swift)) - before
        spoil(name)
        channel.basic_publish("", source, b"next")
        for method, _, body in channel.consume(source, inactivity_timeout=60):
            assert method is not None
            assert body == b"next"
            channel.basic_ack(method.delivery_tag)
            break
        channel.cancel()
    assert channel.queue_declare(dead, passive=True).method.message_count == 3
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        channel.basic_get(dead)
    assert caught.value.reply_code == 404
    assert "the body of a message is lost" in caught.value.reply_text


@pytest.mark.parametrize("confirms", [True, False])
def test_a_store_that_is_away_refuses_the_publish(
    four: RabbitMQ, environment: None, tmp_path: Path, queue: str, confirms: bool
) -> None:
    (tmp_path / "policies").mkdir()
    profile = PROFILE.format(store=free_port()).replace("timeout: 5s", "timeout: 500ms")
    (tmp_path / "policies" / "three.yaml").write_text(profile)
    config = CONFIG.format(port=four.port, connections="own")
    with serving(config, folder=tmp_path) as running, connected(running.port()) as connection:
        channel = connection.channel()
        if confirms:
            channel.confirm_delivery()
            with pytest.raises(pika.exceptions.NackError):
                channel.basic_publish("", queue, body_of(2 * MIB))
            channel.basic_publish("", queue, b"small")
            assert get(channel, queue)[1] == b"small"
        else:
            channel.basic_publish("", queue, body_of(2 * MIB))
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
                channel.queue_declare(queue, passive=True)
            assert caught.value.reply_code == 406
            assert "the object store does not take it" in caught.value.reply_text
        assert counted(running, "amqpgate_claim_objects_total", operation="put", outcome="failed") == 1


def test_what_is_counted(gate: InProcess, channel: BlockingChannel, queue: str) -> None:
    before = counted(gate, "amqpgate_claim_bytes_total", operation="put")
    channel.confirm_delivery()
    channel.basic_publish("", queue, body_of(2 * MIB))
    assert counted(gate, "amqpgate_claim_bytes_total", operation="put") == before + 2 * MIB
    get(channel, queue)
    assert counted(gate, "amqpgate_claim_bytes_total", operation="get") >= 2 * MIB
    assert counted(gate, "amqpgate_compatibility_changes_total", policy="three", item="claim-check") >= 1
