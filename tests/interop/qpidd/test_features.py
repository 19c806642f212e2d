"""What a client of RabbitMQ's does, one thing after the other, with pika through the gateway on qpidd."""

from __future__ import annotations

import contextlib
import hashlib
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("litter")]

Properties = pika.BasicProperties


@pytest.fixture
def connect(port: int) -> Iterator[Callable[..., BlockingConnection]]:
    with contextlib.ExitStack() as stack:

        def make(**options: object) -> BlockingConnection:
            parameters = pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, **options)
            connection = BlockingConnection(parameters)
            stack.callback(lambda: connection.close() if connection.is_open else None)
            return connection

        yield make


@pytest.fixture
def connection(connect: Callable[..., BlockingConnection]) -> BlockingConnection:
    return connect()


@pytest.fixture
def channel(connection: BlockingConnection) -> BlockingChannel:
    return connection.channel()


@pytest.fixture
def queue(channel: BlockingChannel) -> Iterator[str]:
    """One that anybody may use, until the test is over."""
    name = new_name()
    channel.queue_declare(name)
    yield name
    if channel.connection.is_open:
        channel.connection.channel().queue_delete(name)


def new_name() -> str:
    return f"features-{uuid.uuid4().hex}"


def fill(channel: BlockingChannel, queue: str, count: int) -> None:
    for number in range(count):
        channel.basic_publish("", queue, b"%d" % number)
    # Publishes have arrived once something behind them is answered.
    channel.queue_declare(queue, passive=True)


def left(channel: BlockingChannel, queue: str) -> int:
    return channel.queue_declare(queue, passive=True).method.message_count


def got(channel: BlockingChannel, queue: str, count: int) -> list[tuple[bool, bytes]]:
    """Redelivered and body of so many messages, which are acknowledged."""
    found = [channel.basic_get(queue, auto_ack=True) for _ in range(count)]
    return [(method.redelivered, body) for method, _, body in found]


def pump(connection: BlockingConnection, done: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not done():
        assert time.monotonic() < until, "what is awaited did not come"
        connection.process_data_events(time_limit=0.05)


def settle(connection: BlockingConnection) -> None:
    """What was on its way is there when round trips to the broker are over."""
    for _ in range(3):
        connection.channel().close()
        connection.process_data_events(time_limit=0)


# -- publishing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exchange", "key", "comes_back"),
    [
        ("", "nowhere", True),
        ("amq.direct", "nowhere", True),
        ("", "{queue}", False),
        ("amq.direct", "bound", False),
        # It cannot be asked whether these have a queue for it.
        ("amq.topic", "nowhere", False),
        ("amq.fanout", "nowhere", False),
        ("amq.match", "nowhere", False),
    ],
)
def test_mandatory(channel: BlockingChannel, queue: str, exchange: str, key: str, comes_back: bool) -> None:
    channel.queue_bind(queue, "amq.direct", "bound")
    channel.confirm_delivery()
    key = key.format(queue=queue)
    if not comes_back:
        channel.basic_publish(exchange, key, b"x", mandatory=True)
        return
    with pytest.raises(pika.exceptions.UnroutableError) as caught:
        channel.basic_publish(exchange, key, b"lost" * 30_000, Properties(message_id="m"), mandatory=True)
    (message,) = caught.value.messages
    method = message.method
    assert (method.reply_code, method.reply_text) == (312, "NO_ROUTE")
    assert (method.exchange, method.routing_key) == (exchange, key)
    assert (message.body, message.properties.message_id) == (b"lost" * 30_000, "m")


def test_an_exchange_that_is_not_there(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="Exchange not found: none") as caught:
        channel.basic_publish("none", "key", b"x")
    assert caught.value.reply_code == 404


def test_a_queue_that_is_full(connection: BlockingConnection) -> None:
    """It ends the session, where RabbitMQ says basic.nack; not so with drop-head, the default."""
    for arguments in ({}, {"x-overflow": "drop-head"}):
        channel = connection.channel()
        channel.confirm_delivery()
        name = channel.queue_declare(
            "", exclusive=True, arguments={"x-max-length": 2, **arguments}
        ).method.queue
        for number in range(3):
            channel.basic_publish("", name, b"%d" % number)
        assert [body for _, body in got(channel, name, 2)] == [b"1", b"2"]
    channel = connection.channel()
    channel.confirm_delivery()
    rejecting = {"x-max-length": 1, "x-overflow": "reject-publish"}
    name = channel.queue_declare("", exclusive=True, arguments=rejecting).method.queue
    channel.basic_publish("", name, b"0")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="506 resource-limit-exceeded") as caught:
        channel.basic_publish("", name, b"1")
    assert caught.value.reply_code == 406


