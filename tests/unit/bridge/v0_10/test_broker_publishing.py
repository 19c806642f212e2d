"""What is published to a 0-10 broker, and what is confirmed."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.unit.bridge.v0_10.broker_lab import BrokerLab, Heard


def lab(**kwargs) -> BrokerLab:
    return BrokerLab(**kwargs).login().open()


def confirming(**kwargs) -> BrokerLab:
    made = lab(**kwargs)
    assert made.call(amqp.ConfirmSelect()) == amqp.ConfirmSelectOk()
    return made


def test_a_message_is_a_transfer_with_its_routing_key_in_the_header() -> None:
    made = lab()
    properties = amqp.BasicProperties(content_type="text/plain", delivery_mode=2)
    assert made.publish(b"hello", "key", "amq.direct", properties=properties) == []
    (asked,) = made.asked
    assert asked.channel == 0
    assert asked.command == amqp10.MessageTransfer(b"amq.direct", 1, 0)
    assert asked.structs[0] == amqp10.DeliveryProperties(
        discard_unroutable=True, delivery_mode=2, routing_key=b"key"
    )
    assert asked.structs[1] == amqp10.MessageProperties(content_length=5, content_type=b"text/plain")
    assert asked.body == b"hello"


@pytest.mark.parametrize("size", [0, 1, 65523, 65524, 200_000])
def test_bodies_of_any_size_arrive(size: int) -> None:
    made = lab()
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    made.publish(body)
    made.publish(b"next")
    assert [asked.body for asked in made.asked] == [body, b"next"]


def test_confirms_are_told_once_the_broker_is_asked_at_the_end_of_a_turn() -> None:
    made = confirming()
    frames = b""
    for _ in range(3):
        frames += _frames(b"x")
    assert made.give(frames) == [Heard(1, amqp.BasicAck(3, multiple=True))]
    assert [asked.command.NAME for asked in made.asked] == [*["message.transfer"] * 3, "execution.sync"]
    assert made.asked[-1].sync
    assert made.publish(b"y") == [Heard(1, amqp.BasicAck(4))]


def test_confirms_keep_the_order_of_publishing() -> None:
    made = confirming(is_live=False)
    for _ in range(4):
        made.publish(b"x")
    ids = [asked.command_id for asked in made.asked if isinstance(asked.command, amqp10.MessageTransfer)]
    assert made.asked[-1].command == amqp10.ExecutionSync()
    # A broker may complete them in any order.
    made.tell_completed(ids[2], ids[3])
    assert made.heard[1:] == [Heard(1, amqp.ConfirmSelectOk())]
    made.tell_completed(ids[0], ids[0])
    assert made.heard[2:] == [Heard(1, amqp.BasicAck(1))]
    made.tell_completed(ids[1], ids[1])
    assert made.heard[3:] == [Heard(1, amqp.BasicAck(4, multiple=True))]


def test_nothing_is_asked_of_what_is_not_confirmed() -> None:
    made = lab()
    made.publish(b"x")
    assert [asked.command.NAME for asked in made.asked] == ["message.transfer"]


def test_an_exchange_that_is_not_there_closes_the_channel_for_the_publish() -> None:
    made = confirming(is_live=False)
    made.publish(b"x", exchange="none")
    exception = amqp10.ExecutionException(404, 0, 0, 0, description=b"not-found: Exchange not found: none")
    (heard,) = made.fail(exception)
    close = heard.method
    assert (close.reply_code, close.class_id, close.method_id) == (404, 60, 40)
    assert "Exchange not found: none" in close.reply_text


def test_a_header_that_fits_into_no_frame_closes_the_channel_and_nothing_is_sent() -> None:
    made = lab()
    headers = amqp.BasicProperties(headers=amqp_table({"x": "y" * 65_000, "z": "y" * 1000}))
    heard = made.publish(b"body", properties=headers, frame_max=131_072)
    assert [one.method.NAME for one in heard] == ["channel.close"]
    assert (heard[0].method.class_id, heard[0].method.method_id) == (60, 40)
    assert made.asked == []
    assert made.say(1, amqp.ChannelCloseOk()) == []
    made.open()
    made.publish(b"again")
    assert made.asked[-1].body == b"again"


def test_a_broker_that_stops_the_producer_makes_the_channel_wait() -> None:
    made = lab()
    made.tell(amqp10.MessageStop(b""))
    made.publish(b"x" * 300_000)
    assert made.asked == []
    assert not made.translator.wants_frames
    made.tell(amqp10.MessageFlow(b"", 0, 0x7FFFFFFF))
    assert made.asked[0].body == b"x" * 300_000
    assert made.translator.wants_frames


def test_transfers_go_on_behind_a_method_that_is_answered_later() -> None:
    made = lab(is_live=False)
    assert made.say(1, amqp.QueueDeclare(queue="q")) == []
    made.publish(b"x")
    assert "message.transfer" not in [asked.command.NAME for asked in made.asked]
    made.finish(0, 1)
    assert [asked.command.NAME for asked in made.asked][-1] == "message.transfer"


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_any_split_is_the_same(cut: int) -> None:
    made = confirming(cut=cut)
    made.publish(b"a" * 9000, "key", "amq.topic", mandatory=True)
    transfer = next(one for one in made.asked if isinstance(one.command, amqp10.MessageTransfer))
    assert transfer.body == b"a" * 9000
    assert made.heard[-1] == Heard(1, amqp.BasicAck(1))


def _frames(body: bytes) -> bytes:
    return content_frames(1, amqp.BasicPublish(routing_key="q"), amqp.BasicProperties(), body)


def amqp_table(values: dict[str, str]) -> Table:
    return Table.of(values)
