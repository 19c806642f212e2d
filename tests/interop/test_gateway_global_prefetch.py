"""basic.qos with global: directly on RabbitMQ 3 and 4, and on 4 through a compatibility policy.

RabbitMQ 3 keeps it for the channel, of classic queues only; RabbitMQ 4 takes it for each consumer's.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs
import kombu
import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.inprocess import InProcess, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

pytestmark = pytest.mark.slow

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: four, host: 127.0.0.1, port: {port}, connections: {connections}}}]
policies: policies
"""

PROFILE = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec: {subjects: [{}], as: rabbitmq-3.13, nacks: count}
"""

#: Messages in each queue.
MANY = 10

#: Seconds in which all comes that comes.
QUIET = 0.3

#: How the bodies of each queue begin.
QUEUES = (b"0.", b"1.")


@attrs.define
class Client:
    """One that consumes from two queues of a type, on one channel."""

    connection: pika.BlockingConnection
    kind: str
    queues: list[str] = attrs.field(factory=lambda: [f"window-{secrets.token_hex(4)}" for _ in range(2)])
    #: Delivery tags and bodies that it has and has not acknowledged.
    has: dict[int, bytes] = attrs.field(factory=dict)
    channel: BlockingChannel = attrs.field(init=False)
    #: For all else.
    side: BlockingChannel = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.channel, self.side = self.connection.channel(), self.connection.channel()
        self.side.confirm_delivery()
        for queue in self.queues:
            self.side.queue_declare(queue, durable=True, arguments={"x-queue-type": self.kind})

    def fill(self, *numbers: int) -> None:
        for number in numbers or (0, 1):
            for message in range(MANY):
                self.side.basic_publish("", self.queues[number], b"%d.%d" % (number, message))

    def limit(self, count: int, *, is_global: bool = True) -> None:
        self.channel.basic_qos(prefetch_count=count, global_qos=is_global)

    def consume(self, number: int, **options: object) -> str:
        return self.channel.basic_consume(
            self.queues[number],
            lambda _, method, __, body: self.has.update({method.delivery_tag: body}),
            **options,  # type: ignore[arg-type]
        )

    def count(self, expected: int = 0, patience: float = 20) -> int:
        """How many it has, once so many have come, and then no more for a while."""
        before, until = len(self.has), time.monotonic() + (patience if len(self.has) < expected else QUIET)
        while time.monotonic() < until:
            self.connection.process_data_events(time_limit=QUIET)
            if len(self.has) != before and len(self.has) >= expected:
                before, until = len(self.has), time.monotonic() + QUIET
        return len(self.has)

    def ack(self, count: int, *, multiple: bool = False) -> None:
        tags = sorted(self.has)[:count]
        for tag in tags[-1:] if multiple else tags:
            self.channel.basic_ack(tag, multiple=multiple)
        for tag in tags:
            del self.has[tag]


Step: TypeAlias = Callable[[Client], object]


def two_consumers(client: Client) -> object:
    client.limit(2)
    client.consume(0), client.consume(1)
    client.fill()
    counts = [client.count(2)]
    client.ack(1)
    counts.append(client.count(2))
    client.ack(2, multiple=True)
    return [*counts, client.count(2)]


def a_limit_behind_the_consumers(client: Client) -> object:
    client.consume(0), client.consume(1)
    client.limit(3)
    client.fill()
    return client.count(3)


def a_consumer_behind_a_full_window(client: Client) -> object:
    client.limit(2)
    client.consume(0)
    client.fill()
    first = client.count(2)
    client.consume(1)
    return first, client.count(2)


def a_wider_limit_while_full(client: Client) -> object:
    client.limit(2)
    client.consume(0)
    client.fill(0)
    counts = [client.count(2)]
    for limit in (3, 5, 6):
        client.limit(limit)
        counts.append(client.count(limit))
    return counts


def a_narrower_limit(client: Client) -> object:
    client.limit(6)
    client.consume(0), client.consume(1)
    client.fill()
    counts = [client.count(6)]
    client.limit(1)
    for _ in range(2):
        client.ack(3)
        counts.append(client.count())
    client.ack(1)
    return [*counts, client.count(1)]


def no_limit_any_more(client: Client) -> object:
    client.limit(2)
    client.consume(0), client.consume(1)
    client.fill()
    counts = [client.count(2)]
    client.limit(0)
    return [*counts, client.count(2 * MANY)]


def limits_of_both_kinds(client: Client) -> object:
    client.limit(2, is_global=False)
    client.limit(3)
    client.consume(0), client.consume(1)
    client.fill()
    return client.count(3), max(sum(body.startswith(one) for body in client.has.values()) for one in QUEUES)


def a_limit_of_consumers_behind_that(client: Client) -> object:
    """It lifts the channel's, whatever the manual of RabbitMQ says."""
    client.limit(1)
    client.consume(0)
    client.fill()
    counts = [client.count(1)]
    client.limit(2, is_global=False)
    client.consume(1)
    return [*counts, client.count(MANY + 2)]