@pytest.mark.parametrize("size", [0, 1, 65_523, 65_524, 131_064, 131_065, 20 * 1024 * 1024])
def test_bodies_of_any_size(channel: BlockingChannel, queue: str, size: int) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    channel.confirm_delivery()
    channel.basic_publish("", queue, body)
    _, _, back = channel.basic_get(queue, auto_ack=True)
    assert hashlib.sha256(back).digest() == hashlib.sha256(body).digest()


def test_headers_of_all_types(channel: BlockingChannel, queue: str) -> None:
    headers = {
        "text": "grün",
        "bytes": b"\x00\xff",
        "small": 5,
        "negative": -5,
        "large": 1 << 40,
        "most": (1 << 63) - 1,
        "least": -(1 << 63),
        "yes": True,
        "no": False,
        "nothing": None,
        "decimal": Decimal("3.14"),
        "time": datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
        "list": [1, "a", [2, {"x": 1}]],
        "table": {"a": {"b": [1]}},
        "empty table": {},
        "empty list": [],
        "": "no name",
        "k" * 255: 1,
        "long": "y" * 60_000,
    }
    channel.basic_publish("", queue, b"", Properties(headers=headers))
    _, properties, _ = channel.basic_get(queue, auto_ack=True)
    assert properties.headers == headers


def test_a_header_that_is_too_large(channel: BlockingChannel, queue: str) -> None:
    channel.basic_publish("", queue, b"x", Properties(headers={"long": "y" * 70_000}))
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        left(channel, queue)
    assert caught.value.reply_code == 506


def test_a_message_that_expires(channel: BlockingChannel, queue: str) -> None:
    channel.basic_publish("", queue, b"short", Properties(expiration="1"))
    channel.basic_publish("", queue, b"long", Properties(expiration="600000"))
    time.sleep(0.05)
    _, properties, body = channel.basic_get(queue, auto_ack=True)
    assert body == b"long"
    # What is left of it.
    assert 0 < int(properties.expiration) <= 600_000


def test_the_user_of_a_message(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"x", Properties(user_id="guest"))
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        channel.basic_publish("", queue, b"x", Properties(user_id="someone"))
    assert caught.value.reply_code == 403


# -- consuming -------------------------------------------------------------------------------------------


def test_a_prefetch_count_is_credit(
    connection: BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    fill(channel, queue, 10)
    deliveries: list[tuple[int, bytes]] = []
    channel.basic_qos(prefetch_count=3)
    channel.basic_consume(queue, lambda _, method, __, body: deliveries.append((method.delivery_tag, body)))

    def after(count: int) -> list[bytes]:
        pump(connection, lambda: len(deliveries) >= count)
        settle(connection)
        return [body for _, body in deliveries]

    assert after(3) == [b"0", b"1", b"2"]
    channel.basic_ack(2, multiple=True)
    assert after(5) == [b"0", b"1", b"2", b"3", b"4"]
    channel.basic_ack(4)
    assert after(6)[5:] == [b"5"]
    # It is the first again.
    channel.basic_nack(3, requeue=True)
    assert after(7)[6:] == [b"2"]


def test_what_is_given_back_takes_its_old_place(channel: BlockingChannel, queue: str) -> None:
    fill(channel, queue, 6)
    tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(4)]
    channel.basic_nack(tags[-1], multiple=True, requeue=True)
    assert got(channel, queue, 6) == [(number < 4, b"%d" % number) for number in range(6)]


def test_a_channel_that_is_closed_gives_back(
    connection: BlockingConnection, channel: BlockingChannel
) -> None:
    queue = new_name()
    channel.queue_declare(queue)
    fill(channel, queue, 2)
    channel.basic_get(queue)
    channel.close()
    channel = connection.channel()
    assert got(channel, queue, 2) == [(True, b"0"), (False, b"1")]
    channel.queue_delete(queue)


