"""What belongs to a connection or a channel stays there, whoever else is on the link."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.interop.pooling.conftest import Same
from tests.interop.pooling.ways import Place, count, in_step, refused
from tests.interop.test_gateway_pressure import all_confirmed
from tests.support.inprocess import eventually
from tests.support.talker import Talker

# -- exclusive queues ----------------------------------------------------------------------------------------

#: What nobody but its owner may do with the exclusive queue `mine`.
FORBIDDEN: tuple[Method, ...] = (
    amqp.QueueDeclare(queue="mine", passive=True),
    amqp.QueueDeclare(queue="mine"),
    amqp.QueueDeclare(queue="mine", exclusive=True),
    amqp.QueueBind(queue="mine", exchange="amq.direct", routing_key="k"),
    amqp.BasicConsume(queue="mine"),
    amqp.BasicGet(queue="mine"),
    amqp.QueuePurge(queue="mine"),
    amqp.QueueDelete(queue="mine"),
)


def test_an_exclusive_queue_is_locked_for_the_others(place: Place, same: Same) -> None:
    owner, other, bystander = place.client(), place.client(), place.bystander()
    place.together(3)
    owner.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
    told = [refused(other, method) for method in FORBIDDEN]
    assert [close.reply_code for close in told] == [405] * len(FORBIDDEN)
    same(told)
    # Publishing to it is everybody's right.
    other.publish(b"for you", "mine", mandatory=True)
    in_step(other)
    eventually(lambda: count(owner, "mine").message_count == 1)
    owner.say(amqp.BasicGet(queue="mine", no_ack=True), 1)
    assert owner.expect_content(amqp.BasicGetOk).body == b"for you"
    bystander.leave()


@pytest.mark.parametrize("leave", [Talker.bye, Talker.close, Talker.reset])
def test_an_exclusive_queue_goes_with_its_owner(place: Place, leave: Callable[[Talker], None]) -> None:
    owner, other = place.client(channels=2), place.client()
    owner.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
    # The queue is the connection's, not the channel's.
    owner.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 1)
    asked = amqp.QueueDeclare(queue="mine", passive=True)
    owner.ask(asked, amqp.QueueDeclareOk, 2)
    assert refused(other, asked).reply_code == 405
    leave(owner)
    eventually(lambda: refused(other, asked).reply_code == 404)
    other.ask(amqp.QueueDeclare(queue="mine"), amqp.QueueDeclareOk, 1)


def test_exclusive_queues_that_the_broker_names(place: Place) -> None:
    clients = [place.client() for _ in range(3)]
    names = [
        client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue for client in clients
    ]
    assert len(set(names)) == 3
    for client, name in zip(clients, names, strict=True):
        client.ask(amqp.BasicConsume(queue="", no_ack=True), amqp.BasicConsumeOk, 1)
        clients[0].publish(name.encode(), name)
    for client, name in zip(clients, names, strict=True):
        assert client.expect_content(amqp.BasicDeliver).body == name.encode()


def test_an_exclusive_queue_in_the_middle_of_work(place: Place) -> None:
    """Its owner has a consumer, messages that it has not acknowledged, and confirms are numbered."""
    owner, other, bystander = place.client(), place.client(), place.bystander()
    owner.ask(amqp.QueueDeclare(queue="work"), amqp.QueueDeclareOk, 1)
    owner.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    for number in range(3):
        owner.publish(b"%d" % number, "work")
    all_confirmed(owner, 3)
    owner.ask(amqp.BasicQos(prefetch_count=2), amqp.BasicQosOk, 1)
    owner.ask(amqp.BasicConsume(queue="work", consumer_tag="w"), amqp.BasicConsumeOk, 1)
    for number in range(2):
        assert owner.expect_content(amqp.BasicDeliver).body == b"%d" % number
    owner.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
    assert refused(other, amqp.BasicConsume(queue="mine")).reply_code == 405
    owner.say(amqp.BasicAck(2, multiple=True), 1)
    third = owner.expect_content(amqp.BasicDeliver)
    assert isinstance(third.method, amqp.BasicDeliver)
    assert (third.body, third.method.delivery_tag, third.method.redelivered) == (b"2", 3, False)
    owner.publish(b"fourth", "mine")
    assert owner.expect(amqp.BasicAck, 1).delivery_tag == 4
    bystander.leave()


# -- consumers -----------------------------------------------------------------------------------------------


def test_the_same_consumer_tag_at_each_client(place: Place) -> None:
    clients = [place.client() for _ in range(3)]
    place.together(3)
    for number, client in enumerate(clients):
        client.ask(amqp.QueueDeclare(queue=f"q{number}"), amqp.QueueDeclareOk, 1)
        client.ask(amqp.BasicConsume(queue=f"q{number}", consumer_tag="t"), amqp.BasicConsumeOk, 1)
    clients[0].ask(amqp.BasicCancel("t"), amqp.BasicCancelOk, 1)
    for number in range(3):
        clients[0].publish(b"%d" % number, f"q{number}")
    for number, client in enumerate(clients[1:], 1):
        message = client.expect_content(amqp.BasicDeliver)
        assert isinstance(message.method, amqp.BasicDeliver)
        assert (message.body, message.method.consumer_tag) == (b"%d" % number, "t")
        client.say(amqp.BasicAck(1), 1)
        in_step(client)
    eventually(lambda: count(clients[0], "q0").message_count == 1)


def test_tags_that_the_broker_names_differ(place: Place) -> None:
    clients = [place.client() for _ in range(3)]
    place.together(3)
    tags = set()
    for client in clients:
        client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
        tags.add(client.ask(amqp.BasicConsume(queue="q"), amqp.BasicConsumeOk, 1).consumer_tag)
    assert len(tags) == 3


def test_an_exclusive_consumer(place: Place, same: Same) -> None:
    one, other = place.client(), place.client()
    one.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    one.ask(amqp.BasicConsume(queue="q", consumer_tag="t", exclusive=True), amqp.BasicConsumeOk, 1)
    close = refused(other, amqp.BasicConsume(queue="q", consumer_tag="t"))
    assert close.reply_code == 403
    same(close)
    in_step(one)
    one.close()
    eventually(lambda: count(other, "q").consumer_count == 0)
    other.ask(amqp.BasicConsume(queue="q", consumer_tag="t"), amqp.BasicConsumeOk, 1)


def test_a_consumer_is_told_that_its_queue_is_gone(place: Place) -> None:
    one, other = place.client(), place.client()
    place.together(2)
    for client, queue in ((one, "q"), (other, "kept")):
        client.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
        client.ask(amqp.BasicConsume(queue=queue, consumer_tag="t"), amqp.BasicConsumeOk, 1)
    other.ask(amqp.QueueDelete(queue="q"), amqp.QueueDeleteOk, 1)
    assert one.expect(amqp.BasicCancel, 1).consumer_tag == "t"
    in_step(one)
    in_step(other)


def test_messages_that_cannot_be_routed_return_to_their_sender(place: Place) -> None:
    clients = [place.client() for _ in range(3)]
    place.together(3)
    for number, client in enumerate(clients):
        client.publish(b"%d" % number * 100, "nowhere", mandatory=True)
    for number, client in enumerate(clients):
        message = client.expect_content(amqp.BasicReturn)
        assert message.body == b"%d" % number * 100
        in_step(client)


# -- direct reply-to -----------------------------------------------------------------------------------------

REPLY_TO = "amq.rabbitmq.reply-to"


def test_direct_replies(place: Place) -> None:
    server, bystander = place.client(), place.bystander()
    askers = [place.client() for _ in range(3)]
    server.ask(amqp.QueueDeclare(queue="rpc"), amqp.QueueDeclareOk, 1)
    server.ask(amqp.BasicConsume(queue="rpc", no_ack=True), amqp.BasicConsumeOk, 1)
    for asker in askers:
        asker.ask(amqp.BasicConsume(queue=REPLY_TO, no_ack=True), amqp.BasicConsumeOk, 1)
    for number, asker in enumerate(askers):
        properties = amqp.BasicProperties(reply_to=REPLY_TO, correlation_id=f"c{number}")
        asker.publish(b"%d" % number, "rpc", properties=properties)
    for _ in askers:
        request = server.expect_content(amqp.BasicDeliver)
        asked = request.header.properties
        assert isinstance(asked, amqp.BasicProperties)
        assert asked.reply_to is not None
        assert asked.reply_to.startswith(REPLY_TO + ".")
        answer = amqp.BasicProperties(correlation_id=asked.correlation_id)
        server.publish(b"answer " + request.body, asked.reply_to, properties=answer)
    for number, asker in enumerate(askers):
        reply = asker.expect_content(amqp.BasicDeliver)
        assert reply.body == b"answer %d" % number
        assert isinstance(reply.header.properties, amqp.BasicProperties)
        assert reply.header.properties.correlation_id == f"c{number}"
        in_step(asker)
    in_step(server)
    bystander.leave()


def test_what_direct_replies_refuse(place: Place, same: Same) -> None:
    client, bystander = place.client(), place.bystander()
    told = [refused(client, amqp.BasicConsume(queue=REPLY_TO))]
    asked = amqp.BasicPublish(routing_key="rpc")
    client.content(asked, b"", properties=amqp.BasicProperties(reply_to=REPLY_TO))
    told.append(client.expect(amqp.ChannelClose, 1))
    client.say(amqp.ChannelCloseOk(), 1)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
    client.ask(amqp.BasicConsume(queue=REPLY_TO, no_ack=True), amqp.BasicConsumeOk, 1)
    told.append(refused(client, amqp.BasicConsume(queue=REPLY_TO, no_ack=True)))
    assert [close.reply_code for close in told] == [406] * 3
    same(told)
    bystander.leave()


# -- the connection ------------------------------------------------------------------------------------------


def test_update_secret(place: Place) -> None:
    client, other, bystander = place.client(), place.client(), place.bystander()
    client.ask(amqp.ConnectionUpdateSecret(b"guest", "expired"), amqp.ConnectionUpdateSecretOk)
    for each in (client, other):
        each.publish(b"goes on", "nowhere", mandatory=True)
        assert each.expect_content(amqp.BasicReturn).body == b"goes on"
        in_step(each)
    bystander.leave()


def test_a_client_without_channels(place: Place) -> None:
    """Opens and closes, as checks of health do."""
    bystander = place.bystander()
    for _ in range(20):
        client = place.client(channels=0)
        client.bye()
    bystander.leave()
