"""A client library as published (pika) gets along with the embedded broker."""

from __future__ import annotations

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ProbableAuthenticationError, UnroutableError

Address = tuple[str, int]


def _connect(address: Address, password: str = "guest") -> pika.BlockingConnection:
    login = pika.PlainCredentials("guest", password)
    return pika.BlockingConnection(pika.ConnectionParameters(*address, credentials=login))


def test_demonstration_round_trip(embedded: Address) -> None:
    connection = _connect(embedded)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.exchange_declare("news", "topic")
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "news", "weather.#")
    for number in range(100):
        channel.basic_publish("news", "weather.today", b"%d" % number, mandatory=True)
    with pytest.raises(UnroutableError):
        channel.basic_publish("news", "sports", b"", mandatory=True)
    channel.basic_qos(prefetch_count=10)
    seen = []
    for method, _properties, body in channel.consume(queue, inactivity_timeout=10):
        assert method is not None
        seen.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(seen) == 100:
            break
    assert seen == [b"%d" % number for number in range(100)]
    assert channel.cancel() == 0
    connection.close()


def test_refusals(embedded: Address) -> None:
    connection = _connect(embedded)
    with pytest.raises(ChannelClosedByBroker, match="NOT_FOUND - no queue 'nope' in vhost '/'"):
        connection.channel().queue_declare("nope", passive=True)
    connection.close()
    with pytest.raises(ProbableAuthenticationError, match="Login was refused"):
        _connect(embedded, "nope")
