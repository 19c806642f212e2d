"""RabbitMQ limits how many channels a user has, and ends the connection that opens one more: only its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling.ways import Place, end_of, in_step, opened
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

VHOST = USER = "limited-channels"
MOST = 12


@pytest.fixture
def limited(rabbitmq: RabbitMQ) -> Iterator[Place]:
    """Pools as they are by default, but for consumers, and a user with twelve channels."""
    rabbitmq.fresh_vhost(VHOST)
    rabbitmq.add_user(USER, USER, vhost=VHOST)
    limit(rabbitmq, MOST)
    with opened("pooled", rabbitmq) as way:
        place = Place(way, VHOST)
        yield place
        for client in place.clients:
            client.close()
    rabbitmq.ctl("delete_user", USER)
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{VHOST}">>, <<"guest">>).')


def limit(rabbitmq: RabbitMQ, most: int) -> None:
    rabbitmq.ctl("set_user_limits", USER, json.dumps({"max-channels": most}))


def tracked(rabbitmq: RabbitMQ) -> int:
    """Channels of the user, as RabbitMQ counts them: it hears of them a little later."""
    return int(rabbitmq.eval(f'rabbit_channel_tracking:count_tracked_items_in({{user, <<"{USER}">>}}).'))


def client_of(place: Place, channels: int = 0) -> Talker:
    return place.client(channels=channels, user=USER, password=USER)


def learned(place: Place) -> None:
    """The gateway knows how many there may be, and RabbitMQ has forgotten the link that was lost for it."""
    gateway = place.way.gateway
    assert gateway is not None
    client = client_of(place)
    eventually(lambda: f"has {MOST} channels at most" in gateway.child.output())
    client.bye()
    eventually(lambda: tracked(place.rabbitmq) == 0)


def of_consumer(client: Talker) -> None:
    """It cannot leave its link."""
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    client.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
    client.ask(amqp.BasicConsume(queue="q", consumer_tag="t"), amqp.BasicConsumeOk, 1)


def test_a_users_channels_can_be_fewer_than_are_kept_open(limited: Place) -> None:
    learned(limited)
    client = client_of(limited, channels=3)
    links = limited.connections()
    for channel in (1, 2, 3):
        in_step(client, channel)
    assert limited.connections() == links


@pytest.mark.parametrize("who", ["with none", "that can move", "that consumes"])
def test_one_channel_too_many_ends_its_own_client_only(limited: Place, who: str) -> None:
    learned(limited)
    clients = [client_of(limited, channels=3) for _ in range(MOST // 3)]
    over = clients.pop() if who != "with none" else client_of(limited)
    if who == "that consumes":
        of_consumer(over)
    eventually(lambda: tracked(limited.rabbitmq) == MOST)
    (link,) = limited.connections()
    over.say(amqp.ChannelOpen(), 1 if who == "with none" else 4)
    close = end_of(over)
    assert (close.reply_code, close.class_id, close.method_id) == (530, 0, 0)
    assert close.reply_text == (
        f"NOT_ALLOWED - number of channels opened for user '{USER}' has reached the maximum allowed user "
        f"limit of ({MOST})"
    )
    for client in clients:
        for channel in (1, 2, 3):
            in_step(client, channel)
    assert link in limited.connections()
    # Who leaves makes room.
    clients.pop().bye()
    later = client_of(limited, channels=3)
    in_step(later, 3)
    assert link in limited.connections()