def test_recover(connection: BlockingConnection, channel: BlockingChannel, queue: str) -> None:
    fill(channel, queue, 3)
    deliveries: list[tuple[bool, bytes]] = []
    channel.basic_consume(queue, lambda _, method, __, body: deliveries.append((method.redelivered, body)))
    pump(connection, lambda: len(deliveries) == 3)
    channel.basic_recover(requeue=True)
    pump(connection, lambda: len(deliveries) == 6)
    assert deliveries == [(again, b"%d" % number) for again in (False, True) for number in range(3)]


def test_rejected_without_requeue_it_goes_to_the_alternate_exchange(channel: BlockingChannel) -> None:
    """With the routing key that it had, and without x-death."""
    exchange = new_name()
    channel.exchange_declare(exchange, "fanout")
    dead = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(dead, exchange, "")
    arguments = {"x-dead-letter-exchange": exchange}
    queue = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    channel.basic_publish("", queue, b"dead")
    method, _, _ = channel.basic_get(queue)
    channel.basic_reject(method.delivery_tag, requeue=False)
    method, properties, body = channel.basic_get(dead, auto_ack=True)
    assert (method.routing_key, properties.headers, body) == (queue, None, b"dead")
    channel.queue_delete(queue)
    channel.exchange_delete(exchange)


def test_an_unknown_delivery_tag(channel: BlockingChannel, queue: str) -> None:
    channel.basic_ack(77)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="unknown delivery tag 77") as caught:
        left(channel, queue)
    assert caught.value.reply_code == 406


