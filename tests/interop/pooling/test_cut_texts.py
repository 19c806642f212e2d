"""Error texts that RabbitMQ cuts off inside a character reach the client as they are, on every way."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.interop.pooling.conftest import Same
from tests.interop.pooling.ways import Place, in_step, refused

#: Of the text that names it RabbitMQ keeps 252 bytes: for one of the two the last is half of a character.
NAMES = ("ä" * 120, "x" + "ä" * 120)


@pytest.mark.parametrize("name", NAMES)
def test_a_channel_error(place: Place, same: Same, name: str) -> None:
    client, bystander = place.client(channels=2), place.bystander()
    texts = []
    for method in (amqp.QueueDeclare(queue=name, passive=True), amqp.BasicGet(queue=name)):
        close = refused(client, method)
        assert close.reply_code == 404
        texts.append(close.reply_text.encode("utf-8", "surrogateescape"))
        in_step(client, 2)
    same(texts)
    bystander.leave()


def test_one_of_the_names_is_cut_inside_a_character(place: Place) -> None:
    client = place.client()
    cut = []
    for name in NAMES:
        text = refused(client, amqp.QueueDeclare(queue=name, passive=True)).reply_text
        cut.append(any("\udc80" <= letter <= "\udcff" for letter in text))
    assert sorted(cut) == [False, True]


def test_a_connection_error(place: Place, same: Same) -> None:
    told: list[object] = []
    for name in NAMES:
        client = place.client()
        method: Method = amqp.ExchangeDeclare(exchange="x", type=name)
        client.say(method, 1)
        close = client.expect(amqp.ConnectionClose)
        told.append((close.reply_code, close.reply_text.encode("utf-8", "surrogateescape")))
        client.say(amqp.ConnectionCloseOk())
    same(told)
