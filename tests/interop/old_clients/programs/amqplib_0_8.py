"""py-amqplib (Debian's python3-amqplib): AMQP 0-8 with the header `AMQP 1 1 9 1`.

Run by the system's Python, which has the package. See `../steps.py` for the steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal

from amqplib import client_0_8 as amqp
from amqplib.client_0_8.transport import TCPTransport
from conversation import (
    ADDRESS,
    BIG_BODY,
    HEADERS,
    PASSWORD,
    PROPERTIES,
    ROUND_TRIPS,
    USER,
    VHOST,
    ask,
    digest,
    play,
)


class PatientTransport(TCPTransport):
    """Its own ``close`` fails where the broker has hung up first, and hides what the broker has said."""

    def close(self) -> None:
        try:
            super().close()
        except OSError:
            self.sock.close()
            self.sock = None


amqp.transport.TCPTransport = PatientTransport


@contextlib.contextmanager
def connected(**changes: str) -> Iterator[amqp.Connection]:
    settings = {"userid": USER, "password": PASSWORD, "virtual_host": VHOST, "connect_timeout": 20} | changes
    connection = amqp.Connection(ADDRESS, **settings)
    yield connection
    connection.close()


@contextlib.contextmanager
def channel() -> Iterator[amqp.Channel]:
    with connected() as connection:
        yield connection.channel()


def own_queue(ch: amqp.Channel, **arguments: object) -> str:
    return ch.queue_declare(exclusive=True, auto_delete=False, arguments=arguments)[0]


def send(
    ch: amqp.Channel, key: str, body: str | bytes = b"", exchange: str = "", **properties: object
) -> None:
    ch.basic_publish(amqp.Message(body, **properties), exchange, key)


def text(message: amqp.Message) -> str:
    return message.body if isinstance(message.body, str) else message.body.decode()


def wait_until(ch: amqp.Channel, done: Callable[[], bool]) -> None:
    while not done():
        ch.wait()


def told(error: amqp.AMQPException) -> list[object]:
    return [error.amqp_reply_code, error.amqp_reply_text, list(error.amqp_method_sig)]


def server() -> object:
    with connected() as connection:
        return {
            "version": [connection.version_major, connection.version_minor],
            "product": connection.server_properties["product"],
            "mechanisms": sorted(connection.mechanisms),
            "known_hosts": connection.known_hosts,
        }


def declare() -> object:
    with channel() as ch:
        named = ch.queue_declare("declare", durable=True, auto_delete=False, arguments={"x-max-length": 10})
        passive = ch.queue_declare("declare", passive=True)
        own = own_queue(ch)
        send(ch, "declare", "x")
        return {
            "named": list(named),
            "passive": list(passive),
            "server_named": own.startswith("amq.gen-"),
            "purged": ch.queue_purge("declare"),
            "deleted": ch.queue_delete("declare"),
        }


def bindings() -> object:
    seen: dict[str, list[int]] = {}
    with channel() as ch:
        for queue in ("red", "blue"):
            ch.queue_declare(queue, exclusive=True)

        def count(name: str) -> None:
            seen[name] = [ch.queue_purge(queue) for queue in ("red", "blue")]

        for kind in ("direct", "fanout", "topic", "headers"):
            ch.exchange_declare(f"x.{kind}", kind)
        for queue in ("red", "blue"):
            ch.queue_bind(queue, "x.direct", queue)
            ch.queue_bind(queue, "x.fanout")
        ch.queue_bind("red", "x.topic", "*.fast.#")
        ch.queue_bind("blue", "x.topic", "slow.*")
        ch.queue_bind("red", "x.headers", arguments={"x-match": "all", "a": 1, "b": "x"})
        ch.queue_bind("blue", "x.headers", arguments={"x-match": "any", "a": 1, "c": "y"})

        send(ch, "red", exchange="x.direct")
        count("direct")
        send(ch, "anything", exchange="x.fanout")
        count("fanout")
        for key in ("car.fast.now", "slow.car", "car.fast"):
            send(ch, key, exchange="x.topic")
        count("topic")
        for headers in ({"a": 1, "b": "x"}, {"a": 1}):
            send(ch, "", exchange="x.headers", application_headers=headers)
        count("headers")
        ch.queue_unbind("red", "x.fanout")
        send(ch, "", exchange="x.fanout")
        count("unbind")
        ch.exchange_delete("x.topic")
        try:
            ch.exchange_declare("x.topic", "topic", passive=True)
        except amqp.AMQPChannelException as error:
            seen["deleted"] = error.amqp_reply_code
    return seen


def properties() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        sent = dict(PROPERTIES) | {"timestamp": datetime.fromtimestamp(PROPERTIES["timestamp"])}
        send(ch, queue, application_headers=dict(HEADERS), **sent)
        got = dict(ch.basic_get(queue, no_ack=True).properties)
    got["timestamp"] = int(got["timestamp"].timestamp())
    return {"headers": got.pop("application_headers"), "properties": got}


def header_types() -> object:
    sent = {
        "decimal": Decimal("3.14"),
        "small": Decimal("-0.05"),
        "time": datetime.fromtimestamp(1_700_000_000),
        "lowest": -(2**31),
        "highest": 2**31 - 1,
        "empty": {},
        "nested": {"time": datetime.fromtimestamp(1), "table": {"decimal": Decimal("0.1")}},
        "long": "y" * 70_000,
        "umlaut": "grün",
    }
    with channel() as ch:
        queue = own_queue(ch)
        send(ch, queue, application_headers=sent)
        got = ch.basic_get(queue, no_ack=True).application_headers
    return [{name: repr(value) for name, value in table.items()} for table in (sent, got)]


def bodies() -> object:
    seen = []
    with channel() as ch:
        queue = own_queue(ch)
        for body in (BIG_BODY, b""):
            send(ch, queue, body)
            got = ch.basic_get(queue, no_ack=True).body
            seen.append(digest(got or b""))
    return seen


def returns() -> object:
    with channel() as ch:
        ch.basic_publish(amqp.Message("lost"), "", "nowhere", mandatory=True)
        own_queue(ch)  # a return is taken in while the channel waits for something else
        code, reply, exchange, key, message = ch.returned_messages.get_nowait()
        return [code, reply, exchange, key, text(message)]


def acks() -> object:
    seen: list[list[object]] = []
    with channel() as ch:
        dead = own_queue(ch)
        queue = own_queue(ch, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
        for body in ("one", "two", "three"):
            send(ch, queue, body)

        def on_message(message: amqp.Message) -> None:
            seen.append([text(message), message.delivery_info["redelivered"]])
            if len(seen) == 1:
                ch.basic_reject(message.delivery_tag, True)
            elif seen[-1][0] == "two":
                ch.basic_reject(message.delivery_tag, False)
            else:
                ch.basic_ack(message.delivery_tag)

        ch.basic_qos(0, 1, False)
        tag = ch.basic_consume(queue, callback=on_message)
        wait_until(ch, lambda: len(seen) == 4)
        ch.basic_cancel(tag)
        return {"deliveries": seen, "dead": ch.queue_purge(dead), "left": ch.queue_purge(queue)}


def recover() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        send(ch, queue, "x")
        first = ch.basic_get(queue).redelivered
        ch.basic_recover(requeue=True)
        return [first, ch.basic_get(queue).redelivered]


def get() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        empty = ch.basic_get(queue)
        for body in ("one", "two"):
            send(ch, queue, body)
        full = ch.basic_get(queue, no_ack=True)
        return {"empty": empty, "full": [text(full), full.redelivered, full.message_count]}


def consume() -> object:
    seen: list[str] = []
    with channel() as ch:
        queue = own_queue(ch)
        for number in range(10):
            send(ch, queue, f"m{number}")

        def on_message(message: amqp.Message) -> None:
            seen.append(text(message))
            ch.basic_ack(message.delivery_tag)

        tag = ch.basic_consume(queue, "reader", callback=on_message)
        wait_until(ch, lambda: len(seen) == 10)
        ch.basic_cancel(tag)
        _, messages, consumers = ch.queue_declare(queue, passive=True)
        return {"tag": tag, "bodies": seen, "left": messages + consumers}


def qos() -> object:
    seen: list[amqp.Message] = []
    with channel() as ch:
        queue = own_queue(ch)
        for number in range(5):
            send(ch, queue, f"m{number}")
        ch.basic_qos(0, 2, False)
        ch.basic_consume(queue, callback=seen.append)
        wait_until(ch, lambda: len(seen) == 2)
        ready = ch.queue_declare(queue, passive=True)[1]
        ch.basic_ack(seen[-1].delivery_tag, multiple=True)
        wait_until(ch, lambda: len(seen) == 4)
        return {"ready": ready, "then": [text(message) for message in seen]}


def tx() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        ch.tx_select()
        send(ch, queue, "x")
        ch.tx_rollback()
        rolled_back = ch.queue_purge(queue)
        for body in ("y", "z"):
            send(ch, queue, body)
        ch.tx_commit()
        return {"rolled_back": rolled_back, "committed": ch.queue_purge(queue)}


def access() -> object:
    with channel() as ch:
        ticket = ch.access_request("/data", active=True, write=True, read=True)
        queue = own_queue(ch)
        send(ch, queue, "ticket")
        return [ticket, text(ch.basic_get(queue, no_ack=True))]


def errors() -> object:
    seen: dict[str, object] = {}
    with connected() as connection:
        connection.channel().queue_declare("errors", durable=True, auto_delete=False)
        acts: list[Callable[[amqp.Channel], object]] = [
            lambda ch: ch.queue_declare("nothing", passive=True),
            lambda ch: ch.queue_declare("errors", durable=False, auto_delete=False),
            lambda ch: ch.exchange_declare("amq.mine", "direct"),
        ]
        for act in acts:
            try:
                act(connection.channel())
            except amqp.AMQPChannelException as error:
                seen[str(error.amqp_reply_code)] = told(error)[1:]
        seen["usable"] = connection.channel().queue_delete("errors") == 0
    return seen


def connection_error() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        ch.basic_consume(queue, "reader")
        try:
            ch.basic_consume(queue, "reader")
        except amqp.AMQPConnectionException as error:
            return told(error)
    return None


def unknown_vhost() -> object:
    try:
        with connected(virtual_host="nowhere"):
            return None
    except amqp.AMQPConnectionException as error:
        return told(error)


def wrong_password() -> object:
    try:
        with connected(password="wrong"):
            return None
    except amqp.AMQPConnectionException as error:
        return told(error)
    except OSError:
        return "no word"


def operator_close() -> object:
    with connected() as connection:
        ask("close")
        try:
            connection.wait()
        except amqp.AMQPConnectionException as error:
            return told(error)
    return None


def close() -> object:
    with connected() as connection:
        connection.channel().close()
        connection.close()
        return connection.transport is None


def flow() -> object:
    seen: list[str] = []
    with channel() as ch:
        queue = own_queue(ch)
        ch.basic_consume(queue, no_ack=False, callback=lambda message: seen.append(text(message)))
        off = ch.flow(False)
        send(ch, queue, "later")
        for _ in range(ROUND_TRIPS):
            ch.basic_qos(0, 10, False)
        meanwhile = list(seen)
        on = ch.flow(True)
        wait_until(ch, lambda: len(seen) == 1)
        return {"off": off, "meanwhile": meanwhile, "on": on, "then": seen}


def prefetch_size() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        ch.basic_qos(1_000_000, 0, False)
        send(ch, queue, "x")
        return text(ch.basic_get(queue, no_ack=True))


def recover_same() -> object:
    with channel() as ch:
        ch.basic_recover(requeue=False)
        try:
            own_queue(ch)
        except amqp.AMQPConnectionException as error:
            return told(error)
    return None


def delivery_mode_0() -> object:
    with channel() as ch:
        queue = own_queue(ch)
        send(ch, queue, "x", delivery_mode=0)
        message = ch.basic_get(queue, no_ack=True)
        return [text(message), message.delivery_mode]


def immediate() -> object:
    """What closes the channel; a close of the connection is a failure."""
    with connected() as connection:
        ch = connection.channel()
        ch.basic_publish(amqp.Message("x"), "", own_queue(ch), immediate=True)
        try:
            own_queue(ch)
        except amqp.AMQPChannelException as error:
            connection.channel()
            return told(error)
    return None


def foreign() -> object:
    with channel() as ch:
        ch.queue_declare("foreign", auto_delete=False)
        ask("foreign")
        message = ch.basic_get("foreign", no_ack=True)
        return [text(message), sorted(message.application_headers)]


STEPS = (
    *(server, declare, bindings, properties, header_types, bodies, returns, acks, recover, get, consume, qos),
    *(tx, access, errors, connection_error, unknown_vhost, wrong_password, operator_close, close),
    *(flow, prefetch_size, recover_same, delivery_mode_0, immediate, foreign),
)

play({step.__name__: step for step in STEPS})
