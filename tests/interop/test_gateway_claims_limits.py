"""Bodies in an object store beyond a limit of their channel, on RabbitMQ 3 and 4, by clients of each version.

The limit is the channel's for clients of AMQP 0-8 and 0-9, and with `global` for 0-9-1. What waits is
a reference: no body is got before its client may have it, and no channel is closed for too much of it.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.old_clients.clients import SYSTEM_PYTHON
from tests.interop.test_gateway_bridge import Client
from tests.interop.test_gateway_claims import CONFIG, MIB, PROFILE, body_of, connected, counted
from tests.interop.test_gateway_claims import environment as environment
from tests.interop.test_gateway_claims import swift as swift
from tests.support.inprocess import InProcess, serving
from tests.support.missing import missing
from tests.support.rabbitmq import RabbitMQ
from tests.support.swift import Swift
from tests.support.versions import SPOKEN, open_up

pytestmark = pytest.mark.slow

LARGE = 17 * MIB
COUNT, LIMIT = 8, 2

#: Two consumers of one channel, which may have two messages, by a library of 2007. Prints their sizes.
_AMQPLIB = """
import sys
import amqplib.client_0_8 as amqp
port, queue, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
connection = amqp.Connection("127.0.0.1:" + port, "guest", "guest")
channel = connection.channel()
channel.basic_qos(0, 2, False)
waiting, got = [], []
def take(message):
    waiting.append(message)
for tag in ("c", "d"):
    channel.basic_consume(queue, tag, callback=take)
while len(got) < count:
    while not waiting:
        channel.wait()
    assert len(waiting) <= 2, len(waiting)
    message = waiting.pop(0)
    got.append((message.delivery_tag, len(message.body)))
    channel.basic_ack(message.delivery_tag)
channel.close()
connection.close()
print(sorted(size for _, size in got), [tag for tag, _ in got])
"""


@pytest.fixture(scope="module", params=["3", "4"])
def node(request: pytest.FixtureRequest) -> RabbitMQ:
    return request.getfixturevalue("rabbitmq" if request.param == "3" else "rabbitmq4")  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def gate(
    node: RabbitMQ, swift: Swift, environment: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "policies").mkdir()
    profile = PROFILE.format(store=swift.port).replace("above: 1Mi", "above: 16Mi")
    (folder / "policies" / "three.yaml").write_text(profile)
    with serving(CONFIG.format(port=node.port, connections="own"), folder=folder) as running:
        yield running


@pytest.fixture
def queue(node: RabbitMQ, gate: InProcess) -> Iterator[str]:
    """A queue with large messages, each of another size, and small ones between."""
    name = f"limits-{secrets.token_hex(4)}"
    with connected(gate.port()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        for size in sizes():
            channel.basic_publish("", name, body_of(size))
        yield name
        connection.channel().queue_delete(name)


def sizes() -> list[int]:
    return [LARGE + number if number % 3 else 100 + number for number in range(COUNT)]


def fetched(gate: InProcess) -> float:
    """Bodies that came from the store so far."""
    return counted(gate, "amqpgate_claim_objects_total", operation="get", outcome="ok")


@pytest.mark.parametrize("version", SPOKEN)
def test_two_consumers_have_as_many_as_their_channel_may(gate: InProcess, queue: str, version: str) -> None:
    with gate.dial() as talker:
        before = fetched(gate)
        open_up(talker, SPOKEN[version])
        client = Client(talker, SPOKEN[version])
        client.ask(amqp.ChannelOpen())
        client.ask(amqp.BasicQos(prefetch_count=LIMIT, global_=version == "0-9-1"))
        client.say(amqp.BasicConsume(queue=queue, consumer_tag="c"))
        client.say(amqp.BasicConsume(queue=queue, consumer_tag="d"))
        answered, got = 0, list[tuple[int, int]]()
        unacked: list[int] = []
        while len(got) < COUNT:
            method = client.hear()
            if isinstance(method, amqp.BasicConsumeOk):
                answered += 1
                continue
            assert isinstance(method, amqp.BasicDeliver), method
            body = talker.content_of(method).body
            assert (body == body_of(len(body))) is True
            got.append((method.delivery_tag, len(body)))
            unacked.append(method.delivery_tag)
            assert len(unacked) <= LIMIT
            if len(unacked) == LIMIT or len(got) == COUNT:
                client.say(amqp.BasicAck(unacked.pop(0)))
        assert answered == 2
        tags = [tag for tag, _ in got]
        assert tags == sorted(tags), "in the order in which the broker sent them"
        assert sorted(size for _, size in got) == sorted(sizes())
        assert fetched(gate) - before == sum(size >= LARGE for size in sizes()), "each body once"
        client.ask(amqp.ChannelClose(200, "", 0, 0))


def test_a_library_of_amqp_0_8(gate: InProcess, queue: str) -> None:
    if subprocess.run([SYSTEM_PYTHON, "-c", "import amqplib"], capture_output=True).returncode:
        missing("py-amqplib is not here (Debian: apt-get install python3-amqplib)")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "consume.py"
        program.write_text(_AMQPLIB)
        command = [SYSTEM_PYTHON, str(program), str(gate.port()), queue, str(COUNT)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(str(sorted(sizes()))), done.stdout
