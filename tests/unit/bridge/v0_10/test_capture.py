"""Operations of 0-10 clients in their own frames, for captures."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.capture import frames_of
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.structs import Command
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import E, b, e, frame


def read(frames: bytes) -> list[Sent]:
    return list(Splitter(header=False).feed(frames))


@pytest.mark.parametrize(
    ("method", "command"),
    [
        (amqp.QueueDelete(queue="q", if_empty=True), amqp10.QueueDelete(b"q", if_empty=True)),
        (amqp.QueuePurge(queue="q"), amqp10.QueuePurge(b"q")),
        (amqp.QueueDeclare(queue="q", passive=True), amqp10.QueueQuery(b"q")),
        (amqp.QueueBind(queue="q", exchange="e", routing_key="k"), amqp10.ExchangeBind(b"q", b"e", b"k")),
        (amqp.QueueUnbind(queue="q", exchange="e", routing_key="k"), amqp10.ExchangeUnbind(b"q", b"e", b"k")),
        (amqp.ExchangeDeclare(exchange="e", passive=True), amqp10.ExchangeQuery(b"e")),
        (amqp.ExchangeDeclare(exchange="e", type="topic"), amqp10.ExchangeDeclare(b"e", b"topic")),
        (amqp.ExchangeDelete(exchange="e"), amqp10.ExchangeDelete(b"e")),
        (amqp.BasicCancel("1"), amqp10.MessageCancel(b"1")),
        (amqp.BasicConsume(queue="q", consumer_tag="1"), amqp10.MessageSubscribe(b"q", b"1", 0, 0)),
        (amqp.TxSelect(), amqp10.TxSelect()),
        (amqp.TxCommit(), amqp10.TxCommit()),
        (amqp.TxRollback(), amqp10.TxRollback()),
    ],
)
def test_a_command_for_each_operation(method: Method, command: Command) -> None:
    (sent,) = read(frames_of(3, method, None))
    assert sent == Sent(3, command=command)


def test_arguments_that_0_10_has_no_word_for_are_left_out() -> None:
    arguments = Table.of({"x-queue-type": "quorum"})
    (sent,) = read(frames_of(1, amqp.QueueDeclare(queue="q", arguments=arguments), None))
    assert sent.command == amqp10.QueueDeclare(b"q")


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize(
    ("method", "destination"),
    [
        (amqp.BasicPublish(exchange="e", routing_key="k"), b"e"),
        (amqp.BasicDeliver("1", 7, True, "e", "k"), b"1"),
        (amqp.BasicGetOk(7, True, "e", "k", 0), b""),
    ],
)
def test_messages_are_transfers(method: Method, destination: bytes, size: int) -> None:
    header = ContentHeader(60, size, amqp.BasicProperties(content_type="text/plain"))
    body = frame(E | b | e, 3, b"abc", channel=2) if size else b""
    (sent,) = read(frames_of(2, method, header) + body)
    assert isinstance(sent.command, amqp10.MessageTransfer)
    assert sent.command.destination == destination
    assert sent.structs is not None
    delivery, message = sent.structs
    assert isinstance(delivery, amqp10.DeliveryProperties)
    assert isinstance(message, amqp10.MessageProperties)
    assert delivery.routing_key == b"k"
    assert delivery.redelivered is not isinstance(method, amqp.BasicPublish)
    assert (message.content_type, message.content_length or 0) == (b"text/plain", size)
    assert sent.body == b"abc"[:size]


@pytest.mark.parametrize(
    "method",
    [amqp.ChannelOpen(), amqp.ConfirmSelect(), amqp.BasicQos(0, 10, False), amqp.BasicGet(queue="q")],
)
def test_what_has_no_command_has_no_frames(method: Method) -> None:
    assert frames_of(1, method, None) == b""
