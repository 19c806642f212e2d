"""py-amqp, the library under kombu and Celery."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import amqp
from amqp.exceptions import MessageNacked

from tests.interop.steps import BIG_BODY, HEADERS, PROPERTIES, Setting

#: py-amqp keeps the broker's reason for itself.
OWN = {"blocked": ["connection blocked, see broker logs", "unblocked"]}


@contextlib.contextmanager
def connected(at: Setting, **changes: object) -> Iterator[amqp.Connection]:
    settings = {
        "host": f"{at.host}:{at.port}",
        "userid": at.user,
        "password": at.password,
        "virtual_host": at.vhost,
        "client_properties": {"connection_name": "interop"},
    }
    connection = amqp.Connection(**(settings | changes))
    try:
        connection.connect()
        yield connection
    finally:
        connection.close()


@contextlib.contextmanager
def channel(at: Setting) -> Iterator[amqp.Channel]:
    with connected(at) as connection:
        yield connection.channel()


def drain(connection: amqp.Connection, done: Callable[[], bool]) -> None:
    """Read events until `done`; the socket's time-out (20 s) is an error."""
    while not done():
        connection.drain_events(timeout=20)


def own_queue(channel: amqp.Channel, **arguments: object) -> str:
    declared = channel.queue_declare("", exclusive=True, auto_delete=False, arguments=arguments or None)
    return declared.queue


def server(at: Setting) -> object:
    with connected(at) as connection:
        return {
            "version": [connection.version_major, connection.version_minor],
            "properties": connection.server_properties,
            "mechanisms": connection.mechanisms,
            "locales": connection.locales,
        }


def declare(at: Setting) -> object:
    with channel(at) as ch:
        named = ch.queue_declare("declare", durable=True, auto_delete=False, arguments={"x-max-length": 10})
        passive = ch.queue_declare("declare", passive=True)
        own = own_queue(ch)
        ch.basic_publish(amqp.Message("x"), "", "declare")
        return {
            "named": list(named),
            "passive": list(passive),
            "server_named": own.startswith("amq.gen-"),
            "purged": ch.queue_purge("declare"),
            "deleted": ch.queue_delete("declare"),
        }


def exchanges(at: Setting) -> object:
    seen: dict[str, list[int]] = {}
    with channel(at) as ch:
        for queue in ("red", "blue"):
            ch.queue_declare(queue, exclusive=True)

        def publish(exchange: str, key: str, **headers: object) -> None:
            ch.basic_publish(amqp.Message("", application_headers=headers), exchange, key)

        def count(name: str) -> None:
            seen[name] = [ch.queue_purge(queue) for queue in ("red", "blue")]

        for kind in ("direct", "fanout", "topic", "headers"):
            ch.exchange_declare(f"x.{kind}", kind, auto_delete=True)
        for queue in ("red", "blue"):
            ch.queue_bind(queue, "x.direct", queue)
            ch.queue_bind(queue, "x.fanout")
        ch.queue_bind("red", "x.topic", "*.fast.#")
        ch.queue_bind("blue", "x.topic", "slow.*")
        ch.queue_bind("red", "x.headers", arguments={"x-match": "all", "a": 1, "b": "x"})
        ch.queue_bind("blue", "x.headers", arguments={"x-match": "any", "a": 1, "c": True})

        publish("x.direct", "red")
        count("direct")
        publish("x.fanout", "anything")
        count("fanout")
        for key in ("car.fast.now", "slow.car", "car.fast"):
            publish("x.topic", key)
        count("topic")
        publish("x.headers", "", a=1, b="x")
        publish("x.headers", "", a=1)
        count("headers")
        ch.exchange_declare("x.source", "fanout", auto_delete=False)
        ch.exchange_bind("x.direct", "x.source", "red")
        publish("x.source", "red")
        count("exchange_bind")
        ch.exchange_unbind("x.direct", "x.source", "red")
        publish("x.source", "red")
        count("exchange_unbind")
        ch.exchange_delete("x.source")
        ch.queue_unbind("red", "x.fanout")
        publish("x.fanout", "")
        count("queue_unbind")
    return seen


