"""pika, blocking: publishes with confirms, consumes on two channels at once, gets, and leaves."""

from __future__ import annotations

import os

import pika

BODIES = [b"", b"small", b"x" * 300_000, b"four", b"five"]

connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
publisher, consumer, other = (connection.channel() for _ in range(3))
returned = []
publisher.confirm_delivery()
queues = [publisher.queue_declare("", exclusive=True).method.queue for _ in range(2)]
properties = pika.BasicProperties(content_type="text/plain", delivery_mode=2, priority=3, headers={"n": 1})
for body in BODIES:
    for queue in queues:
        try:
            publisher.basic_publish("", queue, body, properties, mandatory=True)
        except pika.exceptions.NackError:
            expected = None
try:
    publisher.basic_publish("", "nowhere", b"lost", mandatory=True)
except pika.exceptions.UnroutableError as error:
    returned = [one.body for one in error.messages]
assert returned == [b"lost"], returned
got: dict[int, list[bytes]] = {}


def take(channel, method, _, body):
    got.setdefault(channel.channel_number, []).append(body)
    channel.basic_ack(method.delivery_tag)


tags = [one.basic_consume(queue, take) for one, queue in zip((consumer, other), queues, strict=True)]
while sum(map(len, got.values())) < 2 * len(BODIES):
    connection.process_data_events(time_limit=None)
assert list(got.values()) == [BODIES, BODIES], got
consumer.basic_cancel(tags[0])
other.basic_cancel(tags[1])
assert publisher.basic_get(queues[0]) == (None, None, None)
other.close()
connection.close()
