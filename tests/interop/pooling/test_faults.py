"""What one client does wrong hurts nobody else on the link."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from amqpgate.protocol.frames import FRAME_HEADER, encode_frame, method_frame
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
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.unit.protocol.measured import CASES, unquoted

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
    # A queue that nobody has declared may be a stream: who gets from it is alone.
    if not isinstance(method, amqp.BasicGet):
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
    client.raw(
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
    "channel.flow off": (540, m(amqp.ChannelFlow(active=False))),
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
    code, data = CONNECTION_ERRORS[what]
    bystander, other, client = place.bystander(), place.client(), place.client()
    place.together(3)
    links = place.connections()
    client.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 1)
    client.ask(TAG, amqp.BasicConsumeOk, 1)
    client.raw(data)
    close = end_of(client)
    assert close.reply_code == code, close
    same(unquoted([str(close)]))
    bystander.lives()
    in_step(other)
    # What the client had is given back, and the link is the one that it was.
    eventually(lambda: count(other, "there").consumer_count == 0)
    if place.way.is_pooled:
        assert links[0] in place.connections()
    bystander.leave()
    in_step(other)


def header(flags: int, properties: bytes, size: int = 1) -> bytes:
    payload = struct.pack(">HHQH", 60, 0, size, flags) + properties
    return m(PUBLISH) + encode_frame(FRAME_HEADER, 1, payload) + b"\x03\0\1\0\0\0\1x\xce"


def table(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


#: A property list that cannot be read: RabbitMQ's reader, or its queue, dies of them.
MALFORMED: dict[str, bytes] = {
    "a text longer than all": header(0x8000, b"\xffab"),
    "no text": header(0x8000, b""),
    "bytes behind the properties": header(0x8000, b"\x01a" + b"trailing"),
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
    client.raw(message(PUBLISH) + MALFORMED[what] + message(PUBLISH))
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
        assert unquoted(shared) == unquoted(direct)
