"""From real traffic to policies: replay finds what the gateway decided, and what is recommended is enough."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("amqpgate.telemetry.audit")

from pika.adapters.blocking_connection import BlockingChannel
from pyspark.sql import DataFrame, SparkSession

from amqpgate.pipeline.jobs.recommend import recommend
from amqpgate.pipeline.jobs.replay import changes, replay, summary, undecided
from amqpgate.pipeline.reading import read
from amqpgate.pipeline.spark import start
from amqpgate.policy import Source
from amqpgate.policy.loader import documents_of, read_folder
from amqpgate.policy.tools.checks import findings
from tests.support.gateway import Gateway
from tests.support.loop import NEVER_SEEN, NOT_DENIED, OWN, THEIRS, Step, seen
from tests.support.rabbitmq import RabbitMQ

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbit, url: "amqp://{address}"}}]
policies: {policies}
watchPolicies: false
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 2s}}
audit: {{format: parquet, folder: {audit}, window: 0.5s, rollInterval: 100ms}}
"""
#: Lets most pass: by name, by what is in the message, and by where a request leads.
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: wide}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: nack}
  rules:
  - {id: all, effect: allow, operations: ["*"]}
  - id: no-secrets
    effect: deny
    operations: [basic.publish]
    exchange: orders
    routingKey: {topic: "secret.#"}
  - {id: no-html, effect: deny, operations: [basic.publish], properties: {contentType: text/html}}
  - {id: no-payroll, effect: deny, operations: ["queue.*"], queue: {prefix: payroll}}