def properties(at: Setting) -> object:
    with channel(at) as ch:
        queue = own_queue(ch)
        ch.basic_publish(amqp.Message("", application_headers=dict(HEADERS), **PROPERTIES), "", queue)
        got = dict(ch.basic_get(queue, no_ack=True).properties)
    return {"headers": got.pop("application_headers"), "properties": got}


def header_types(at: Setting) -> object:
    sent = {
        "float": 0.1,
        "bytes": b"\x00\xff",
        "decimal": Decimal("3.14"),
        "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "int64": 2**63 - 1,
        "false": False,
        "empty": {},
        "nothing": [],
        "mixed": [1, "x", None, True, {"a": 2}],
        "long": "y" * 70_000,
    }
    with channel(at) as ch:
        queue = own_queue(ch)
        ch.basic_publish(amqp.Message("", application_headers=sent, cluster_id="c"), "", queue)
        got = ch.basic_get(queue, no_ack=True).properties
    assert got["cluster_id"] == "c"
    headers = got["application_headers"]
    headers["timestamp"] = headers["timestamp"].replace(tzinfo=UTC)
    return [sent, headers]


def confirms(at: Setting) -> object:
    acked = nacked = 0
    with connected(at, confirm_publish=True) as connection:
        ch = connection.channel()
        queue = own_queue(ch)
        for _ in range(100):
            try:
                ch.basic_publish(amqp.Message("x"), "", queue)
                acked += 1
            except MessageNacked:
                nacked += 1
        in_queue = ch.queue_declare(queue, passive=True).message_count
    return {"acked": acked, "nacked": nacked, "in_queue": in_queue}


def confirm_nack(at: Setting) -> object:
    seen = []
    with connected(at, confirm_publish=True) as connection:
        ch = connection.channel()
        queue = own_queue(ch, **{"x-max-length": 1, "x-overflow": "reject-publish"})
        for _ in range(2):
            try:
                ch.basic_publish(amqp.Message("x"), "", queue)
                seen.append("ack")
            except MessageNacked:
                seen.append("nack")
    return seen


def returns(at: Setting) -> object:
    returned: list[list[object]] = []
    with connected(at) as connection:
        ch = connection.channel()

        def on_return(error: amqp.ChannelError, exchange: str, key: str, message: amqp.Message) -> None:
            returned.append([error.reply_code, error.reply_text, exchange, key, message.body])

        ch.events["basic_return"].add(on_return)
        ch.basic_publish(amqp.Message("lost"), "", "nowhere", mandatory=True)
        drain(connection, lambda: bool(returned))
    return returned[0]