def what_is_got_does_not_count(client: Client) -> object:
    client.limit(2)
    client.fill()
    got = [client.channel.basic_get(client.queues[0])[0] for _ in range(3)]
    client.consume(0), client.consume(1)
    assert None not in got
    return client.count(2)


def a_consumer_goes(client: Client) -> object:
    client.limit(2)
    first = client.consume(0)
    client.fill()
    client.count(2)
    client.consume(1)
    client.channel.basic_cancel(first)
    seen = 0
    for _ in range(MANY + 2):
        assert client.count(1) <= 2
        seen += 1
        client.ack(1)
    return (
        seen,
        len(client.has),
        client.side.queue_declare(client.queues[0], passive=True).method.message_count,
    )


def everything_comes(client: Client) -> object:
    client.limit(2)
    client.consume(0), client.consume(1)
    client.fill()
    seen: list[bytes] = []
    while len(seen) < 2 * MANY:
        assert 0 < client.count(1) <= 2
        seen += client.has.values()
        client.ack(2, multiple=len(seen) % 3 == 0)
    return len(seen), len(set(seen))


#: What a client does, and what comes of it on RabbitMQ 3.10, and on 4.3.
ROWS: dict[str, tuple[Step, object, object]] = {
    "two consumers": (two_consumers, [2, 2, 2], [4, 4, 4]),
    "a limit behind the consumers": (a_limit_behind_the_consumers, 3, 2 * MANY),
    "a consumer behind a full window": (a_consumer_behind_a_full_window, (2, 2), (2, 4)),
    "a wider limit while full": (a_wider_limit_while_full, [2, 3, 5, 6], [2, 2, 2, 2]),
    "a narrower limit": (a_narrower_limit, [6, 3, 1, 1], [12, 12, 10, 10]),
    "no limit any more": (no_limit_any_more, [2, 2 * MANY], [4, 4]),
    "limits of both kinds": (limits_of_both_kinds, (3, 2), (6, 3)),
    "a limit of consumers behind that": (a_limit_of_consumers_behind_that, [1, MANY + 2], [1, 3]),
    "what is got": (what_is_got_does_not_count, 2, 4),
    "a consumer goes": (a_consumer_goes, (MANY + 2, 0, MANY - 2), None),
    "everything": (everything_comes, (2 * MANY, 2 * MANY), None),
}


@pytest.fixture(scope="module")
def four() -> Iterator[RabbitMQ]:
    node = RabbitMQ(root=root_of_4(), config=["deprecated_features.permit.global_qos = false"])
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture(scope="module", params=["own", "pooled"])
def gate(
    four: RabbitMQ, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("windows")
    (folder / "policies").mkdir()
    (folder / "policies" / "three.yaml").write_text(PROFILE)
    with serving(CONFIG.format(port=four.port, connections=request.param), folder=folder) as running:
        yield running


def connected(port: int) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0))


def outcome(port: int, step: Step, kind: str) -> object:
    """What comes of it: what the step gives, or the reply code."""
    connection = connected(port)
    client = Client(connection, kind)
    try:
        return step(client)
    except (pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker) as closed:
        return closed.reply_code
    finally:
        if connection.is_open:
            for queue in client.queues:
                client.side.queue_delete(queue)
            connection.close()


