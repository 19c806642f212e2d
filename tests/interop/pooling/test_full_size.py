"""Links of 1,024 channels, and more clients' channels than fit on one: all of them work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling.ways import Place, in_step, opened
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "full-size"
CLIENTS, CHANNELS = 20, 200


@pytest.fixture
def large(rabbitmq: RabbitMQ) -> Iterator[Place]:
    """Eight links of 1,024 channels."""
    rabbitmq.fresh_vhost(VHOST)
    with opened("pooled", rabbitmq, channelsPerLink=1024, maxLinks=8) as way:
        place = Place(way, VHOST, patience=60)
        yield place
        for client in place.clients:
            client.close()
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{VHOST}">>, <<"guest">>).')


def open_in_turn(clients: list[Talker], first: int = 1) -> None:
    """Each opens its channels, and all of them at the same time."""
    for channel in range(first, CHANNELS + 1):
        for client in clients:
            client.say(amqp.ChannelOpen(), channel)
        for client in clients:
            client.expect(amqp.ChannelOpenOk, channel)


def works(client: Talker, queue: str) -> None:
    """On each channel a message is published, and each channel's consumer gets one."""
    channels = range(1, CHANNELS + 1)
    client.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    for channel in channels:
        client.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, channel)
        consume = amqp.BasicConsume(queue=queue, consumer_tag=f"t{channel}")
        client.ask(consume, amqp.BasicConsumeOk, channel)
    for channel in channels:
        client.publish(b"%d" % channel, queue, channel=channel)
    got = {}
    for _ in channels:
        channel, method = client.hear()
        assert isinstance(method, amqp.BasicDeliver)
        assert (method.consumer_tag, method.delivery_tag) == (f"t{channel}", 1)
        got[channel] = int(client.content_of(method, channel).body)
    assert sorted(got) == sorted(got.values()) == list(channels)
    for channel in channels:
        client.say(amqp.BasicAck(1), channel)
    in_step(client, 1)


@pytest.mark.slow
def test_clients_that_come_one_after_the_other_fill_links(large: Place) -> None:
    clients = [large.client(channels=CHANNELS) for _ in range(CLIENTS)]
    links = large.connections()
    for number, client in enumerate(clients):
        works(client, f"q{number}")
    assert large.connections() == links
    assert len(links) <= 5
    for client in clients:
        client.bye()


@pytest.mark.slow
def test_clients_that_grow_together_all_get_their_channels(large: Place) -> None:
    clients = [large.client(channels=0) for _ in range(CLIENTS)]
    open_in_turn(clients)
    links = large.connections()
    for number, client in enumerate(clients):
        works(client, f"q{number}")
    assert large.connections() == links
    for client in clients:
        client.bye()
