"""A drain of clients whose broker is spoken with in another version: each hears 320 in its own.

0-8 and 0-9 have no confirms. What a client of theirs may count on is a commit that was answered. Of what else
it has published the broker has a beginning, without a gap.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import threading
from collections.abc import Iterator

import attrs
import pika
import pytest

from amqpgate.datapath.tables import Side
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.session.graceful_close import BREATH
from amqpgate.gateway.session.session import Session
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.test_gateway_bridge import Client
from tests.support.inprocess import InProcess, eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.versions import SPOKEN, open_up

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0, channelFlow: gateway}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, version: {far}}}]
limits: {{closeTimeout: 2s}}
"""
#: Seconds of a drain: of five sessions the oldest has its turn after one, and confirms are waited for six.
WINDOW = 8.0

#: Pairs of versions that differ: the client's and the broker's.
PAIRS = [
    pytest.param(near, far, marks=() if {near, far} == {"0-8", "0-9-1"} else pytest.mark.slow)
    for near in SPOKEN
    for far in SPOKEN
    if near != far
]


@attrs.define
class Broker:
    """RabbitMQ, as an operator has it."""

    channel: pika.adapters.blocking_connection.BlockingChannel
    queues: list[str] = attrs.field(factory=list)

    def queue(self, messages: int = 0) -> str:
        """The name of a new one with so many messages."""
        name = f"drained-{secrets.token_hex(4)}"
        self.channel.queue_declare(name)
        self.queues.append(name)
        self.fill(name, messages)
        return name

    def fill(self, name: str, messages: int) -> None:
        for number in range(messages):
            self.channel.basic_publish("", name, b"%d" % number)

    def count(self, name: str) -> int:
        count: int = self.channel.queue_declare(name, passive=True).method.message_count
        return count

    def take(self, name: str) -> list[tuple[bytes, bool]]:
        """All that is in it: the bodies, and whether they are marked as redelivered."""
        taken = []
        while (got := self.channel.basic_get(name, auto_ack=True))[0] is not None:
            taken.append((got[2], got[0].redelivered))
        return taken


@pytest.fixture
def broker(rabbitmq: RabbitMQ) -> Iterator[Broker]:
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(rabbitmq.url))) as connection:
        broker = Broker(connection.channel())
        yield broker
        for name in broker.queues:
            broker.channel.queue_delete(name)


@attrs.define
class Place:
    """A gateway and its clients."""

    running: InProcess
    near: str
    everything: contextlib.ExitStack

    def client(self) -> tuple[Client, Session]:
        """A client with an open channel, and its session."""
        talker = self.everything.enter_context(self.running.dial())
        open_up(talker, SPOKEN[self.near])
        client = Client(talker, SPOKEN[self.near])
        assert isinstance(client.ask(amqp.ChannelOpen()), amqp.ChannelOpenOk)
        gateway = self.running.gateway
        return client, self.running.call(lambda: list(gateway.sessions.values())[-1])


@contextlib.contextmanager
def place(rabbitmq: RabbitMQ, near: str, far: str) -> Iterator[Place]:
    with (
        serving(SETTINGS.format(port=rabbitmq.port, far=far)) as running,
        contextlib.ExitStack() as everything,
    ):
        yield Place(running, near, everything)


