"""What a client does on a channel stays on that channel, and ends with it."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.interop.pooling.conftest import Same
from tests.interop.pooling.ways import Place, count, end_of, in_step, refused
from tests.support.inprocess import eventually
from tests.support.talker import Talker


def test_transactions(place: Place, same: Same) -> None:
    client, other, bystander = place.client(), place.client(), place.bystander()
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    client.ask(amqp.TxSelect(), amqp.TxSelectOk, 1)
    told = []

    def messages() -> int:
        # One of another client's, behind which a transaction of the first would show.
        other.publish(b"x", "q")
        return other.ask(amqp.QueuePurge(queue="q"), amqp.QueuePurgeOk, 1).message_count

    for end, answer in ((amqp.TxRollback(), amqp.TxRollbackOk), (amqp.TxCommit(), amqp.TxCommitOk)):
        for _ in range(3):
            client.publish(b"in a transaction", "q")
        in_step(client)
        told.append(messages())
        bystander.lives()
        client.ask(end, answer, 1)
        told.append(messages())
    assert told == [1, 1, 1, 4]
    close = refused(client, amqp.ConfirmSelect())
    assert close.reply_code == 406
    same(close)
    same_again = refused(other, amqp.TxCommit())
    assert same_again.reply_code == 406
    bystander.leave()


def test_a_transaction_of_one_that_vanishes(place: Place) -> None:
    client, other, bystander = place.client(), place.client(), place.bystander()
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    client.ask(amqp.BasicConsume(queue="q", consumer_tag="seen"), amqp.BasicConsumeOk, 1)
    client.ask(amqp.TxSelect(), amqp.TxSelectOk, 1)
    client.publish(b"never", "q")
    in_step(client)
    client.close()
    eventually(lambda: count(other, "q").consumer_count == 0)
    other.publish(b"x", "q")
    assert other.ask(amqp.QueuePurge(queue="q"), amqp.QueuePurgeOk, 1).message_count == 1
    bystander.leave()


def test_global_qos(place: Place) -> None:
    """RabbitMQ: for all consumers of a channel together, and for no other channel."""
    client, other, bystander = place.client(), place.client(), place.bystander()
    witness = place.witness()
    for queue in ("q", "r"):
        client.ask(amqp.QueueDeclare(queue=queue), amqp.QueueDeclareOk, 1)
        for number in range(10):
            client.publish(b"%d" % number, queue)
        eventually(lambda queue=queue: place.ready(witness, queue) == 10)  # type: ignore[misc]
    client.ask(amqp.BasicQos(prefetch_count=3, global_=True), amqp.BasicQosOk, 1)
    other.ask(amqp.BasicQos(prefetch_count=2), amqp.BasicQosOk, 1)
    for tag in ("one", "two"):
        client.say(amqp.BasicConsume(queue="q", consumer_tag=tag), 1)
    for tag in ("one", "two"):
        other.say(amqp.BasicConsume(queue="r", consumer_tag=tag), 1)
    eventually(lambda: place.ready(witness, "q") == 7)
    eventually(lambda: place.ready(witness, "r") == 6)
    assert tally(client, 5) == {amqp.BasicConsumeOk: 2, amqp.BasicDeliver: 3}
    assert tally(other, 6) == {amqp.BasicConsumeOk: 2, amqp.BasicDeliver: 4}
    in_step(client)
    in_step(other)
    client.say(amqp.BasicAck(0, multiple=True), 1)
    assert tally(client, 3) == {amqp.BasicDeliver: 3}
    in_step(client)
    bystander.leave()


def tally(client: Talker, methods: int) -> dict[type[Method], int]:
    """How many of which are among the next so many methods on channel 1."""
    heard: dict[type[Method], int] = {}
    for _ in range(methods):
        kind = type(client_hears(client))
        heard[kind] = heard.get(kind, 0) + 1
    return heard


def test_confirms_are_numbered_for_each_channel(place: Place) -> None:
    clients = [place.client(channels=3) for _ in range(3)]
    place.together(3)
    clients[0].ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    full = Table.of({"x-max-length": 0, "x-overflow": "reject-publish"})
    clients[0].ask(amqp.QueueDeclare(queue="full", arguments=full), amqp.QueueDeclareOk, 1)
    for client in clients:
        # The second channel is in confirm mode from the start, the third one after a publish without.
        client.publish(b"unconfirmed", "q", channel=3)
        for channel in (2, 3):
            client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, channel)
            client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, channel)
    for number in range(1, 6):
        for client in clients:
            for channel in (3, 2):
                client.publish(b"1", "q", channel=channel)
                assert client.expect(amqp.BasicAck, channel).delivery_tag == 2 * number - 1
                client.publish(b"2", "full", channel=channel)
                assert client.expect(amqp.BasicNack, channel).delivery_tag == 2 * number
    for client in clients:
        in_step(client)


# -- a channel is new when it is opened ----------------------------------------------------------------------

#: What one client does on a channel before it is confirming, and closes it or not.
BEFORE: dict[str, tuple[tuple[Method, type[Method]], ...]] = {
    "nothing": (),
    "qos": ((amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk),),
    "global qos": ((amqp.BasicQos(prefetch_count=1, global_=True), amqp.BasicQosOk),),
    "declare": ((amqp.QueueDeclare(queue="last"), amqp.QueueDeclareOk),),
    "consume": (
        (amqp.QueueDeclare(queue="last"), amqp.QueueDeclareOk),
        (amqp.BasicConsume(queue="last", consumer_tag="t"), amqp.BasicConsumeOk),
    ),
}


@pytest.mark.parametrize("what", BEFORE)
def test_nothing_is_left_on_a_channel_for_the_next_who_opens_one(place: Place, same: Same, what: str) -> None:
    """Whether the one before went to confirm mode, closed its channel, or left."""
    setup = place.client()
    setup.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    witness = place.witness()
    for number in range(5):
        setup.publish(b"%d" % number, "q")
    eventually(lambda: place.ready(witness, "q") == 5)
    before = [place.client() for _ in range(9)]
    for client in before:
        for method, answer in BEFORE[what]:
            client.ask(method, answer, 1)
    for number, client in enumerate(before):
        if number % 3 == 0:
            client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        elif number % 3 == 1:
            client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
            client.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 1)
        else:
            client.bye()
    told = []
    # All at once, or only the first would get what was left.
    after = [place.client() for _ in range(9)]
    for client in after:
        # No prefetch: all five come without an acknowledgement.
        client.ask(amqp.BasicConsume(queue="q", consumer_tag="t"), amqp.BasicConsumeOk, 1)
        assert tally(client, 5) == {amqp.BasicDeliver: 5}
        client.ask(amqp.BasicCancel("t"), amqp.BasicCancelOk, 1)
        client.say(amqp.BasicNack(0, multiple=True, requeue=True), 1)
        in_step(client)
        eventually(lambda: place.ready(witness, "q") == 5)
        # Not confirming.
        client.publish(b"x", "nowhere")
        in_step(client)
        # No queue has been declared last.
        told.append(refused(client, amqp.BasicGet(queue="")))
    assert {close.reply_code for close in told} == {404}
    same(told)
    for client in before[::3]:
        in_step(client)


def test_confirms_that_are_selected_twice_are_nobody_elses(place: Place) -> None:
    before = [place.client() for _ in range(6)]
    for client in before:
        for _ in range(2):
            client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    after = [place.client() for _ in range(20)]
    for client in after:
        client.publish(b"x", "nowhere")
        in_step(client)
    for client in before:
        client.publish(b"x", "nowhere")
        assert client.expect(amqp.BasicAck, 1).delivery_tag == 1


@pytest.mark.parametrize("what", BEFORE)
def test_confirm_mode_loses_nothing_of_what_the_channel_had(place: Place, what: str) -> None:
    client, bystander, witness = place.client(), place.bystander(), place.witness()
    for method, answer in BEFORE[what]:
        client.ask(method, answer, 1)
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    if "declare" in what:
        # The queue that was declared last is known.
        client.ask(amqp.BasicConsume(queue="", consumer_tag="t"), amqp.BasicConsumeOk, 1)
    if "qos" in what:
        client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
        client.ask(amqp.BasicConsume(queue="q", consumer_tag="t"), amqp.BasicConsumeOk, 1)
        for _ in range(3):
            client.publish(b"x", "q")
        # One of three is under way to it.
        eventually(lambda: place.ready(witness, "q") == 2)
        owed = {amqp.BasicAck: 3, amqp.BasicDeliver: 1}
        confirmed = 0
        while owed[amqp.BasicDeliver] or confirmed < 3:
            _, method = client.hear()
            if isinstance(method, amqp.BasicDeliver):
                client.content_of(method)
                owed[amqp.BasicDeliver] -= 1
                assert owed[amqp.BasicDeliver] == 0
            else:
                assert isinstance(method, amqp.BasicAck)
                confirmed = max(confirmed, method.delivery_tag)
        in_step(client)
    elif what != "nothing":
        client.publish(b"mine", "last")
        heard = {type(client_hears(client)) for _ in range(2)}
        assert heard == {amqp.BasicAck, amqp.BasicDeliver}
    else:
        client.publish(b"mine", "nowhere")
        assert client.expect(amqp.BasicAck, 1).delivery_tag == 1
    bystander.leave()


def client_hears(client: Talker) -> Method:
    """The next method, past its content."""
    channel, method = client.hear()
    assert channel == 1
    if isinstance(method, amqp.BasicDeliver):
        client.content_of(method)
    return method


def test_channel_numbers_are_the_clients_own(place: Place, same: Same) -> None:
    """Any up to channel-max, in any order; an error on one that is open, or beyond."""
    client, bystander = place.client(channels=0), place.bystander()
    for channel in (7, 2047, 1, 300):
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
        in_step(client, channel)
    client.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 7)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 7)
    for channel in (300, 7, 2047, 1):
        in_step(client, channel)
    client.say(amqp.ChannelOpen(), 7)
    close = end_of(client)
    assert close.reply_code == 504
    same(close)
    bystander.leave()


def test_more_channels_than_one_link_holds_ahead(place: Place) -> None:
    clients = [place.client(channels=60) for _ in range(4)]
    for client in clients:
        for channel in (1, 30, 60):
            in_step(client, channel)
    for client in clients:
        client.bye()
