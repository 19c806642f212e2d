"""Large messages, slow readers and a broker that blocks: nobody waits for somebody else."""

from __future__ import annotations

import hashlib
import random
import threading

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.pooling.ways import Place, frames_of, in_step, opened
from tests.interop.test_gateway_pressure import all_confirmed
from tests.support.frames import content_frames
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

BODY = 64 * 1024
#: A client that understands all that may be said on a shared connection, but for connection.blocked.
SILENT = Table.of({"product": "talker", "capabilities": {"basic.nack": True, "consumer_cancel_notify": True}})

# -- clients that do not read --------------------------------------------------------------------------------


def fill(place: Place, queue: str, messages: int) -> None:
    """Messages that begin with their number."""
    witness = place.witness()
    witness.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    for number in range(messages):
        witness.publish(number.to_bytes(4, "big") + bytes(BODY - 4), queue)
    eventually(lambda: place.ready(witness, queue) == messages)


#: Acknowledgements, and prefetch (0: no limit).
MODES = {"prefetch": (True, 10), "acks without prefetch": (True, 0), "no acks": (False, 0)}


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_consumer_gets_everything(place: Place, mode: str) -> None:
    """Later. No more waits for it here than a pooled session may have waiting."""
    slow_consumer(place, mode, 80)


def test_a_slow_consumer_with_a_prefetch_has_no_end(place: Place) -> None:
    slow_consumer(place, "prefetch", 500)


@pytest.mark.parametrize("mode", ["acks without prefetch", "no acks"])
def test_a_slow_consumer_without_bounds(place: Place, mode: str) -> None:
    """Everything in order, or on a shared link as much as fits, and then a word why."""
    slow_consumer(place, mode, 500, may_end=place.way.is_pooled)


def slow_consumer(place: Place, mode: str, messages: int, *, may_end: bool = False) -> None:
    acks, prefetch = MODES[mode]
    fill(place, "full", messages)
    slow, bystander, other = place.client(), place.bystander(), place.client()
    slow.ask(amqp.BasicQos(prefetch_count=prefetch), amqp.BasicQosOk, 1)
    slow.ask(amqp.BasicConsume(queue="full", no_ack=not acks), amqp.BasicConsumeOk, 1)
    # The others go on, with more than any buffer between holds.
    other.ask(amqp.QueueDeclare(queue="own"), amqp.QueueDeclareOk, 1)
    other.ask(amqp.BasicConsume(queue="own", no_ack=True), amqp.BasicConsumeOk, 1)
    for number in range(200):
        body = number.to_bytes(4, "big") * 25_000
        other.publish(body, "own")
        assert other.expect_content(amqp.BasicDeliver).body == body
        bystander.lives()
    got = 0
    while got < messages:
        channel, method = slow.hear()
        if may_end and isinstance(method, (amqp.ConnectionClose, amqp.ChannelClose)):
            print(f"{got} messages, then {method}")
            assert method.reply_text
            break
        assert isinstance(method, amqp.BasicDeliver)
        assert slow.content_of(method).body[:4] == got.to_bytes(4, "big")
        assert method.delivery_tag == got + 1
        got += 1
        if acks:
            slow.say(amqp.BasicAck(method.delivery_tag), channel)
    bystander.leave()