@pytest.mark.parametrize("row", ROWS)
def test_what_comes_of_it_directly(rabbitmq: RabbitMQ, four: RabbitMQ, row: str) -> None:
    step, on_three, on_four = ROWS[row]
    assert outcome(rabbitmq.port, step, "classic") == on_three
    if on_four is not None:
        assert outcome(four.port, step, "classic") == on_four


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("row", ROWS)
def test_it_is_on_four_as_on_three(gate: InProcess, row: str, kind: str) -> None:
    step, on_three, _ = ROWS[row]
    assert outcome(gate.port(), step, kind) == on_three


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_a_client_that_leaves_had_comes_again(gate: InProcess, kind: str) -> None:
    """What it has and what waits for it in the gateway; nobody else has had it."""
    with connected(gate.port()) as connection:
        other = Client(connection, kind)
        lost = Client(connected(gate.port()), kind, other.queues)
        try:
            lost.limit(3)
            lost.consume(0), lost.consume(1)
            other.fill()
            assert lost.count(3) == 3
            lost.connection.close()
            other.limit(5)
            other.consume(0), other.consume(1)
            seen: list[bytes] = []
            while len(seen) < 2 * MANY:
                assert 0 < other.count(1) <= 5
                seen += other.has.values()
                other.ack(5, multiple=True)
            assert len(set(seen)) == 2 * MANY
        finally:
            for queue in other.queues:
                other.side.queue_delete(queue)


def test_kombu_sets_it_for_several_queues(gate: InProcess) -> None:
    """As Celery does for the queues of a worker."""
    names = [f"window-{secrets.token_hex(4)}" for _ in range(2)]
    got: list[kombu.Message] = []
    with kombu.Connection(f"amqp://guest:guest@127.0.0.1:{gate.port()}//") as connection:
        queues = [kombu.Queue(name, routing_key=name, durable=True) for name in names]
        consumer = connection.Consumer(queues, on_message=got.append, accept=["json"])
        consumer.qos(prefetch_count=2, apply_global=True)
        with connection.Producer() as producer:
            for number in range(MANY):
                producer.publish({"number": number}, routing_key=names[number % 2])

        def count(expected: int) -> int:
            with contextlib.suppress(TimeoutError):
                while True:
                    connection.drain_events(timeout=20 if len(got) < expected else QUIET)
            return len(got)

        consumer.consume()
        counts = [count(2)]
        # A task with a countdown: one more may come, and one less afterwards.
        consumer.qos(prefetch_count=3, apply_global=True)
        counts.append(count(3))
        got[0].ack()
        consumer.qos(prefetch_count=2, apply_global=True)
        counts.append(count(4))
        got[1].ack()
        counts.append(count(4))
        consumer.cancel()
        for queue in queues:
            queue(connection.default_channel).delete()
    assert counts == [2, 3, 4, 4]


def given_back(port: int, times: int) -> int:
    """How often a message comes that its consumer gives back by basic.nack, two at once."""
    with connected(port) as connection:
        client = Client(connection, "quorum")
        client.side.basic_publish("", client.queues[0], b"poison")
        client.consume(0)
        number = 0
        while number < times and client.count(1, patience=5):
            client.channel.basic_nack(0, multiple=True, requeue=True)
            client.has.clear()
            number += 1
        for queue in client.queues:
            client.side.queue_delete(queue)
        return number


def test_what_is_given_back_again_and_again_ends(four: RabbitMQ, gate: InProcess) -> None:
    """The delivery limit of RabbitMQ 4 is 20; directly such a message goes round for ever."""
    assert given_back(four.port, 30) == 30
    assert given_back(gate.port(), 30) == 21


def test_what_waits_in_the_gateway_is_no_failed_delivery(gate: InProcess) -> None:
    """It is given back when its consumer ends, however often that is."""
    with connected(gate.port()) as connection:
        client = Client(connection, "quorum")
        client.limit(1)
        client.consume(0)
        client.fill()
        client.count(1)
        for _ in range(25):
            tag = client.consume(1)
            client.count()
            client.channel.basic_cancel(tag)
        client.consume(1)
        client.ack(1)
        for _ in range(2 * MANY - 1):
            assert client.count(1) == 1
            client.ack(1)
        for queue in client.queues:
            client.side.queue_delete(queue)
