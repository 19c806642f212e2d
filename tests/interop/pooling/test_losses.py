"""A client that vanishes, and a link that is lost, take nothing of the others with them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.interop.pooling.test_faults import PUBLISH, TAG, message
from tests.interop.pooling.ways import Place, count, end_of, frames_of, in_step, opened
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker

# -- clients that vanish -------------------------------------------------------------------------------------

LONG = message(PUBLISH, b"x" * 9000)
METHOD, HEADER, FIRST, *REST = frames_of(LONG)

#: What was said last.
CUTS = {
    "between messages": b"",
    "within a method": METHOD[:-3],
    "after the method": METHOD,
    "within the header": METHOD + HEADER[:9],
    "after the header": METHOD + HEADER,
    "within a body frame": METHOD + HEADER + FIRST[:1000],
    "between body frames": METHOD + HEADER + FIRST,
    "before the last octet": LONG[:-1],
}


@pytest.mark.parametrize("leave", [Talker.close, Talker.reset])
@pytest.mark.parametrize("cut", CUTS)
def test_nothing_is_left_of_one_that_vanishes(
    place: Place, cut: str, leave: Callable[[Talker], None]
) -> None:
    bystander, witness, client = place.bystander(), place.witness(), place.client()
    links = place.connections()
    client.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 1)
    for _ in range(3):
        client.raw(LONG)
    client.ask(TAG, amqp.BasicConsumeOk, 1)
    for _ in range(3):
        client.expect_content(amqp.BasicDeliver)
    client.raw(LONG + CUTS[cut])
    client.expect_content(amqp.BasicDeliver)
    leave(client)
    for _ in range(3):
        bystander.lives()

    def given_back() -> bool:
        now = count(witness, "there")
        return (now.message_count, now.consumer_count) == (4, 0)

    eventually(given_back)
    bystander.lives()
    # Whoever gets the next channel of the link is not in the middle of anything.
    after = [place.client(channels=2) for _ in range(3)]
    for number, each in enumerate(after):
        for channel in (1, 2):
            each.publish(b"%d" % number, "nowhere", channel=channel, mandatory=True)
            assert each.expect_content(amqp.BasicReturn, channel).body == b"%d" % number
            in_step(each, channel)
    if place.way.is_pooled:
        assert set(links) <= set(place.connections())
    bystander.leave()


def test_many_vanish_in_the_middle_of_messages(place: Place) -> None:
    bystander, witness = place.bystander(), place.witness()
    witness.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 1)
    before = channels_of(place)
    for number in range(60):
        client = place.client(channels=2)
        client.raw(LONG + LONG[: number * len(LONG) // 60])
        (client.close if number % 2 else client.reset)()
        bystander.lives()
    # A client may have gone before its first message was read; none of a second one is there.
    eventually(lambda: channels_of(place) <= before + 32)
    assert witness.ask(amqp.QueuePurge(queue="there"), amqp.QueuePurgeOk, 1).message_count <= 60
    bystander.leave()


def channels_of(place: Place) -> int:
    """How many channels the broker has in this vhost."""
    counts = (
        "[Count || [{channels, Count}, {vhost, Vhost}] <-"
        " rabbit_networking:connection_info_all([channels, vhost]),"
        f' Vhost =:= <<"{place.vhost}">>]'
    )
    return int(place.rabbitmq.eval(f"lists:sum({counts})."))


# -- links that go -------------------------------------------------------------------------------------------

REASON = "maintenance tonight"


def closes_with_reason(place: Place, client: Talker, channels: int) -> None:
    """Directly the connection ends; on a shared link each channel does, and the connection goes on."""
    if not place.way.is_pooled:
        close = end_of(client)
        assert close.reply_code == 320
        assert close.reply_text == f"CONNECTION_FORCED - {REASON}"
        return
    closed = set()
    for _ in range(channels):
        channel, method = client.hear()
        assert isinstance(method, amqp.ChannelClose)
        assert method.reply_code == 320
        assert REASON in method.reply_text
        closed.add(channel)
        client.say(amqp.ChannelCloseOk(), channel)
    assert closed == set(range(1, channels + 1))
    for channel in closed:
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
        in_step(client, channel)
    client.bye()


def test_a_link_that_is_closed_takes_its_own_clients_only(place: Place) -> None:
    """As `rabbitmqctl close_connection` does it."""
    elsewhere = Place(place.way, f"{place.vhost}-2")
    place.rabbitmq.fresh_vhost(elsewhere.vhost)
    try:
        clients = [place.client(channels=number) for number in (1, 2, 3)]
        idle, bystander = place.client(channels=0), elsewhere.bystander()
        place.together(4)
        clients[0].ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
        clients[0].ask(amqp.BasicQos(prefetch_count=5), amqp.BasicQosOk, 1)
        clients[0].ask(amqp.BasicConsume(queue="q"), amqp.BasicConsumeOk, 1)
        place.rabbitmq.close_connections(REASON, vhost=place.vhost)
        for client, channels in zip(clients, (1, 2, 3), strict=True):
            closes_with_reason(place, client, channels)
        if place.way.is_pooled:
            idle.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
            in_step(idle)
        bystander.lives()
        bystander.leave()
    finally:
        for each in elsewhere.clients:
            each.close()
        place.rabbitmq.eval(f'rabbit_vhost:delete(<<"{elsewhere.vhost}">>, <<"guest">>).')


def test_a_link_that_dies_in_the_middle_of_publishing(place: Place) -> None:
    """Nothing that was confirmed is lost, nothing is there twice, and everybody is told."""
    witness = place.witness()
    witness.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    others = place.connections()
    clients = [place.client() for _ in range(4)]
    links = set(place.connections()) - set(others)
    confirmed: list[set[bytes]] = [set() for _ in clients]
    ends: list[Method | str] = [""] * len(clients)

    def work(number: int) -> None:
        client = clients[number]
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        sent = 0
        while True:
            sent += 1
            body = b"%d:%d" % (number, sent)
            try:
                client.publish(body, "q")
                _, method = client.hear()
            except (Gone, OSError) as error:
                ends[number] = str(error)
                return
            if not isinstance(method, amqp.BasicAck):
                ends[number] = method
                return
            confirmed[number].add(body)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: all(len(each) > 20 for each in confirmed))
    place.close(links, REASON)
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    for end in ends:
        assert isinstance(end, amqp.ChannelClose if place.way.is_pooled else amqp.ConnectionClose)
        assert (end.reply_code, REASON in end.reply_text) == (320, True)
    found = []
    while count(witness, "q").message_count:
        witness.say(amqp.BasicGet(queue="q", no_ack=True), 1)
        found.append(witness.expect_content(amqp.BasicGetOk).body)
    assert len(found) == len(set(found))
    everything = set().union(*confirmed)
    assert everything <= set(found)
    # At most one of each was under way.
    assert len(found) <= len(everything) + len(clients)


def test_sessions_of_one_pool_on_two_links(rabbitmq: RabbitMQ) -> None:
    """The death of one link is not heard on the other, though all have the same credentials."""
    vhost = "two-links"
    rabbitmq.fresh_vhost(vhost)
    with opened("pooled", rabbitmq, channelsPerLink=4, spareChannels=1) as way:
        place = Place(way, vhost)
        clients = [place.client(channels=2) for _ in range(6)]
        links = place.connections()
        assert len(links) > 1
        place.close(links[:1], REASON)
        eventually(lambda: links[0] not in place.connections())
        told = 0
        for client in clients:
            passive = amqp.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True)
            client.say(passive, 1)
            _, method = client.hear()
            if isinstance(method, amqp.ExchangeDeclareOk):
                in_step(client, 2)
            else:
                other = client.hear()[1]
                for close in (method, other):
                    assert isinstance(close, amqp.ChannelClose)
                    assert (close.reply_code, REASON in close.reply_text) == (320, True)
                told += 1
        assert 0 < told < len(clients)
        for client in clients:
            client.close()
