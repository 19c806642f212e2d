"""kombu on py-amqp: publishes with confirms, consumes on two channels at once, gets, and leaves."""

from __future__ import annotations

import os

from amqp.exceptions import ChannelError
from kombu import Connection

BODIES = [b"", b"small", b"x" * 300_000, b"four", b"five"]

url = os.environ["AMQP_URL"]
with Connection(url, heartbeat=1, transport_options={"confirm_publish": True}) as connection:
    publisher, consumer, other = (connection.channel() for _ in range(3))
    queues = [publisher.queue_declare("", exclusive=True).queue for _ in range(2)]
    producer = connection.Producer(publisher)
    for body in BODIES:
        for queue in queues:
            producer.publish(
                body, routing_key=queue, content_type="application/data", content_encoding="binary"
            )
    returned = []
    publisher.events["basic_return"].add(lambda *args: returned.append(args[-1].body))
    try:
        publisher.basic_publish_confirm(publisher.prepare_message(b"lost"), "", "nowhere", mandatory=True)
    except ChannelError as error:
        returned.append(error)
    assert returned
    got: dict[object, list[bytes]] = {}

    def taker(channel):
        def take(message):
            body = message.body
            got.setdefault(channel.channel_id, []).append(
                body.encode() if isinstance(body, str) else bytes(body)
            )
            channel.basic_ack(message.delivery_tag)

        return take

    tags = [
        one.basic_consume(queue, callback=taker(one))
        for one, queue in zip((consumer, other), queues, strict=True)
    ]
    while sum(map(len, got.values())) < 2 * len(BODIES):
        connection.drain_events()
    assert list(got.values()) == [BODIES, BODIES], got
    consumer.basic_cancel(tags[0])
    other.basic_cancel(tags[1])
    assert publisher.basic_get(queues[0]) is None
    other.close()