def test_a_consumer_that_is_cancelled(
    connection: BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    fill(channel, queue, 5)
    tags: list[int] = []
    consumer = channel.basic_consume(queue, lambda _, method, *__: tags.append(method.delivery_tag))
    pump(connection, lambda: len(tags) == 5)
    channel.basic_cancel(consumer)
    channel.basic_publish("", queue, b"more")
    # What came may still be acknowledged.
    channel.basic_ack(tags[-1], multiple=True)
    method = channel.queue_declare(queue, passive=True).method
    assert (len(tags), method.message_count, method.consumer_count) == (5, 1, 0)


def test_without_acknowledgements(
    connection: BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    fill(channel, queue, 500)
    bodies: list[int] = []
    channel.basic_consume(queue, lambda _, __, ___, body: bodies.append(int(body)), auto_ack=True)
    pump(connection, lambda: len(bodies) == 500)
    assert bodies == list(range(500))
    assert left(channel, queue) == 0


def test_channel_flow(connection: BlockingConnection, channel: BlockingChannel, queue: str) -> None:
    bodies: list[bytes] = []
    channel.basic_consume(queue, lambda _, __, ___, body: bodies.append(body))
    channel.flow(False)
    fill(channel, queue, 2)
    assert left(channel, queue) == 2
    assert not bodies
    channel.flow(True)
    pump(connection, lambda: len(bodies) == 2)
    assert bodies == [b"0", b"1"]


def test_gets_leave_nothing_behind(connect: Callable[..., BlockingConnection], queue: str) -> None:
    """A queue from which another channel got may be deleted, and the channel lives."""
    getter, other = connect().channel(), connect().channel()
    fill(other, queue, 300)
    found = [getter.basic_get(queue) for _ in range(300)]
    assert [int(body) for _, _, body in found] == list(range(300))
    assert [method.message_count for method, _, _ in found] == list(range(299, -1, -1))
    assert other.queue_declare(queue, passive=True).method.consumer_count == 0
    getter.basic_ack(0, multiple=True)
    assert left(getter, queue) == 0
    other.queue_delete(queue, if_unused=True)
    other.queue_declare(queue)
    assert getter.basic_get(queue) == (None, None, None)


def test_a_get_does_not_end_a_queue_that_is_auto_delete(channel: BlockingChannel) -> None:
    name = new_name()
    channel.queue_declare(name, auto_delete=True)
    for _ in range(2):
        assert channel.basic_get(name) == (None, None, None)
    assert left(channel, name) == 0
    consumer = channel.basic_consume(name, lambda *_: None)
    channel.basic_cancel(consumer)
    channel.queue_delete(name)


def test_a_queue_that_is_auto_delete(channel: BlockingChannel) -> None:
    name = new_name()
    channel.queue_declare(name, auto_delete=True)
    channel.basic_cancel(channel.basic_consume(name, lambda *_: None))
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no queue"):
        left(channel, name)


def test_a_consumer_whose_queue_is_deleted(connection: BlockingConnection, channel: BlockingChannel) -> None:
    """By its own channel it is cancelled; by another one that channel is closed."""
    name = new_name()
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    channel.queue_declare(name)
    channel.basic_consume(name, lambda *_: None, consumer_tag="watcher")
    channel.queue_delete(name)
    pump(connection, lambda: cancelled)
    assert cancelled == ["watcher"]
    channel.queue_declare(name)
    channel.basic_consume(name, lambda *_: None, consumer_tag="watcher")
    reasons: list[pika.exceptions.ChannelClosedByBroker] = []
    channel._impl.add_on_close_callback(lambda _, reason: reasons.append(reason))
    connection.channel().queue_delete(name)
    pump(connection, lambda: reasons)
    assert (reasons[0].reply_code, "has been deleted" in reasons[0].reply_text) == (404, True)


# -- transactions ----------------------------------------------------------------------------------------


def test_what_is_published_and_acknowledged_in_a_transaction(
    connection: BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    other = connection.channel()
    channel.tx_select()
    channel.basic_publish("", queue, b"a")
    assert left(channel, queue) == 0
    channel.tx_commit()
    assert left(other, queue) == 1
    method, _, _ = channel.basic_get(queue)
    channel.basic_ack(method.delivery_tag)
    channel.tx_rollback()
    # It is unacknowledged again, and still this channel's.
    assert other.basic_get(queue) == (None, None, None)
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    channel.close()
    assert left(other, queue) == 0


def test_a_transaction_that_nobody_commits(connection: BlockingConnection, channel: BlockingChannel) -> None:
    queue = new_name()
    channel.queue_declare(queue)
    fill(channel, queue, 1)
    channel.tx_select()
    channel.basic_publish("", queue, b"never")
    method, _, _ = channel.basic_get(queue)
    channel.basic_ack(method.delivery_tag)
    channel.close()
    channel = connection.channel()
    assert got(channel, queue, 1) == [(True, b"0")]
    assert channel.queue_delete(queue).method.message_count == 0


def test_nack_does_not_wait_for_the_commit(channel: BlockingChannel, queue: str) -> None:
    fill(channel, queue, 2)
    channel.tx_select()
    method, _, _ = channel.basic_get(queue)
    channel.basic_nack(method.delivery_tag, requeue=True)
    assert channel.basic_get(queue)[2] == b"0"


# -- queues, exchanges and bindings ------------------------------------------------------------------------


def test_a_queue_without_a_name(channel: BlockingChannel) -> None:
    name = channel.queue_declare("", exclusive=True).method.queue
    assert name.startswith("amq.gen-")
    channel.queue_bind("", "amq.topic", "k.*")
    channel.basic_publish("amq.topic", "k.1", b"x")
    method, _, body = channel.basic_get("", auto_ack=True)
    assert (method.exchange, method.routing_key, body) == ("amq.topic", "k.1", b"x")


@pytest.mark.parametrize(
    ("kind", "key", "arguments", "hits"),
    [
        ("direct", "k", None, {("k", ()): 1, ("l", ()): 0}),
        ("fanout", "", None, {("any", ()): 1}),
        ("topic", "a.*.#", None, {("a.b", ()): 1, ("a", ()): 0, ("a.b.c.d", ()): 1}),
        (
            "headers",
            "",
            {"x-match": "all", "a": 1, "b": "x"},
            {
                ("", (("a", 1), ("b", "x"))): 1,
                ("", (("a", 1),)): 0,
                ("", (("a", 1), ("b", "x"), ("c", 5))): 1,
            },
        ),
        (
            "headers",
            "",
            {"x-match": "any", "a": 1, "c": "y"},
            {("", (("a", 1),)): 1, ("", (("c", "y"),)): 1, ("", (("z", 1),)): 0},
        ),
        # All of them, if nothing is said.
        ("headers", "", {"a": 1, "b": 2}, {("", (("a", 1),)): 0, ("", (("a", 1), ("b", 2))): 1}),
    ],
)
def test_exchanges(
    channel: BlockingChannel,
    kind: str,
    key: str,
    arguments: dict[str, object] | None,
    hits: dict[tuple[str, tuple[tuple[str, object], ...]], int],
) -> None:
    exchange = new_name()
    channel.exchange_declare(exchange, kind)
    name = channel.queue_declare("", exclusive=True).method.queue

    def arrived() -> list[int]:
        counts = []
        for routing_key, headers in hits:
            channel.basic_publish(exchange, routing_key, b"", Properties(headers=dict(headers) or None))
            counts.append(channel.queue_purge(name).method.message_count)
        return counts

    channel.queue_bind(name, exchange, key, arguments)
    assert arrived() == list(hits.values())
    channel.queue_unbind(name, exchange, key, arguments)
    assert not any(arrived())
    channel.exchange_delete(exchange)


def test_two_bindings_of_headers(channel: BlockingChannel) -> None:
    """They have no routing key, and to qpidd a key is what a binding has."""
    name = channel.queue_declare("", exclusive=True).method.queue
    bindings = [{"x-match": "all", "a": number} for number in (1, 2)]

    def arrived() -> list[int]:
        counts = []
        for number in (1, 2):
            channel.basic_publish("amq.match", "", b"", Properties(headers={"a": number}))
            counts.append(channel.queue_purge(name).method.message_count)
        return counts

    for binding in bindings:
        channel.queue_bind(name, "amq.match", "", binding)
    assert arrived() == [1, 1]
    channel.queue_unbind(name, "amq.match", "", bindings[0])
    assert arrived() == [0, 1]


def test_an_alternate_exchange(channel: BlockingChannel) -> None:
    exchange, alternate = new_name(), new_name()
    channel.exchange_declare(alternate, "fanout")
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, alternate, "")
    channel.exchange_declare(exchange, "topic", arguments={"alternate-exchange": alternate})
    channel.basic_publish(exchange, "key", b"x")
    method, _, body = channel.basic_get(name, auto_ack=True)
    assert (method.routing_key, body) == ("key", b"x")
    channel.exchange_delete(exchange)
    channel.exchange_delete(alternate)


def test_counts(channel: BlockingChannel) -> None:
    name = new_name()
    channel.queue_declare(name)
    fill(channel, name, 7)
    assert channel.queue_purge(name).method.message_count == 7
    fill(channel, name, 3)
    assert [channel.queue_delete(name).method.message_count for _ in range(2)] == [3, 0]


def test_priorities(channel: BlockingChannel) -> None:
    name = channel.queue_declare("", exclusive=True, arguments={"x-max-priority": 10}).method.queue
    for priority in (1, 9, 5):
        channel.basic_publish("", name, b"%d" % priority, Properties(priority=priority))
    assert [body for _, body in got(channel, name, 3)] == [b"9", b"5", b"1"]


def test_an_exclusive_queue(connect: Callable[..., BlockingConnection]) -> None:
    """It is its channel's, and ends with it, where to RabbitMQ it is its connection's."""
    connection, name = connect(), new_name()
    owner, other = connection.channel(), connection.channel()
    owner.queue_declare(name, exclusive=True)
    owner.queue_declare(name, exclusive=True)
    assert left(other, name) == 0
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        other.basic_consume(name, lambda *_: None)
    assert caught.value.reply_code == 405
    owner.close()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no queue"):
        left(connection.channel(), name)


#: What closes the channel, with the code that it says.
REFUSED: dict[str, tuple[int, Callable[[BlockingChannel, str], object]]] = {
    "passive queue": (404, lambda ch, _: ch.queue_declare("none", passive=True)),
    "passive exchange": (404, lambda ch, _: ch.exchange_declare("none", passive=True)),
    "consume": (404, lambda ch, _: ch.basic_consume("none", lambda *_: None)),
    "get": (404, lambda ch, _: ch.basic_get("none")),
    "last queue": (404, lambda ch, _: ch.basic_get("")),
    "purge": (404, lambda ch, _: ch.queue_purge("none")),
    "bind queue": (404, lambda ch, _: ch.queue_bind("none", "amq.topic", "k")),
    "bind exchange": (404, lambda ch, queue: ch.queue_bind(queue, "none", "k")),
    "unbind queue": (404, lambda ch, _: ch.queue_unbind("none", "amq.topic", "k")),
    "bind default": (403, lambda ch, queue: ch.queue_bind(queue, "", "k")),
    "delete default": (403, lambda ch, _: ch.exchange_delete("")),
    "delete standard": (403, lambda ch, _: ch.exchange_delete("amq.direct")),
    "reserved name": (403, lambda ch, _: ch.exchange_declare("amq.mine")),
    "standard, other type": (406, lambda ch, _: ch.exchange_declare("amq.direct", "topic", durable=True)),
    "other type": (
        406,
        lambda ch, _: (ch.exchange_declare("errors", "direct"), ch.exchange_declare("errors", "topic")),
    ),
    "other durable": (406, lambda ch, queue: ch.queue_declare(queue, durable=True)),
    "other auto-delete": (406, lambda ch, queue: ch.queue_declare(queue, auto_delete=True)),
    "unknown type": (404, lambda ch, _: ch.exchange_declare("errors", "odd")),
    "used queue": (
        406,
        lambda ch, queue: (ch.basic_consume(queue, lambda *_: None), ch.queue_delete(queue, if_unused=True)),
    ),
    "full queue": (
        406,
        lambda ch, queue: (ch.basic_publish("", queue, b"x"), ch.queue_delete(queue, if_empty=True)),
    ),
    # qpidd would delete it, used or not.
    "used exchange": (
        540,
        lambda ch, _: (ch.exchange_declare("errors", "direct"), ch.exchange_delete("errors", if_unused=True)),
    ),
    "exclusive consumer": (
        405,
        lambda ch, queue: (
            ch.basic_consume(queue, lambda *_: None, exclusive=True),
            ch.basic_consume(queue, lambda *_: None),
        ),
    ),
    "commit": (406, lambda ch, _: ch.tx_commit()),
    "exchange to exchange": (540, lambda ch, _: ch.exchange_bind("amq.topic", "amq.fanout", "k")),
    "prefetch size": (540, lambda ch, _: ch.basic_qos(prefetch_size=10)),
    "message ttl": (540, lambda ch, _: ch.queue_declare("errors", arguments={"x-message-ttl": 1000})),
    "quorum": (540, lambda ch, _: ch.queue_declare("errors", arguments={"x-queue-type": "quorum"})),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(connection: BlockingConnection, queue: str, name: str) -> None:
    """The channel alone is closed, and its number may be used again."""
    code, act = REFUSED[name]
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        act(channel, queue)
    assert caught.value.reply_code == code
    again = connection.channel(channel.channel_number)
    again.exchange_delete("errors")
    assert left(again, queue) in (0, 1)


def test_what_is_fine(channel: BlockingChannel, queue: str) -> None:
    for _ in range(2):
        channel.exchange_declare("amq.topic", "topic", durable=True)
        channel.queue_bind(queue, "amq.topic", "k")
    for _ in range(2):
        channel.queue_unbind(queue, "amq.topic", "k")
        channel.queue_delete("none")
        channel.exchange_delete("none")
    channel.queue_declare("q" * 255, exclusive=True)
    channel.queue_declare("größe", exclusive=True)


# -- connections -----------------------------------------------------------------------------------------


def test_many_channels(connection: BlockingConnection) -> None:
    channels = [connection.channel() for _ in range(200)]
    names = {channel.queue_declare("", exclusive=True).method.queue for channel in channels}
    assert len(names) == 200
    for channel in channels:
        channel.close()


def test_heartbeats(connect: Callable[..., BlockingConnection], gateways: object) -> None:
    """qpidd closes a connection that is silent for two seconds then."""
    connection = connect()
    connection.close()
    with contextlib.closing(
        BlockingConnection(pika.ConnectionParameters("127.0.0.1", gateways["0-10"], heartbeat=1))  # type: ignore[index]
    ) as beating:
        beating.sleep(4)
        assert beating.is_open
        beating.channel().queue_declare("", exclusive=True)
