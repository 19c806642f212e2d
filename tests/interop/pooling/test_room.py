"""Clients with many channels: each gets them, or hears why not; and nobody who waits is forgotten."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from amqpgate.cli import main
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling.test_losses import channels_of
from tests.interop.pooling.ways import Place, end_of, in_step, opened
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = "room"


@pytest.fixture
def small(rabbitmq: RabbitMQ) -> Iterator[Place]:
    """Links of eight channels, two at most."""
    rabbitmq.fresh_vhost(VHOST)
    with opened("pooled", rabbitmq, channelsPerLink=8, maxLinks=2, spareChannels=1, idleTimeout="1s") as way:
        place = Place(way, VHOST)
        yield place
        for client in place.clients:
            client.close()
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{VHOST}">>, <<"guest">>).')


def consuming(place: Place, channels: int) -> Talker:
    """A client that cannot leave its link."""
    client = place.client(channels=1)
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    client.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
    client.ask(amqp.BasicConsume(queue="q", consumer_tag="t"), amqp.BasicConsumeOk, 1)
    for channel in range(2, channels + 1):
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
    return client


def test_a_client_has_more_channels_than_a_link(small: Place) -> None:
    client = small.client(channels=40)
    for channel in (1, 8, 9, 40):
        in_step(client, channel)
    client.bye()
    eventually(lambda: channels_of(small) <= 4)


def test_clients_have_more_channels_together_than_their_link(small: Place) -> None:
    clients = [small.client(channels=1) for _ in range(5)]
    for channel in range(2, 7):
        for client in clients:
            client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
    for client in clients:
        for channel in range(1, 7):
            in_step(client, channel)
    for client in clients:
        client.bye()


def test_who_cannot_leave_a_full_link_hears_of_it(small: Place) -> None:
    client = consuming(small, 8)
    links = small.connections()
    client.say(amqp.ChannelOpen(), 9)
    close = end_of(client)
    assert (close.reply_code, close.class_id, close.method_id) == (506, 20, 10)
    assert close.reply_text == (
        "RESOURCE_ERROR - no channel is free on the shared connection to the broker, and it consumes"
    )
    eventually(lambda: channels_of(small) <= 4)
    # It has not made the pool look for another link again and again.
    assert links[0] in small.connections()


def test_who_comes_to_a_full_pool_hears_of_it(small: Place) -> None:
    first, second = consuming(small, 8), consuming(small, 8)
    links = small.connections()
    assert len(links) == 2
    waiter = small.client(channels=0)
    waiter.say(amqp.ChannelOpen(), 1)
    eventually(lambda: '"waiting":1' in pools_of(small))
    # Nobody dials for it meanwhile.
    assert small.connections() == links
    close = end_of(waiter)
    assert (close.reply_code, close.class_id, close.method_id) == (506, 20, 10)
    assert close.reply_text == (
        "RESOURCE_ERROR - no channel is free on the connections to the broker that are shared"
    )
    assert small.connections() == links
    for client in (first, second):
        in_step(client, 8)


def test_who_waits_gets_the_channel_that_another_leaves(small: Place) -> None:
    first = consuming(small, 4)
    second = small.client(channels=0)
    second.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    for channel in (5, 6, 7):
        first.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
    first.say(amqp.ChannelOpen(), 8)
    second.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 1)
    first.expect(amqp.ChannelOpenOk, 8)
    in_step(first, 8)


def _is_drained(place: Place, _: Talker) -> None:
    assert place.way.gateway is not None
    os.kill(place.way.gateway.child.pid, signal.SIGTERM)


def _is_closed_by_an_operator(place: Place, _: Talker) -> None:
    gateway = place.way.gateway
    assert gateway is not None
    admin = f"{gateway.host}:{gateway.admin_port}"
    found = json.loads(CliRunner().invoke(main, ["sessions", "--json", "--admin", admin]).stdout)
    (session,) = found["sessions"]
    closed = CliRunner().invoke(main, ["close", session["id"], "--now", "--admin", admin])
    assert closed.exit_code == 0, closed.output


GOING: dict[str, Callable[[Place, Talker], None]] = {
    "FIN": lambda _, client: client.sock.shutdown(socket.SHUT_WR),
    "RST": lambda _, client: client.reset(),
    "drain": _is_drained,
    "operator": _is_closed_by_an_operator,
}


@pytest.mark.parametrize("how", GOING)
def test_who_waits_and_goes_leaves_nothing(small: Place, how: str) -> None:
    client = consuming(small, 8)
    client.say(amqp.ChannelOpen(), 9)
    eventually(lambda: '"waiting":1' in pools_of(small))
    GOING[how](small, client)
    if how == "FIN":
        # It is not the end of its patience: that would be told.
        client.expect_end()
    eventually(lambda: channels_of(small) <= 4)


def pools_of(place: Place) -> str:
    """What an operator sees, without spaces."""
    assert place.way.gateway is not None
    return place.way.gateway.get("/pools")[1].replace(" ", "")