def test_a_publisher_that_does_not_read_its_confirms(place: Place) -> None:
    slow, bystander = place.client(read_buffer=1 << 16), place.bystander()
    slow.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    messages = 20_000
    message = content_frames(1, amqp.BasicPublish(), amqp.BasicProperties(), b"x" * 100, 4096)
    for _ in range(messages // 100):
        slow.raw(message * 100)
        bystander.lives()
    all_confirmed(slow, messages)
    bystander.leave()


# -- large messages ------------------------------------------------------------------------------------------

#: One frame too many for a link's buffer, and much more than that.
SIZES = [131_064, 131_065, (1 << 20) - 1, (1 << 20) + 1, 3 << 20, 20 << 20]


@pytest.mark.parametrize("size", SIZES)
def test_a_large_message(place: Place, size: int) -> None:
    """There and back, while another client works; a small one is before it and one behind it."""
    client, bystander = place.client(), place.bystander()
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    bodies = [b"before", random.Random(size).randbytes(size), b"behind"]

    def publish() -> None:
        for body in bodies:
            client.publish(body, "q")

    sender = threading.Thread(target=publish)
    sender.start()
    while sender.is_alive():
        bystander.lives()
    sender.join()
    all_confirmed(client, 3)
    client.ask(amqp.BasicConsume(queue="q"), amqp.BasicConsumeOk, 1)
    for number, body in enumerate(bodies, 1):
        message = client.expect_content(amqp.BasicDeliver)
        assert len(message.body) == len(body)
        assert hashlib.sha256(message.body).digest() == hashlib.sha256(body).digest()
        assert isinstance(message.method, amqp.BasicDeliver)
        assert message.method.delivery_tag == number
    client.say(amqp.BasicAck(3, multiple=True), 1)
    in_step(client)
    bystander.leave()


def test_a_large_message_in_the_middle_of_work(place: Place) -> None:
    """Its sender holds a delivery, and its other channel is in the middle of a message, too."""
    client, bystander = place.client(channels=2), place.bystander()
    for queue in ("work", "large"):
        client.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
    client.ask(amqp.BasicConsume(queue="work"), amqp.BasicConsumeOk, 1)
    client.publish(b"held", "work")
    client.expect_content(amqp.BasicDeliver)
    large = random.Random(7).randbytes(3 << 20)
    publish = amqp.BasicPublish(routing_key="large")
    other = frames_of(content_frames(2, publish, amqp.BasicProperties(), b"y" * 300_000, 131072))
    client.raw(b"".join(other[:3]))
    bystander.lives()
    client.publish(large, "large")
    client.raw(b"".join(other[3:]))
    bystander.lives()
    client.say(amqp.BasicAck(1), 1)
    client.ask(amqp.BasicConsume(queue="large", no_ack=True), amqp.BasicConsumeOk, 2)
    got = {hashlib.sha256(client.expect_content(amqp.BasicDeliver, 2).body).digest() for _ in range(2)}
    assert got == {hashlib.sha256(body).digest() for body in (large, b"y" * 300_000)}
    in_step(client, 1)
    bystander.leave()


# -- a broker that blocks ------------------------------------------------------------------------------------


def notices(client: Talker, *, until_confirmed: int) -> list[str]:
    """The notices that a client hears until its message is confirmed."""
    heard = []
    while True:
        channel, method = client.hear()
        if isinstance(method, amqp.BasicAck):
            assert (channel, method.delivery_tag) == (1, until_confirmed)
            return heard
        assert channel == 0, f"{method} on {channel}"
        assert isinstance(method, (amqp.ConnectionBlocked, amqp.ConnectionUnblocked))
        heard.append(str(method))


def test_publishers_are_told_that_they_are_blocked(place: Place) -> None:
    told, other, mute = place.client(), place.client(), place.client(properties=SILENT)
    publishers = (told, other, mute)
    for client in publishers:
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        client.publish(b"first", "nowhere")
        client.expect(amqp.BasicAck, 1)
    place.together(3)
    with place.rabbitmq.memory_alarm():
        for client in publishers:
            client.publish(b"second", "nowhere")
        for client in (told, other):
            assert client.expect(amqp.ConnectionBlocked).reason == "low on memory"
    for client in (told, other):
        assert notices(client, until_confirmed=2) == [str(amqp.ConnectionUnblocked())]
        in_step(client)
    assert mute.expect(amqp.BasicAck, 1).delivery_tag == 2
    in_step(mute)
    # A client that comes afterwards hears nothing of it.
    place.bystander().leave()


def test_a_client_that_comes_while_publishers_are_blocked(place: Place) -> None:
    early = place.client()
    early.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    with place.rabbitmq.memory_alarm():
        early.publish(b"first", "nowhere")
        early.expect(amqp.ConnectionBlocked)
        late = place.client()
        late.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        late.publish(b"first", "nowhere")
        late.expect(amqp.ConnectionBlocked)
    for client in (early, late):
        assert notices(client, until_confirmed=1) == [str(amqp.ConnectionUnblocked())]


def test_consumers_go_on_while_publishers_are_blocked(place: Place) -> None:
    consumer, publisher, witness = place.client(), place.client(), place.witness()
    consumer.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    for number in range(5):
        witness.publish(b"%d" % number, "q")
    eventually(lambda: place.ready(witness, "q") == 5)
    consumer.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
    publisher.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    with place.rabbitmq.memory_alarm():
        publisher.publish(b"x", "nowhere")
        publisher.expect(amqp.ConnectionBlocked)
        consumer.say(amqp.BasicConsume(queue="q"), 1)
        if not place.way.is_pooled:
            consume_all(consumer)
    # RabbitMQ reads nothing of a link that it blocks, so who shares it with a publisher waits, too.
    if place.way.is_pooled:
        consume_all(consumer)
    notices(publisher, until_confirmed=1)


def test_consumers_of_their_own_go_on_while_publishers_are_blocked(rabbitmq: RabbitMQ) -> None:
    vhost = "consumers-apart"
    rabbitmq.fresh_vhost(vhost)
    with opened("pooled", rabbitmq, consumers="own") as way:
        place = Place(way, vhost)
        try:
            consumer, publisher = place.client(), place.client()
            place.together(2)
            consumer.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
            for number in range(5):
                consumer.publish(b"%d" % number, "q")
            consumer.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 1)
            publisher.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
            consumer.say(amqp.BasicConsume(queue="q"), 1)
            consumer.expect(amqp.BasicConsumeOk, 1)
            with rabbitmq.memory_alarm():
                publisher.publish(b"x", "nowhere")
                publisher.expect(amqp.ConnectionBlocked)
                for number in range(5):
                    assert consumer.expect_content(amqp.BasicDeliver).body == b"%d" % number
                    consumer.say(amqp.BasicAck(number + 1), 1)
            notices(publisher, until_confirmed=1)
        finally:
            for client in place.clients:
                client.close()
            rabbitmq.eval(f'rabbit_vhost:delete(<<"{vhost}">>, <<"guest">>).')


def consume_all(consumer: Talker) -> None:
    consumer.expect(amqp.BasicConsumeOk, 1)
    for number in range(5):
        message = consumer.expect_content(amqp.BasicDeliver)
        assert message.body == b"%d" % number
        consumer.say(amqp.BasicAck(number + 1), 1)
    in_step(consumer)
