"""Programs of a few lines, as services are: one that fails raises."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

Program = Callable[[pika.BlockingConnection], None]


def _open(connection: pika.BlockingConnection) -> BlockingChannel:
    channel = connection.channel()
    channel.confirm_delivery()
    return channel


def _take(channel: BlockingChannel, queue: str, count: int) -> None:
    for _ in range(count):
        assert channel.basic_get(queue, auto_ack=True)[0] is not None


def orders(connection: pika.BlockingConnection) -> None:
    """Routing keys with ids, a queue and an exchange that stay."""
    channel = _open(connection)
    channel.exchange_declare("orders", "topic")
    channel.queue_declare("orders.in")
    channel.queue_bind("orders.in", "orders", "order.*.created")
    for number in range(4711, 4721):
        channel.basic_publish("orders", f"order.{number}.created", b"x", mandatory=True)
    _take(channel, "orders.in", 10)


def depth(connection: pika.BlockingConnection) -> None:
    """Asks after the queue of `orders`."""
    answer = _open(connection).queue_declare("orders.in", passive=True)
    assert answer.method.message_count == 0


def jobs(connection: pika.BlockingConnection) -> None:
    """Queues with ids in their names, by the default exchange."""
    channel = _open(connection)
    for _ in range(2):
        queue = f"jobs-{uuid.uuid4()}"
        channel.queue_declare(queue)
        channel.basic_publish("", queue, b"x", mandatory=True)
        _take(channel, queue, 1)
        channel.queue_delete(queue)


def replies(connection: pika.BlockingConnection) -> None:
    """A queue that the broker names, with a consumer."""
    channel = _open(connection)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("", queue, b"x", mandatory=True)
    for _ in channel.consume(queue, auto_ack=True):
        break
    channel.cancel()


def news(connection: pika.BlockingConnection) -> None:
    """A fanout exchange for the time being."""
    channel = _open(connection)
    channel.exchange_declare("news", "fanout", auto_delete=True)
    channel.queue_declare("news.copy", auto_delete=True)
    channel.queue_bind("news.copy", "news")
    channel.basic_publish("news", "", b"x", mandatory=True)
    _take(channel, "news.copy", 1)
    channel.queue_delete("news.copy")


def copies(connection: pika.BlockingConnection) -> None:
    """More routing keys in the headers CC and BCC."""
    channel = _open(connection)
    channel.exchange_declare("mail", "direct")
    for name in ("to", "cc", "bcc"):
        channel.queue_declare(f"mail.{name}")
        channel.queue_bind(f"mail.{name}", "mail", name)
    for number in range(3):
        headers: dict[str, object] = {"CC": ["cc", f"audit.{number}"], "BCC": ["bcc"]}
        channel.basic_publish("mail", "to", b"x", pika.BasicProperties(headers=headers), mandatory=True)
    # To queues, by their names.
    channel.basic_publish("", "mail.to", b"x", pika.BasicProperties(headers={"BCC": ["mail.bcc"]}))
    for name, count in (("to", 4), ("cc", 3), ("bcc", 4)):
        _take(channel, f"mail.{name}", count)


def wrong(connection: pika.BlockingConnection) -> None:
    """What the broker refuses."""
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
        _open(connection).queue_declare("nowhere", passive=True)
    assert error.value.reply_code == 404


PROGRAMS: Mapping[str, Program] = {
    program.__name__: program for program in (orders, depth, jobs, replies, news, copies, wrong)
}