def publish(client: Client, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        client.publish(amqp.BasicPublish(exchange="", routing_key=queue), body)


def synchronize(client: Client, queue: str) -> None:
    """All that was said before has been dealt with."""
    assert isinstance(client.ask(amqp.QueueDeclare(queue=queue, passive=True)), amqp.QueueDeclareOk)


def is_sent_away(client: Client) -> None:
    words = client.spoken.words
    text = "CONNECTION_FORCED - amqpgate is shutting down"
    assert client.talker.expect(words.ConnectionClose) == words.ConnectionClose(320, text)
    client.talker.say(words.ConnectionCloseOk())
    client.talker.expect_end()


def ports_of(gateway: Gateway) -> list[int]:
    """Where its connections to the broker come from."""
    sessions = gateway.sessions.values()
    return [session.relay.endpoints[Side.UPSTREAM].sock.getsockname()[1] for session in sessions]


def logged(rabbitmq: RabbitMQ, port: int) -> list[str]:
    """What the broker wrote of the latest connection from there."""
    lines = [line for line in rabbitmq.log.read_text().splitlines() if f"(127.0.0.1:{port} -> " in line]
    begins = [index for index, line in enumerate(lines) if " connection <" in line and "granted" in line]
    return lines[begins[-1] :] if begins else []


@attrs.define
class Unending:
    """Publishes until something is said to it."""

    client: Client
    queue: str
    count: int = 0

    def run(self) -> None:
        while not select.select([self.client.talker.sock], [], [], 0.001)[0]:
            publish(self.client, self.queue, b"%d" % self.count)
            self.count += 1


@pytest.mark.parametrize(("near", "far"), PAIRS)
def test_a_drain(rabbitmq: RabbitMQ, broker: Broker, near: str, far: str) -> None:
    committed, left, many = broker.queue(), broker.queue(), broker.queue()
    worked, kept = broker.queue(messages=10), broker.queue()
    with place(rabbitmq, near, far) as here:
        (committer, its), (waverer, _), (publisher, _), (worker, _), (stopped, stopped_session) = (
            here.client() for _ in range(5)
        )
        ports = here.running.call(lambda: ports_of(here.running.gateway))
        assert len(ports) == 5
        for one in (committer, waverer):
            assert isinstance(one.ask(amqp.TxSelect()), amqp.TxSelectOk)
        publish(waverer, left, b"not committed")
        synchronize(waverer, left)

        assert isinstance(worker.ask(amqp.BasicQos(prefetch_count=5)), amqp.BasicQosOk)
        assert isinstance(worker.ask(amqp.BasicConsume(queue=worked, consumer_tag="c")), amqp.BasicConsumeOk)
        for _ in range(5):
            worker.message(amqp.BasicDeliver)
        for tag in (1, 2, 3):
            worker.say(amqp.BasicAck(tag))
        for _ in range(3):
            worker.message(amqp.BasicDeliver)
        synchronize(worker, worked)

        assert isinstance(stopped.ask(amqp.BasicConsume(queue=kept, no_ack=True)), amqp.BasicConsumeOk)
        assert stopped.ask(amqp.ChannelFlow(active=False)) == amqp.ChannelFlowOk(active=False)
        broker.fill(kept, 5)
        eventually(lambda: here.running.call(lambda: stopped_session.relay.down.messages) == 5)

        unending = Unending(publisher, many)
        thread = threading.Thread(target=unending.run)
        thread.start()
        try:
            eventually(lambda: broker.count(many) > 20)
            rabbitmq.pause()
            publish(committer, committed, *(b"%d" % number for number in range(10)))
            committer.say(amqp.TxCommit())
            eventually(lambda: here.running.call(lambda: its.channels.states[1].commits_due) == 1)
            here.running.call(lambda: here.running.gateway.drain(WINDOW))
            eventually(lambda: here.running.call(lambda: its.relay.endpoints[Side.CLIENT].halted))
            publish(committer, committed, b"not read any more")
            # Longer than it has to read an answer.
            committer.talker.hear_nothing(BREATH + 0.3)
        finally:
            rabbitmq.resume()
        assert isinstance(committer.hear(), amqp.TxCommitOk)
        is_sent_away(committer)
        is_sent_away(waverer)
        thread.join(20)
        is_sent_away(publisher)
        is_sent_away(worker)
        # The broker does not have these any more.
        bodies = [stopped.message(amqp.BasicDeliver)[1].body for _ in range(5)]
        assert bodies == [b"%d" % number for number in range(5)]
        is_sent_away(stopped)
        here.running.join()
    assert here.running.outcomes() == {"drained": 5}
    # It has heard connection.close in the version that is spoken with it.
    for port in ports:
        # It writes when it has time.
        eventually(lambda port=port: any(" closing AMQP " in line for line in logged(rabbitmq, port)))
        assert not [line for line in logged(rabbitmq, port) if "[error]" in line]
    assert broker.take(committed) == [(b"%d" % number, False) for number in range(10)]
    assert broker.take(left) == []
    # What was not acknowledged comes again.
    assert broker.take(worked) == [(b"%d" % number, number < 8) for number in range(3, 10)]
    arrived = [body for body, _ in broker.take(many)]
    assert arrived == [b"%d" % number for number in range(len(arrived))]
    assert 20 < len(arrived) <= unending.count
