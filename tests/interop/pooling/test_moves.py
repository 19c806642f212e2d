"""A client gets a connection of its own, whatever has become of what it did before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.pooling.conftest import Same
from tests.interop.pooling.ways import Place, in_step, refused
from tests.support.inprocess import eventually
from tests.support.talker import Talker


def _deleted(client: Talker, _: Talker) -> None:
    client.ask(amqp.QueueDelete(queue="q"), amqp.QueueDeleteOk, 2)


def _deleted_by_another(_: Talker, witness: Talker) -> None:
    witness.ask(amqp.QueueDelete(queue="q"), amqp.QueueDeleteOk, 1)


def _expired(_: Talker, witness: Talker) -> None:
    def is_gone() -> bool:
        witness.say(amqp.QueueDeclare(queue="q", passive=True), 1)
        _, method = witness.hear()
        if not isinstance(method, amqp.ChannelClose):
            return False
        witness.say(amqp.ChannelCloseOk(), 1)
        witness.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        return True

    eventually(is_gone, every=0.1)


def _anothers(_: Talker, witness: Talker) -> None:
    witness.ask(amqp.QueueDelete(queue="q"), amqp.QueueDeleteOk, 1)
    witness.ask(amqp.QueueDeclare(queue="q", exclusive=True), amqp.QueueDeclareOk, 1)


WHAT: dict[str, tuple[int, Callable[[Talker, Talker], None]]] = {
    "deleted": (404, _deleted),
    "deleted by another": (404, _deleted_by_another),
    "expired": (404, _expired),
    "another's": (405, _anothers),
}


@pytest.mark.parametrize("what", WHAT)
def test_the_queue_that_was_declared_last_is_gone(place: Place, same: Same, what: str) -> None:
    code, happens = WHAT[what]
    client, witness, bystander = place.client(channels=2), place.witness(), place.bystander()
    expires = Table.of({"x-expires": 1}) if what == "expired" else Table()
    client.ask(amqp.QueueDeclare(queue="q", arguments=expires), amqp.QueueDeclareOk, 2)
    happens(client, witness)
    client.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
    in_step(client, 2)
    # Its empty name is what it was, and so is the error.
    close = refused(client, amqp.QueueBind(queue="", exchange="amq.direct"), 2)
    assert close.reply_code == code
    same(close)
    bystander.leave()


def test_a_queue_that_is_there_again(place: Place) -> None:
    client, witness = place.client(channels=2), place.witness()
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 2)
    client.ask(amqp.QueueDelete(queue="q"), amqp.QueueDeleteOk, 2)
    client.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
    witness.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
    client.ask(amqp.QueueBind(queue="", exchange="amq.direct"), amqp.QueueBindOk, 2)
    # An empty key was the queue's name, too.
    witness.publish(b"x", "q", exchange="amq.direct")
    eventually(lambda: place.ready(witness, "q") == 1)
    client.ask(amqp.BasicGet(queue="", no_ack=True), amqp.BasicGetOk, 2)
    client.content_of(amqp.BasicGetOk(), 2)
    client.ask(amqp.QueueDeclare(queue="r"), amqp.QueueDeclareOk, 2)
    client.ask(amqp.QueueDelete(queue=""), amqp.QueueDeleteOk, 2)
    assert refused(client, amqp.QueueDeclare(queue="r", passive=True), 2).reply_code == 404


def test_a_queue_that_may_not_be_declared_any_more(place: Place) -> None:
    place.rabbitmq.eval(
        'rabbit_auth_backend_internal:add_user(<<"mover">>, <<"secret">>, <<"test">>), '
        f'rabbit_auth_backend_internal:set_permissions(<<"mover">>, <<"{place.vhost}">>, <<".*">>, <<".*">>,'
        ' <<".*">>, <<"test">>).'
    )
    try:
        client = place.client(channels=2, user="mover", password="secret")
        client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 2)
        place.rabbitmq.eval(
            f'rabbit_auth_backend_internal:set_permissions(<<"mover">>, <<"{place.vhost}">>, <<"mine">>,'
            ' <<".*">>, <<".*">>, <<"test">>).'
        )
        client.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
        client.ask(amqp.QueueBind(queue="", exchange="amq.direct"), amqp.QueueBindOk, 2)
    finally:
        place.rabbitmq.eval('rabbit_auth_backend_internal:delete_user(<<"mover">>, <<"test">>).')


def test_a_channel_that_the_broker_has_closed(place: Place) -> None:
    """Its client has not answered, and does what needs a connection of its own on another channel."""
    client, bystander = place.client(channels=3), place.bystander()
    client.say(amqp.QueueDeclare(queue="nothing", passive=True), 2)
    assert client.expect(amqp.ChannelClose, 2).reply_code == 404
    client.ask(amqp.QueueDeclare(queue="mine", exclusive=True), amqp.QueueDeclareOk, 1)
    client.say(amqp.ChannelCloseOk(), 2)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 2)
    for channel in (1, 2, 3):
        in_step(client, channel)
    bystander.leave()


def test_a_channel_that_closes_meanwhile(place: Place) -> None:
    client, bystander = place.client(channels=3), place.bystander()
    client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 2)
    client.say(amqp.QueueDeclare(queue="r"), 2)
    client.say(amqp.ChannelClose(200, "enough", 0, 0), 2)
    client.say(amqp.QueueDeclare(queue="nothing", passive=True), 3)
    client.say(amqp.QueueDeclare(queue="mine", exclusive=True), 1)
    heard = []
    while len(heard) < 4:
        channel, method = client.hear()
        heard.append((channel, type(method)))
        if isinstance(method, amqp.ChannelClose):
            client.say(amqp.ChannelCloseOk(), channel)
    assert sorted(heard, key=str) == sorted(
        [
            (2, amqp.QueueDeclareOk),
            (2, amqp.ChannelCloseOk),
            (3, amqp.ChannelClose),
            (1, amqp.QueueDeclareOk),
        ],
        key=str,
    )
    for channel in (2, 3):
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
        in_step(client, channel)
    in_step(client, 1)
    bystander.leave()
