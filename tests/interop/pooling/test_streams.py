"""A stream that no client of a pool has declared: RabbitMQ ends the connection of who gets from it."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.interop.pooling.ways import Place, end_of

STREAM = amqp.QueueDeclare(queue="s", durable=True, arguments=Table.of({"x-queue-type": "stream"}))


@pytest.mark.parametrize(
    "method",
    [amqp.BasicGet(queue="s"), amqp.QueuePurge(queue="s"), amqp.BasicConsume(queue="s", no_ack=True)],
)
def test_who_meets_a_stream_unawares_is_alone_with_it(place: Place, method: Method) -> None:
    place.witness().ask(STREAM, amqp.QueueDeclareOk, 1)
    bystander, client = place.bystander(), place.client()
    client.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
    client.say(method, 1)
    assert end_of(client).reply_code == 540
    bystander.leave()


def test_a_queue_that_is_known_is_polled_on_a_link(place: Place) -> None:
    place.client().ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    pollers = [place.client() for _ in range(2)]
    for client in pollers:
        client.ask(amqp.BasicGet(queue="q"), amqp.BasicGetEmpty, 1)
    place.together(3)


def test_a_queue_is_known_as_soon_as_it_is_asked_for(place: Place) -> None:
    client = place.client()
    client.say(amqp.QueueDeclare(queue="q"), 1)
    client.say(amqp.BasicGet(queue="q"), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.expect(amqp.BasicGetEmpty, 1)
    place.client()
    place.together(2)
