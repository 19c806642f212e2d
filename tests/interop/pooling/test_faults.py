"""What one client does wrong, or how it goes, hurts nobody else on the link."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from amqpgate.protocol.frames import FRAME_HEADER, content_frames, encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.interop.pooling.conftest import Same
from tests.interop.pooling.ways import (
    Bystander,
    Place,
    count,
    end_of,
    frames_of,
    in_step,
    opened,
    refused,
)
from tests.interop.test_gateway_violations import DIFFERENCES, LUCK, name_of, play
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker
from tests.unit.protocol.measured import CASES

# -- errors of a channel -------------------------------------------------------------------------------------

CHANNEL_ERRORS: dict[str, tuple[int, Method]] = {
    "passive declare of nothing": (404, amqp.QueueDeclare(queue="nothing", passive=True)),
    "consume of nothing": (404, amqp.BasicConsume(queue="nothing")),
    "get of nothing": (404, amqp.BasicGet(queue="nothing")),
    "no exchange": (404, amqp.BasicPublish(exchange="nothing", routing_key="k")),
    "another durability": (406, amqp.QueueDeclare(queue="there", durable=True)),
    "unknown delivery tag": (406, amqp.BasicAck(77)),
    "no transaction": (406, amqp.TxCommit()),
    "reserved name": (403, amqp.ExchangeDeclare(exchange="amq.mine", type="direct")),
    "default exchange": (403, amqp.ExchangeDelete(exchange="amq.direct")),
}


@pytest.mark.parametrize("what", CHANNEL_ERRORS)
def test_an_error_closes_one_channel(place: Place, same: Same, what: str) -> None:
    code, method = CHANNEL_ERRORS[what]
    client, bystander = place.client(channels=2), place.bystander()
    place.together(2)
    client.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 2)
    closes = []
    for _ in range(3):
        # Without a prefetch count a consumer does not stay on the link.
        client.ask(amqp.BasicQos(prefetch_count=5), amqp.BasicQosOk, 1)
        closes.append(refused(client, method, content=b"x" if method.CONTENT else None))
        in_step(client, 1)
        in_step(client, 2)
        bystander.lives()
    assert [close.reply_code for close in closes] == [code] * 3
    same(closes)
    place.together(2)
    client.bye()
    bystander.leave()


def test_an_error_in_the_middle_of_work(place: Place) -> None:
    """Messages that were not acknowledged return, and what was behind the error is not done."""
    client, bystander, witness = place.client(channels=2), place.bystander(), place.witness()
    client.ask(amqp.QueueDeclare(queue="work"), amqp.QueueDeclareOk, 1)
    for number in range(5):
        client.publish(b"%d" % number, "work")
    eventually(lambda: place.ready(witness, "work") == 5)
    client.ask(amqp.BasicConsume(queue="work", consumer_tag="w"), amqp.BasicConsumeOk, 1)
    for _ in range(5):
        client.expect_content(amqp.BasicDeliver)
    client.octets(
        method_frame(1, amqp.BasicAck(1))
        + method_frame(1, amqp.QueueDeclare(queue="nothing", passive=True))
        + content_frames(1, amqp.BasicPublish(routing_key="work"), amqp.BasicProperties(), b"late", 4096)
    )
    assert client.expect(amqp.ChannelClose, 1).reply_code == 404
    client.say(amqp.ChannelCloseOk(), 1)
    in_step(client, 2)
    # None is delivered to the channel that comes next, nor to anybody.
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    in_step(client, 1)
    eventually(lambda: place.ready(witness, "work") == 4)
    assert count(witness, "work").consumer_count == 0
    bystander.leave()


# -- errors of a connection ----------------------------------------------------------------------------------

TAG = amqp.BasicConsume(queue="there", consumer_tag="t")
PUBLISH = amqp.BasicPublish(routing_key="there")


def message(method: Method, body: bytes = b"x", properties: amqp.BasicProperties | None = None) -> bytes:
    return content_frames(1, method, properties or amqp.BasicProperties(), body, 4096)


def m(method: Method, channel: int = 1) -> bytes:
    return method_frame(channel, method)


CONNECTION_ERRORS: dict[str, tuple[int, bytes]] = {
    "consumer tag used twice": (530, m(TAG)),
    "immediate": (540, message(amqp.BasicPublish(routing_key="there", immediate=True))),
    "prefetch size": (540, m(amqp.BasicQos(prefetch_size=9))),
    "unknown type of exchange": (503, m(amqp.ExchangeDeclare(exchange="x", type="nonsense"))),
    "second open": (504, m(amqp.ChannelOpen())),
    "channel that is not open": (504, m(amqp.BasicQos(), 5)),
    "an answer": (503, m(amqp.QueueDeclareOk(queue="q"))),
    "open again": (504, m(amqp.ConnectionOpen(virtual_host="/"), 0)),
    "a header without method": (505, message(PUBLISH)[len(m(PUBLISH)) :]),
    "a method within a message": (505, m(PUBLISH) + m(amqp.BasicQos())),
    "a message within a message": (505, b"".join(frames_of(message(PUBLISH, b"x" * 9000))[:3]) + m(PUBLISH)),
    "bad end of a frame": (501, m(amqp.BasicQos())[:-1] + b"\x01"),
    "bad end of a body": (501, message(PUBLISH)[:-1] + b"\x01"),
}


@pytest.mark.parametrize("what", CONNECTION_ERRORS)
def test_an_error_ends_one_connection(place: Place, same: Same, what: str) -> None:
    code, octets = CONNECTION_ERRORS[what]
    bystander, other, client = place.bystander(), place.client(), place.client()
    place.together(3)
    links = place.connections()
    client.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 1)
    client.ask(TAG, amqp.BasicConsumeOk, 1)
    client.octets(octets)
    close = end_of(client)
    assert close.reply_code == code, close
    if what not in NOT_THE_SAME:
        same(close)
    bystander.lives()
    in_step(other)
    # What the client had is given back, and the link is the one that it was.
    eventually(lambda: count(other, "there").consumer_count == 0)
    if place.way.is_pooled:
        assert links[0] in place.connections()
    bystander.leave()
    in_step(other)


#: Where the gateway has words of its own (see tests.interop.test_gateway_violations).
NOT_THE_SAME: set[str] = set()


def header(flags: int, properties: bytes, size: int = 1) -> bytes:
    payload = struct.pack(">HHQH", 60, 0, size, flags) + properties
    return m(PUBLISH) + encode_frame(FRAME_HEADER, 1, payload) + b"\x03\0\1\0\0\0\1x\xce"


def table(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


#: A property list that cannot be read: RabbitMQ's reader, or its queue, dies of them.
MALFORMED: dict[str, bytes] = {
    "a text longer than all": header(0x8000, b"\xffab"),
    "no text": header(0x8000, b""),
    "octets behind the properties": header(0x8000, b"\x01a" + b"trailing"),
    "a table longer than all": header(0x2000, b"\0\0\xff\xffxx"),
    "a field without a type": header(0x2000, table(b"\x01a")),
    "an unknown type": header(0x2000, table(b"\x01a?1234")),
    "a field longer than its table": header(0x2000, table(b"\x01aS\0\0\0\x09x")),
    "an array longer than its table": header(0x2000, table(b"\x01aA\0\0\0\x09x")),
    "a name longer than its table": header(0x2000, table(b"\x40a")),
    "a timestamp too short": header(0x0040, b"\0\0\0"),
    "another page of flags": header(0x0001, b"\0\0"),
    "half a header": m(PUBLISH) + encode_frame(FRAME_HEADER, 1, b"\0\x3c\0\0\0\0"),
    "another class": m(PUBLISH) + encode_frame(FRAME_HEADER, 1, struct.pack(">HHQH", 50, 0, 1, 0)),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_content_header(place: Place, what: str) -> None:
    """Its sender is cut off (RabbitMQ: mostly with a bare 541), and nobody else is."""
    bystander, other, client = place.bystander(), place.client(), place.client()
    place.together(3)
    links = place.connections()
    client.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 1)
    bystander.lives()
    # A good message is before it and one behind it, and another client's frames are between.
    client.octets(message(PUBLISH) + MALFORMED[what] + message(PUBLISH))
    assert client.expect(amqp.ConnectionClose).reply_code in (501, 502, 505, 541)
    client.say(amqp.ConnectionCloseOk())
    bystander.lives()
    in_step(other)
    eventually(lambda: count(other, "there").message_count >= 1)
    if place.way.is_pooled:
        assert links[0] in place.connections()
    bystander.leave()
    in_step(other)


@pytest.fixture(scope="module")
def pooled_violations(rabbitmq: RabbitMQ) -> dict[str, tuple[list[str], list[str]]]:
    """What each measured violation is answered directly and on a shared link, all at once."""
    cases = [case for case in CASES if case.stage in ("open", "channel") and name_of(case) not in LUCK]
    with opened("pooled", rabbitmq) as way:
        bystander = Bystander(Place(way, "/"), "bystander-of-violations")
        with ThreadPoolExecutor(2 * len(cases)) as threads:
            direct = {name_of(case): threads.submit(play, case, rabbitmq.port) for case in cases}
            shared = {name_of(case): threads.submit(play, case, way.port) for case in cases}
            while any(not future.done() for future in shared.values()):
                bystander.lives()
        bystander.leave()
        bystander.client.close()
        return {name: (direct[name].result(), shared[name].result()) for name in direct}


@pytest.mark.parametrize(
    "name",
    [name_of(case) for case in CASES if case.stage in ("open", "channel") and name_of(case) not in LUCK],
)
def test_violations_are_answered_as_directly(
    pooled_violations: dict[str, tuple[list[str], list[str]]], name: str
) -> None:
    direct, shared = pooled_violations[name]
    if name in DIFFERENCES:
        assert shared != direct, "not a difference any more"
    else:
        assert shared == direct


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
        client.octets(LONG)
    client.ask(TAG, amqp.BasicConsumeOk, 1)
    for _ in range(3):
        client.expect_content(amqp.BasicDeliver)
    client.octets(LONG + CUTS[cut])
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
        client.octets(LONG + LONG[: number * len(LONG) // 60])
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
