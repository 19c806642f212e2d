"""pika's BlockingConnection."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    ProbableAuthenticationError,
    UnroutableError,
)
from pika.exchange_type import ExchangeType

from tests.interop.steps import BIG_BODY, HEADERS, PROPERTIES, Setting


def parameters(at: Setting, **changes: object) -> pika.ConnectionParameters:
    settings = {
        "host": at.host,
        "port": at.port,
        "virtual_host": at.vhost,
        "credentials": pika.PlainCredentials(at.user, at.password),
        "client_properties": {"connection_name": "interop"},
    }
    return pika.ConnectionParameters(**(settings | changes))


@contextlib.contextmanager
def connected(at: Setting, **changes: object) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(parameters(at, **changes))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


@contextlib.contextmanager
def channel(at: Setting) -> Iterator[BlockingChannel]:
    with connected(at) as connection:
        yield connection.channel()


def pump(connection: BlockingConnection, done: Callable[[], bool], seconds: float = 20) -> None:
    """Let the connection work until `done`."""
    for _ in range(int(seconds * 10)):
        if done():
            return
        connection.process_data_events(time_limit=0.1)
    raise AssertionError("the awaited event did not come")


def declared(method: pika.frame.Method) -> list[object]:
    return [method.method.queue, method.method.message_count, method.method.consumer_count]


def server(at: Setting) -> object:
    with connected(at) as connection:
        return {"properties": connection._impl.server_properties}


def declare(at: Setting) -> object:
    with channel(at) as ch:
        named = declared(ch.queue_declare("declare", durable=True, arguments={"x-max-length": 10}))
        passive = declared(ch.queue_declare("declare", passive=True))
        ch.basic_publish("", "declare", b"x")
        own = ch.queue_declare("", exclusive=True).method.queue
        purged = ch.queue_purge("declare").method.message_count
        deleted = ch.queue_delete("declare").method.message_count
    return {
        "named": named,
        "passive": passive,
        "server_named": own.startswith("amq.gen-"),
        "purged": purged,
        "deleted": deleted,
    }


def exchanges(at: Setting) -> object:
    seen: dict[str, list[int]] = {}
    with channel(at) as ch:
        for queue in ("red", "blue"):
            ch.queue_declare(queue, exclusive=True)

        def count(name: str) -> None:
            seen[name] = [ch.queue_purge(queue).method.message_count for queue in ("red", "blue")]

        for kind in ExchangeType:
            ch.exchange_declare(f"x.{kind.value}", kind, auto_delete=True)
        for queue in ("red", "blue"):
            ch.queue_bind(queue, "x.direct", queue)
            ch.queue_bind(queue, "x.fanout")
        ch.queue_bind("red", "x.topic", "*.fast.#")
        ch.queue_bind("blue", "x.topic", "slow.*")
        ch.queue_bind("red", "x.headers", "", {"x-match": "all", "a": 1, "b": "x"})
        ch.queue_bind("blue", "x.headers", "", {"x-match": "any", "a": 1, "c": True})

        ch.basic_publish("x.direct", "red", b"")
        count("direct")
        ch.basic_publish("x.fanout", "anything", b"")
        count("fanout")
        for key in ("car.fast.now", "slow.car", "car.fast"):
            ch.basic_publish("x.topic", key, b"")
        count("topic")
        for headers in ({"a": 1, "b": "x"}, {"a": 1}):
            ch.basic_publish("x.headers", "", b"", pika.BasicProperties(headers=headers))
        count("headers")
        ch.exchange_declare("x.source", "fanout", auto_delete=False)
        ch.exchange_bind("x.direct", "x.source", "red", {"why": "interop"})
        ch.basic_publish("x.source", "red", b"")
        count("exchange_bind")
        ch.exchange_unbind("x.direct", "x.source", "red", {"why": "interop"})
        ch.basic_publish("x.source", "red", b"")
        count("exchange_unbind")
        ch.exchange_delete("x.source")
        ch.queue_unbind("red", "x.fanout")
        ch.basic_publish("x.fanout", "", b"")
        count("queue_unbind")
    return seen


def properties(at: Setting) -> object:
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        ch.basic_publish("", queue, b"", pika.BasicProperties(headers=dict(HEADERS), **PROPERTIES))
        _, got, _ = ch.basic_get(queue, auto_ack=True)
    return {"properties": {name: getattr(got, name) for name in PROPERTIES}, "headers": got.headers}


def header_types(at: Setting) -> object:
    sent = {
        "bytes": b"\x00\xff",
        "decimal": Decimal("3.14"),
        "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "int32": -(2**31),
        "int64": 2**63 - 1,
        "false": False,
        "empty": {},
        "nothing": [],
        "mixed": [1, "x", None, True, {"a": [b"\x01"]}],
        "long": "y" * 70_000,
    }
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        ch.basic_publish("", queue, b"", pika.BasicProperties(headers=sent, cluster_id="c"))
        _, got, _ = ch.basic_get(queue, auto_ack=True)
    assert got.cluster_id == "c"
    got.headers["timestamp"] = got.headers["timestamp"].replace(tzinfo=UTC)
    return [sent, got.headers]


def confirms(at: Setting) -> object:
    acked = nacked = 0
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        ch.confirm_delivery()
        for _ in range(100):
            try:
                ch.basic_publish("", queue, b"x", mandatory=True)
                acked += 1
            except NackError:
                nacked += 1
        in_queue = ch.queue_declare(queue, passive=True).method.message_count
    return {"acked": acked, "nacked": nacked, "in_queue": in_queue}


def confirm_nack(at: Setting) -> object:
    seen = []
    with channel(at) as ch:
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        queue = ch.queue_declare("", exclusive=True, arguments=full).method.queue
        ch.confirm_delivery()
        for _ in range(2):
            try:
                ch.basic_publish("", queue, b"x")
                seen.append("ack")
            except NackError:
                seen.append("nack")
    return seen


def returns(at: Setting) -> object:
    with channel(at) as ch:
        ch.confirm_delivery()
        try:
            ch.basic_publish("", "nowhere", b"lost", mandatory=True)
        except UnroutableError as error:
            (message,) = error.messages
            method = message.method
            return [
                method.reply_code,
                method.reply_text,
                method.exchange,
                method.routing_key,
                message.body.decode(),
            ]
    return None


def acks(at: Setting) -> object:
    deliveries = []
    with channel(at) as ch:
        dead = ch.queue_declare("", exclusive=True).method.queue
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        queue = ch.queue_declare("", exclusive=True, arguments=letters).method.queue
        for body in (b"one", b"two", b"three"):
            ch.basic_publish("", queue, body)
        ch.basic_qos(prefetch_count=1)
        for method, _, body in ch.consume(queue, inactivity_timeout=20):
            assert method is not None, "no delivery within 20 s"
            deliveries.append([body.decode(), method.redelivered])
            if len(deliveries) == 1:
                ch.basic_nack(method.delivery_tag, requeue=True)
            elif body == b"two":
                ch.basic_reject(method.delivery_tag, requeue=False)
            else:
                ch.basic_ack(method.delivery_tag)
            if body == b"three":
                break
        ch.cancel()
        _, letter, body = ch.basic_get(dead, auto_ack=True)
    return {"deliveries": deliveries, "dead": [body.decode(), letter.headers["x-death"][0]["reason"]]}


def recover(at: Setting) -> object:
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        ch.basic_publish("", queue, b"x")
        first, _, _ = ch.basic_get(queue)
        ch.basic_recover(requeue=True)
        second, _, _ = ch.basic_get(queue)
    return [first.redelivered, second.redelivered]


def get(at: Setting) -> object:
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        empty, _, _ = ch.basic_get(queue)
        ch.basic_publish("", queue, b"one")
        ch.basic_publish("", queue, b"two")
        full, _, body = ch.basic_get(queue, auto_ack=True)
    return {"empty": empty, "full": [body.decode(), full.redelivered, full.message_count]}


def consume(at: Setting) -> object:
    bodies: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        queue = ch.queue_declare("", exclusive=True).method.queue
        for number in range(10):
            ch.basic_publish("", queue, f"m{number}".encode())

        def on_message(channel: BlockingChannel, method: object, _: object, body: bytes) -> None:
            bodies.append(body.decode())
            channel.basic_ack(method.delivery_tag)

        tag = ch.basic_consume(queue, on_message, consumer_tag="reader")
        pump(connection, lambda: len(bodies) == 10)
        ch.basic_cancel(tag)
        left = ch.queue_declare(queue, passive=True).method
    return {"tag": tag, "bodies": bodies, "left": left.message_count + left.consumer_count}


def tx(at: Setting) -> object:
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        ch.tx_select()
        ch.basic_publish("", queue, b"x")
        ch.tx_rollback()
        rolled_back = ch.queue_purge(queue).method.message_count
        ch.basic_publish("", queue, b"y")
        ch.basic_publish("", queue, b"z")
        ch.tx_commit()
        committed = ch.queue_purge(queue).method.message_count
    return {"rolled_back": rolled_back, "committed": committed}


def cancel_notify(at: Setting) -> object:
    cancelled: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        ch.queue_declare("doomed")
        ch.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        ch.basic_consume("doomed", lambda *_: None, consumer_tag="watcher")
        connection.channel().queue_delete("doomed")
        pump(connection, lambda: bool(cancelled))
    return cancelled[0]


def exclusive(at: Setting) -> object:
    with channel(at) as owner, channel(at) as other:
        owner.queue_declare("mine", exclusive=True)
        try:
            other.queue_declare("mine", exclusive=True)
        except ChannelClosedByBroker as error:
            return [error.reply_code, error.reply_text]
    return None


def reply_to(at: Setting) -> object:
    answers: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        ch.queue_declare("rpc", exclusive=True)
        ch.basic_consume(
            "amq.rabbitmq.reply-to", lambda *got: answers.append(got[-1].decode()), auto_ack=True
        )
        ch.basic_publish("", "rpc", b"ping", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
        _, request, _ = ch.basic_get("rpc", auto_ack=True)
        connection.channel().basic_publish("", request.reply_to, b"pong")
        pump(connection, lambda: bool(answers))
    return {"pseudo_queue": request.reply_to.startswith("amq.rabbitmq.reply-to."), "answer": answers[0]}


def priorities(at: Setting) -> object:
    who: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        queue = ch.queue_declare("", exclusive=True).method.queue
        for name, priority in (("low", 1), ("high", 10)):
            ch.basic_consume(
                queue,
                lambda *_, name=name: who.append(name),
                auto_ack=True,
                consumer_tag=name,
                arguments={"x-priority": priority},
            )
        for _ in range(5):
            ch.basic_publish("", queue, b"")
        pump(connection, lambda: len(who) == 5)
    return who


def quorum(at: Setting) -> object:
    counts = []
    with channel(at) as ch:
        ch.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
        ch.confirm_delivery()
        ch.basic_publish("", "quorum", b"x")
        for method, got, _ in ch.consume("quorum", inactivity_timeout=20):
            assert method is not None, "no delivery within 20 s"
            counts.append((got.headers or {}).get("x-delivery-count"))
            if len(counts) == 2:
                ch.basic_ack(method.delivery_tag)
                break
            ch.basic_nack(method.delivery_tag, requeue=True)
        ch.cancel()
        ch.queue_delete("quorum")
    return counts


def stream(at: Setting) -> object:
    seen = []
    with channel(at) as ch:
        ch.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        ch.confirm_delivery()
        for number in range(3):
            ch.basic_publish("", "stream", f"s{number}".encode())
        ch.basic_qos(prefetch_count=10)
        first = {"x-stream-offset": "first"}
        for method, got, body in ch.consume("stream", arguments=first, inactivity_timeout=20):
            assert method is not None, "no delivery within 20 s"
            seen.append([body.decode(), got.headers["x-stream-offset"]])
            ch.basic_ack(method.delivery_tag)
            if len(seen) == 3:
                break
        ch.cancel()
        ch.queue_delete("stream")
    return seen


def bodies(at: Setting) -> object:
    seen = []
    with channel(at) as ch:
        queue = ch.queue_declare("", exclusive=True).method.queue
        for body in (BIG_BODY, b""):
            ch.basic_publish("", queue, body)
            _, _, got = ch.basic_get(queue, auto_ack=True)
            seen.append([len(got), hashlib.sha256(got).hexdigest()])
    return seen


def channel_errors(at: Setting) -> object:
    seen: dict[str, object] = {}
    with connected(at) as connection:
        connection.channel().queue_declare("errors", durable=True)
        for act in (
            lambda ch: ch.queue_declare("nothing", passive=True),
            lambda ch: ch.queue_declare("errors", durable=False),
            lambda ch: ch.exchange_declare("amq.mine"),
        ):
            try:
                act(connection.channel())
            except ChannelClosedByBroker as error:
                seen[str(error.reply_code)] = error.reply_text
        connection.channel().queue_delete("errors")
        seen["usable"] = connection.is_open
    return seen


def wrong_password(at: Setting) -> object:
    try:
        with connected(at, credentials=pika.PlainCredentials("guest", "wrong")):
            return None
    except ProbableAuthenticationError as error:
        return _code_and_text(error)


def unknown_vhost(at: Setting) -> object:
    try:
        with connected(at, virtual_host="nowhere"):
            return None
    except AMQPConnectionError as error:
        return _code_and_text(error)


def _code_and_text(error: Exception) -> list[object]:
    """Code and text of the connection.close, which pika wraps in one or two exceptions or in their text."""
    if isinstance(error, ConnectionClosedByBroker):
        return [error.reply_code, error.reply_text]
    cause = error.args[0]
    if isinstance(cause, Exception):
        return _code_and_text(cause)
    code, text = str(cause).removeprefix("ConnectionClosedByBroker: ").strip("()").split(") ", 1)
    return [int(code), text.strip("'\"")]


def amqplain(at: Setting) -> object:
    class AmqPlain(pika.PlainCredentials):
        """pika has no AMQPLAIN of its own: a field table's entries without its length."""

        TYPE = "AMQPLAIN"

        def response_for(self, start: pika.spec.Connection.Start) -> tuple[str, bytes]:
            assert b"AMQPLAIN" in start.mechanisms.split()
            entries = (("LOGIN", self.username), ("PASSWORD", self.password))
            return "AMQPLAIN", b"".join(
                bytes([len(name)]) + name.encode() + b"S" + len(value).to_bytes(4, "big") + value.encode()
                for name, value in entries
            )

    pika.credentials.VALID_TYPES.append(AmqPlain)
    try:
        with connected(at, credentials=AmqPlain(at.user, at.password)) as connection:
            return declared(connection.channel().queue_declare("amqplain", exclusive=True))
    finally:
        pika.credentials.VALID_TYPES.remove(AmqPlain)


def update_secret(at: Setting) -> object:
    with connected(at) as connection:
        connection.update_secret(at.password, "interop")
        return declared(connection.channel().queue_declare("update_secret", exclusive=True))


def blocked(at: Setting) -> object:
    seen: list[str] = []
    with connected(at) as connection:
        connection.add_on_connection_blocked_callback(lambda _, frame: seen.append(frame.method.reason))
        connection.add_on_connection_unblocked_callback(lambda _, __: seen.append("unblocked"))
        ch = connection.channel()
        ch.queue_declare("blocked", exclusive=True)
        ch.basic_publish("", "blocked", b"x")
        at.ask("alarm")
        try:
            ch.basic_publish("", "blocked", b"y")
            pump(connection, lambda: len(seen) == 1)
        finally:
            at.ask("clear")
        pump(connection, lambda: len(seen) == 2)
    return seen


def operator_close(at: Setting) -> object:
    with connected(at) as connection:
        at.ask("close")
        try:
            pump(connection, lambda: False)
        except ConnectionClosedByBroker as error:
            return [error.reply_code, error.reply_text]
    return None


def connection_list(at: Setting) -> object:
    with connected(at):
        return at.ask("connections")
