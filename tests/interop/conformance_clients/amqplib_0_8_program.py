"""py-amqplib (Debian's python3-amqplib), AMQP 0-8: publishes, consumes on two channels, gets, and leaves."""

from __future__ import annotations

import os

from amqplib import client_0_8 as amqp

BODIES = ["", "small", "x" * 300_000, "four", "five"]

connection = amqp.Connection(
    f"{os.environ['AMQP_HOST']}:{os.environ['AMQP_PORT']}", "guest", "guest", connect_timeout=20
)
publisher, consumer, other = (connection.channel() for _ in range(3))
queues = [publisher.queue_declare("", exclusive=True, auto_delete=False)[0] for _ in range(2)]
for body in BODIES:
    for queue in queues:
        publisher.basic_publish(amqp.Message(body, priority=3, application_headers={"n": 1}), "", queue)
publisher.basic_publish(amqp.Message("lost"), "", "nowhere", mandatory=True)
publisher.queue_declare(queues[0], passive=True)
assert publisher.returned_messages.get(timeout=5)[-1].body == "lost"
got: dict[int, list[str]] = {1: [], 2: []}


def taker(number, channel):
    def take(message):
        got[number].append(message.body)
        channel.basic_ack(message.delivery_tag)

    return take


tags = [
    channel.basic_consume(queue, callback=taker(number, channel))
    for number, (channel, queue) in enumerate(((consumer, queues[0]), (other, queues[1])), 1)
]
for number, channel in ((1, consumer), (2, other)):
    while len(got[number]) < len(BODIES):
        channel.wait()
assert got == {1: BODIES, 2: BODIES}
consumer.basic_cancel(tags[0])
other.basic_cancel(tags[1])
assert publisher.basic_get(queues[0]) is None
other.close()
connection.close()