"""

Work = Callable[[pika.BlockingConnection], None]


def orders(connection: pika.BlockingConnection) -> None:
    """More keys than a gateway keeps one by one, a dead letter exchange, bindings made and taken back."""
    channel = connection.channel()
    channel.confirm_delivery()
    channel.exchange_declare("orders", "topic")
    channel.exchange_declare("rest", "fanout")
    channel.exchange_declare("all", "topic", arguments={"alternate-exchange": "rest"})
    channel.exchange_bind("all", "orders", "order.#")
    channel.exchange_declare("orders", passive=True)
    channel.queue_declare(
        "orders.in", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead"}
    )
    channel.queue_declare("orders.dead", arguments={"x-dead-letter-exchange": "rest"})
    channel.queue_bind("orders.in", "orders", "order.*.created")
    channel.queue_bind("orders.in", "orders", "mail")
    channel.queue_unbind("orders.in", "orders", "mail")
    for number in range(1_300):
        channel.basic_publish("orders", f"order.{number}.created", b"x")
    channel.basic_publish("", "orders.dead", b"x")
    while channel.basic_get("orders.in", auto_ack=True)[0] is not None:
        pass
    channel.queue_purge("orders.dead")


def replies(connection: pika.BlockingConnection) -> None:
    """Queues that the broker names, and direct reply-to."""
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "reply.#")
    channel.basic_consume(queue, lambda *_: None, auto_ack=True)
    channel.basic_publish("", queue, b"x")
    channel.basic_consume("amq.rabbitmq.reply-to", lambda *_: None, auto_ack=True)
    asking = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to")
    channel.basic_publish("amq.topic", "reply.1", b"x", asking)
    connection.process_data_events(0.2)
    channel.queue_delete(queue)


def batch(connection: pika.BlockingConnection) -> None:
    """Queues with ids in their names, a transaction."""
    channel = connection.channel()
    for number in (4711, 4712):
        channel.queue_declare(f"batch-{number}")
        channel.queue_delete(f"batch-{number}")
    channel.tx_select()
    channel.basic_publish("amq.topic", "batch.done", b"x")
    channel.tx_commit()


WORK: tuple[Work, ...] = (orders, replies, batch)


def refused(connection: pika.BlockingConnection) -> None:
    """By name, by content, by what a request leads to."""
    channel = connection.channel()
    channel.confirm_delivery()
    for key, properties in (
        ("secret.x", None),
        ("order.1.created", pika.BasicProperties(content_type="text/html")),
        ("order.1.created", pika.BasicProperties(headers={"CC": ["secret.y"]})),
    ):
        with pytest.raises(pika.exceptions.NackError):
            channel.basic_publish("orders", key, b"x", properties)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare("payroll")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return start("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"})


@contextlib.contextmanager
def through(rabbitmq: RabbitMQ, policies: Path, audit: Path) -> Iterator[Callable[[Work], None]]:
    """A gateway with these policies; what it recorded is in the folder when it has ended."""
    rabbitmq.fresh_vhost("recorded")
    audit.mkdir()
    gateway = Gateway(config=CONFIG.format(address=rabbitmq.address, policies=policies, audit=audit))
    gateway.start()

    def run(work: Work) -> None:
        with contextlib.closing(pika.BlockingConnection(pika.URLParameters(gateway.url + "recorded"))) as one:
            work(one)

    try:
        yield run
    finally:
        ended = gateway.stop()
    assert ended.code == 0


def folder_of(path: Path, files: list[tuple[str, bytes]]) -> Path:
    path.mkdir()
    for name, data in files:
        (path / name).write_bytes(data)
    return path


def verdicts(replayed: DataFrame) -> set[tuple[str, str]]:
    return {(row.before, row.after) for row in summary(replayed).collect()}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_records_to_policies_and_back(rabbitmq: RabbitMQ, spark: SparkSession, tmp_path: Path) -> None:
    wide = folder_of(tmp_path / "wide", [("p.yaml", POLICY.encode())])
    with through(rabbitmq, wide, tmp_path / "audit") as run:
        for work in (*WORK, refused):
            run(work)
    usage = read(spark, str(tmp_path / "audit"), "usage").frame

    # What the gateway decided is what its policies answer: but for what was in a message. Its CC is recorded.
    replayed = replay(usage, read_folder(wide))
    assert changes(replayed).count() == 0
    assert {"allow", "deny"} <= {before for before, _ in verdicts(replayed)}
    unsure = [row for row in undecided(replayed).collect() if row.before == "deny"]
    assert [(row.routing_key, row.messages) for row in unsure] == [("order.1.created", 1)]

    # What is recommended has no faults, and its own replay denies nothing.
    found = recommend(usage)
    sources = [Source(file.name, file.data) for file in found.files]
    assert found.notes == ()
    assert [str(one) for one in findings(documents_of(sources)) if one.level == "problem"] == []
    allowed = replay(usage.where("verdict = 'allow'"), sources)
    assert verdicts(allowed) == {("allow", "allow")}

    # Enforced, it lets the same pass.
    least = folder_of(tmp_path / "least", [(file.name, file.data) for file in found.files])
    with through(rabbitmq, least, tmp_path / "again") as run:
        for work in WORK:
            run(work)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            run(lambda connection: connection.channel().queue_declare("payroll"))

    # Without one grant exactly that fails which needs it.
    (name, data) = (found.files[0].name, found.files[0].data.decode())
    kept = [line for line in data.splitlines(keepends=True) if "batch-" not in line]
    assert len(kept) == len(data.splitlines()) - 1
    without = folder_of(tmp_path / "without", [(name, "".join(kept).encode())])
    with through(rabbitmq, without, tmp_path / "last") as run:
        run(orders)
        run(replies)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
            run(batch)
    assert error.value.reply_code == 403


class Player:
    """A client that does what steps say."""

    def __init__(self, connection: pika.BlockingConnection, theirs: str = "") -> None:
        self._connection = connection
        self._queues = {OWN: "", THEIRS: theirs}

    def code(self, step: Step) -> int | None:
        """What the gateway or the broker says to it; None: nothing."""
        channel = self._connection.channel()
        channel.confirm_delivery()
        try:
            self._play(step, channel)
        except pika.exceptions.ChannelClosedByBroker as error:
            return error.reply_code
        channel.close()
        return None

    def _play(self, step: Step, channel: BlockingChannel) -> None:
        queue = self._queues.get(step.queue or "", step.queue or "")
        exchange, key, arguments = step.exchange or "", step.key or "", dict(step.arguments or {}) or None
        match step.operation:
            case "basic.publish":
                headers = {name: list(keys) for name, keys in (("CC", step.cc), ("BCC", step.bcc)) if keys}
                properties = pika.BasicProperties(headers=headers) if headers else None
                channel.basic_publish(exchange, key, b"x", properties)
            case "basic.get":
                channel.basic_get(queue, auto_ack=True)
            case "basic.consume":
                channel.basic_cancel(channel.basic_consume(queue, lambda *_: None, auto_ack=True))
            case "queue.declare":
                made = channel.queue_declare(queue, arguments=arguments).method.queue
                if queue == "":
                    self._queues[OWN] = made
            case "queue.delete":
                channel.queue_delete(queue)
            case "queue.purge":
                channel.queue_purge(queue)
            case "queue.bind":
                channel.queue_bind(queue, exchange, key, arguments)
            case "queue.unbind":
                channel.queue_unbind(queue, exchange, key, arguments)
            case "exchange.declare":
                channel.exchange_declare(exchange, step.type, passive=step.passive, arguments=arguments)
            case "exchange.delete":
                channel.exchange_delete(exchange)
            case "exchange.bind":
                channel.exchange_bind(step.destination or "", exchange, key)
            case other:
                raise AssertionError(other)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_never_seen_is_denied(rabbitmq: RabbitMQ, spark: SparkSession, tmp_path: Path) -> None:
    def do(steps: Iterable[Step]) -> Work:
        def work(connection: pika.BlockingConnection) -> None:
            player = Player(connection)
            assert [(str(step), code) for step in steps if (code := player.code(step))] == []

        return work

    denied: list[Step] = []

    def try_all(connection: pika.BlockingConnection) -> None:
        with contextlib.closing(
            pika.BlockingConnection(pika.URLParameters(rabbitmq.url + "recorded"))
        ) as one:
            player = Player(connection, one.channel().queue_declare("").method.queue)
            player.code(Step(operation="queue.declare", queue=""))
            denied.extend(step for step in NEVER_SEEN if player.code(step) == 403)

    wide = folder_of(tmp_path / "wide", [("p.yaml", POLICY.encode())])
    with through(rabbitmq, wide, tmp_path / "audit") as run:
        run(do(seen(1)))
    found = recommend(read(spark, str(tmp_path / "audit"), "usage").frame)
    assert found.notes == ()
    least = folder_of(tmp_path / "least", [(file.name, file.data) for file in found.files])
    with through(rabbitmq, least, tmp_path / "again") as run:
        for seed in (1, 2, 3):
            run(do(seen(seed)))
        run(try_all)
    assert tuple(str(step) for step in NEVER_SEEN if step not in denied) == NOT_DENIED
    # It was the gateway that denied them.
    refused = read(spark, str(tmp_path / "again"), "usage").frame.where("verdict = 'deny'")
    assert refused.agg({"requests": "sum"}).collect()[0][0] == len(denied)
