"""basic.qos of clients of 0-8 and 0-9 on a real RabbitMQ: the limit is the channel's, of all its consumers.

RabbitMQ itself gives each consumer a limit of its own, and only those that come after it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import attrs
import pytest

from amqpgate.bridge import Interpreter, interpreter_for
from amqpgate.protocol.frames import encode_frame
from amqpgate.protocol.methods import Role
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker
from tests.support.versions import SPOKEN, Spoken, bye, open_up

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: {far}}}]
"""


@pytest.fixture(scope="module", params=["0-8", "0-9-1"])
def running(request: pytest.FixtureRequest, rabbitmq: RabbitMQ) -> Iterator[InProcess]:
    """A gateway that speaks this version with the broker."""
    with serving(SETTINGS.format(port=rabbitmq.port, far=request.param)) as running:
        yield running


@attrs.define
class Client:
    """One that consumes from its queue on channel 1, and does all else on channel 2."""

    talker: Talker
    spoken: Spoken
    queue: str
    #: Delivery tags that nobody has asked for.
    arrived: list[int] = attrs.field(factory=list)
    interpreter: Interpreter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.interpreter = interpreter_for(self.spoken.dialect)

    def say(self, method: Method, channel: int = 1) -> None:
        self.talker.raw(encode_frame(1, channel, self.interpreter.from_canonical(method)))

    def _step(self) -> tuple[int, Method] | None:
        """The next method, or None where it was a delivery."""
        frame = self.talker.frame()
        assert frame.type == 1
        method = self.interpreter.to_canonical(frame.payload, Role.SERVER)
        if not isinstance(method, amqp.BasicDeliver):
            return frame.channel, method
        self.talker.content_of(method, frame.channel)
        self.arrived.append(method.delivery_tag)
        return None

    def ask(self, method: Method, channel: int = 1) -> Method:
        self.say(method, channel)
        while (heard := self._step()) is None:
            pass
        assert heard[0] == channel, heard
        return heard[1]

    def consume(self, tag: str, *, no_ack: bool = False) -> None:
        answer = self.ask(amqp.BasicConsume(queue=self.queue, consumer_tag=tag, no_ack=no_ack))
        assert answer == amqp.BasicConsumeOk(tag)

    def limit(self, count: int, size: int = 0, *, is_global: bool = False) -> None:
        assert self.ask(amqp.BasicQos(size, count, is_global)) == amqp.BasicQosOk()

    def publish(self, count: int, body: bytes = b"x") -> None:
        """So many messages, which the broker has routed when this returns."""
        words = self.spoken.words
        for _ in range(count):
            publish = words.BasicPublish(1, "", self.queue)
            self.talker.content(publish, body, properties=words.BasicProperties(), channel=2)
        declare = amqp.QueueDeclare(queue=self.queue, passive=True)
        assert isinstance(self.ask(declare, 2), amqp.QueueDeclareOk)

    def takes(self, count: int) -> list[int]:
        """Delivery tags of what comes, which is so many and no more.

        Queues deliver in their own time, so this asks a few times.
        """
        while len(self.arrived) < count:
            assert self._step() is None
        for _ in range(10):
            self.ask(amqp.QueueDeclare(queue=self.queue, passive=True), 2)
        assert len(self.arrived) == count
        tags, self.arrived = self.arrived, []
        return tags


@pytest.fixture(params=["0-8", "0-9"])
def spoken(request: pytest.FixtureRequest) -> Spoken:
    return SPOKEN[request.param]


@pytest.fixture(params=["classic", "quorum"])
def client(
    request: pytest.FixtureRequest, running: InProcess, rabbitmq: RabbitMQ, spoken: Spoken
) -> Iterator[Client]:
    """A client of this version, and a queue of this type that somebody else has declared."""
    name = f"prefetch-{secrets.token_hex(4)}"
    with running.dial() as talker:
        open_up(talker, spoken)
        client = Client(talker, spoken, name)
        for channel in (1, 2):
            assert isinstance(client.ask(amqp.ChannelOpen(), channel), amqp.ChannelOpenOk)
        arguments = Table.of({"x-queue-type": request.param})
        declared = client.ask(amqp.QueueDeclare(queue=name, durable=True, arguments=arguments))
        assert isinstance(declared, amqp.QueueDeclareOk)
        yield client
        assert isinstance(client.ask(amqp.QueueDelete(queue=name), 2), amqp.QueueDeleteOk)
        bye(talker, spoken)


def test_a_limit_holds_for_a_consumer_that_is_there(client: Client) -> None:
    client.consume("c")
    client.limit(1)
    client.publish(4)
    assert client.takes(1) == [1]
    client.say(amqp.BasicAck(1))
    assert client.takes(1) == [2]
    client.limit(3)
    assert client.takes(2) == [3, 4]


def test_two_consumers_share_a_limit(client: Client) -> None:
    client.limit(2)
    client.consume("c")
    client.consume("d")
    client.publish(6)
    for _ in range(3):
        tags = client.takes(2)
        client.say(amqp.BasicAck(tags[-1], multiple=True))


def test_a_prefetch_size_holds_for_a_consumer_that_is_there(client: Client) -> None:
    client.consume("c")
    client.limit(10, 100)
    client.publish(3)
    for _ in range(3):
        (tag,) = client.takes(1)
        client.say(amqp.BasicAck(tag))


def test_a_consumer_may_follow_a_limit_that_came_late(client: Client) -> None:
    """The channel's limit at the broker would be 540 for a quorum queue."""
    client.consume("c")
    client.limit(1)
    client.consume("d")
    client.publish(2)
    client.takes(1)
    client.say(amqp.BasicAck(0, multiple=True))
    client.takes(1)
    client.say(amqp.BasicAck(0, multiple=True))


def test_a_limit_of_the_connection(client: Client) -> None:
    client.consume("c")
    client.limit(1, is_global=True)
    client.publish(2)
    (tag,) = client.takes(1)
    client.say(amqp.BasicAck(tag))
    client.takes(1)


def test_what_the_client_did_not_get_is_in_the_queue_again(client: Client) -> None:
    client.consume("c")
    client.limit(1)
    client.publish(3)
    (tag,) = client.takes(1)
    assert client.ask(amqp.BasicCancel("c")) == amqp.BasicCancelOk("c")
    client.say(amqp.BasicAck(tag))
    client.consume("d")
    for _ in range(2):
        (tag,) = client.takes(1)
        client.say(amqp.BasicAck(tag))


def test_a_backlog_waits_at_a_broker_that_can_hold_it(client: Client, request: pytest.FixtureRequest) -> None:
    """Of a classic queue RabbitMQ keeps to the channel's limit itself."""
    if "quorum" in request.node.name:
        pytest.skip("RabbitMQ has no limit of the channel for quorum queues")
    client.consume("c")
    client.limit(1)
    client.publish(20, b"x" * 1_000_000)
    for _ in range(20):
        (tag,) = client.takes(1)
        client.say(amqp.BasicAck(tag))