def acks(at: Setting) -> object:
    seen: list[list[object]] = []
    with connected(at) as connection:
        ch = connection.channel()
        dead = own_queue(ch)
        queue = own_queue(ch, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
        for body in ("one", "two", "three"):
            ch.basic_publish(amqp.Message(body), "", queue)

        def on_message(message: amqp.Message) -> None:
            tag = message.delivery_info["delivery_tag"]
            seen.append([message.body, message.delivery_info["redelivered"]])
            if len(seen) == 1:
                ch.basic_reject(tag, requeue=True)
            elif message.body == "two":
                ch.basic_reject(tag, requeue=False)
            else:
                ch.basic_ack(tag)

        ch.basic_qos(0, 1, False)
        ch.basic_consume(queue, callback=on_message)
        drain(connection, lambda: len(seen) == 4)
        letter = ch.basic_get(dead, no_ack=True)
    reason = letter.properties["application_headers"]["x-death"][0]["reason"]
    return {"deliveries": seen, "dead": [letter.body, reason]}


def recover(at: Setting) -> object:
    with channel(at) as ch:
        queue = own_queue(ch)
        ch.basic_publish(amqp.Message("x"), "", queue)
        first = ch.basic_get(queue).delivery_info["redelivered"]
        ch.basic_recover(requeue=True)
        return [first, ch.basic_get(queue).delivery_info["redelivered"]]


def get(at: Setting) -> object:
    with channel(at) as ch:
        queue = own_queue(ch)
        empty = ch.basic_get(queue)
        for body in ("one", "two"):
            ch.basic_publish(amqp.Message(body), "", queue)
        full = ch.basic_get(queue, no_ack=True)
        info = full.delivery_info
    return {"empty": empty, "full": [full.body, info["redelivered"], info["message_count"]]}


def consume(at: Setting) -> object:
    bodies: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        queue = own_queue(ch)
        for number in range(10):
            ch.basic_publish(amqp.Message(f"m{number}"), "", queue)

        def on_message(message: amqp.Message) -> None:
            bodies.append(message.body)
            ch.basic_ack(message.delivery_info["delivery_tag"])

        tag = ch.basic_consume(queue, consumer_tag="reader", callback=on_message)
        drain(connection, lambda: len(bodies) == 10)
        ch.basic_cancel("reader")
        left = ch.queue_declare(queue, passive=True)
    tag = getattr(tag, "consumer_tag", tag)
    return {"tag": tag, "bodies": bodies, "left": left.message_count + left.consumer_count}


def tx(at: Setting) -> object:
    with channel(at) as ch:
        queue = own_queue(ch)
        ch.tx_select()
        ch.basic_publish(amqp.Message("x"), "", queue)
        ch.tx_rollback()
        rolled_back = ch.queue_purge(queue)
        ch.basic_publish(amqp.Message("y"), "", queue)
        ch.basic_publish(amqp.Message("z"), "", queue)
        ch.tx_commit()
        return {"rolled_back": rolled_back, "committed": ch.queue_purge(queue)}


def cancel_notify(at: Setting) -> object:
    cancelled: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        ch.queue_declare("doomed", auto_delete=False)
        ch.basic_consume("doomed", consumer_tag="watcher", callback=print, on_cancel=cancelled.append)
        connection.channel().queue_delete("doomed")
        drain(connection, lambda: bool(cancelled))
    return cancelled[0]


def exclusive(at: Setting) -> object:
    with channel(at) as owner, channel(at) as other:
        owner.queue_declare("mine", exclusive=True)
        try:
            other.queue_declare("mine", exclusive=True)
        except amqp.ResourceLocked as error:
            return [error.reply_code, error.reply_text]
    return None


def reply_to(at: Setting) -> object:
    answers: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        ch.queue_declare("rpc", exclusive=True)
        ch.basic_consume(
            "amq.rabbitmq.reply-to", callback=lambda answer: answers.append(answer.body), no_ack=True
        )
        ch.basic_publish(amqp.Message("ping", reply_to="amq.rabbitmq.reply-to"), "", "rpc")
        address = ch.basic_get("rpc", no_ack=True).properties["reply_to"]
        connection.channel().basic_publish(amqp.Message("pong"), "", address)
        drain(connection, lambda: bool(answers))
    return {"pseudo_queue": address.startswith("amq.rabbitmq.reply-to."), "answer": answers[0]}


def priorities(at: Setting) -> object:
    who: list[str] = []
    with connected(at) as connection:
        ch = connection.channel()
        queue = own_queue(ch)
        for name, priority in (("low", 1), ("high", 10)):
            ch.basic_consume(
                queue,
                consumer_tag=name,
                no_ack=True,
                callback=lambda _, name=name: who.append(name),
                arguments={"x-priority": priority},
            )
        for _ in range(5):
            ch.basic_publish(amqp.Message("x"), "", queue)
        drain(connection, lambda: len(who) == 5)
    return who


def quorum(at: Setting) -> object:
    counts: list[object] = []
    with connected(at, confirm_publish=True) as connection:
        ch = connection.channel()
        ch.queue_declare("quorum", durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"})
        ch.basic_publish(amqp.Message("x"), "", "quorum")

        def on_message(message: amqp.Message) -> None:
            headers = message.properties.get("application_headers") or {}
            counts.append(headers.get("x-delivery-count"))
            ch.basic_reject(message.delivery_info["delivery_tag"], requeue=len(counts) == 1)

        ch.basic_consume("quorum", consumer_tag="quorum", callback=on_message)
        drain(connection, lambda: len(counts) == 2)
        ch.basic_cancel("quorum")
        ch.queue_delete("quorum")
    return counts


def stream(at: Setting) -> object:
    seen: list[list[object]] = []
    with connected(at, confirm_publish=True) as connection:
        ch = connection.channel()
        ch.queue_declare("stream", durable=True, auto_delete=False, arguments={"x-queue-type": "stream"})
        for number in range(3):
            ch.basic_publish(amqp.Message(f"s{number}"), "", "stream")

        def on_message(message: amqp.Message) -> None:
            seen.append([message.body, message.properties["application_headers"]["x-stream-offset"]])
            ch.basic_ack(message.delivery_info["delivery_tag"])

        ch.basic_qos(0, 10, False)
        ch.basic_consume(
            "stream", consumer_tag="stream", callback=on_message, arguments={"x-stream-offset": "first"}
        )
        drain(connection, lambda: len(seen) == 3)
        ch.basic_cancel("stream")
        ch.queue_delete("stream")
    return seen


def bodies(at: Setting) -> object:
    seen = []
    with channel(at) as ch:
        queue = own_queue(ch)
        for body in (BIG_BODY, b""):
            ch.basic_publish(amqp.Message(body), "", queue)
            got = ch.basic_get(queue, no_ack=True).body
            got = got.encode() if isinstance(got, str) else got
            seen.append([len(got), hashlib.sha256(got).hexdigest()])
    return seen


def channel_errors(at: Setting) -> object:
    seen: dict[str, object] = {}
    acts: list[Callable[[amqp.Channel], object]] = [
        lambda ch: ch.queue_declare("nothing", passive=True),
        lambda ch: ch.queue_declare("errors", durable=False, auto_delete=False),
        lambda ch: ch.exchange_declare("amq.mine", "direct", auto_delete=False),
    ]
    with connected(at) as connection:
        connection.channel().queue_declare("errors", durable=True, auto_delete=False)
        for act in acts:
            try:
                act(connection.channel())
            except amqp.ChannelError as error:
                seen[str(error.reply_code)] = error.reply_text
        connection.channel().queue_delete("errors")
        seen["usable"] = connection.connected
    return seen


def wrong_password(at: Setting) -> object:
    return _refusal(at, password="wrong", login_method="PLAIN")


def unknown_vhost(at: Setting) -> object:
    return _refusal(at, virtual_host="nowhere")


def _refusal(at: Setting, **changes: object) -> object:
    try:
        with connected(at, **changes):
            return None
    except (amqp.AccessRefused, amqp.NotAllowed) as error:
        return [error.reply_code, error.reply_text]


def amqplain(at: Setting) -> object:
    with connected(at, login_method="AMQPLAIN") as connection:
        return list(connection.channel().queue_declare("amqplain", exclusive=True))


def blocked(at: Setting) -> object:
    seen: list[str] = []
    with connected(at, on_blocked=seen.append, on_unblocked=lambda: seen.append("unblocked")) as connection:
        ch = connection.channel()
        queue = own_queue(ch)
        ch.basic_publish(amqp.Message("x"), "", queue)
        at.ask("alarm")
        try:
            ch.basic_publish(amqp.Message("y"), "", queue)
            drain(connection, lambda: len(seen) == 1)
        finally:
            at.ask("clear")
        drain(connection, lambda: len(seen) == 2)
    return seen


def operator_close(at: Setting) -> object:
    with connected(at) as connection:
        at.ask("close")
        try:
            connection.drain_events(timeout=20)
        except amqp.ConnectionForced as error:
            return [error.reply_code, error.reply_text]
    return None


def connection_list(at: Setting) -> object:
    with connected(at):
        return at.ask("connections")
