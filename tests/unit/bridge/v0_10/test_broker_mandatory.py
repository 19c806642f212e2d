"""What is published to a 0-10 broker, and what no queue there takes."""

from __future__ import annotations

import pytest

from amqpgate.bridge.v0_10.broker_mandatory import MOST_KEPT
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.unit.bridge.v0_10.broker_lab import Asked, BrokerLab, Heard, exchange, queue

EMPTY = amqp.BasicProperties()


def lab(**kwargs) -> BrokerLab:
    return BrokerLab(**kwargs).login().open()


def confirming(**kwargs) -> BrokerLab:
    made = lab(**kwargs)
    assert made.call(amqp.ConfirmSelect()) == amqp.ConfirmSelectOk()
    return made


def transfers(made: BrokerLab) -> list[Asked]:
    return [asked for asked in made.asked if isinstance(asked.command, amqp10.MessageTransfer)]


def test_a_message_for_no_queue_comes_back_before_its_confirm() -> None:
    made = confirming()
    properties = amqp.BasicProperties(message_id="m")
    assert made.publish(b"lost", "nowhere", mandatory=True, properties=properties) == [
        Heard(1, amqp.BasicReturn(312, "NO_ROUTE", "", "nowhere"), properties, b"lost"),
        Heard(1, amqp.BasicAck(1)),
    ]
    made.results[b"there"] = queue(b"there")
    assert made.publish(b"there", "there", mandatory=True) == [Heard(1, amqp.BasicAck(2))]


def test_without_confirms_it_comes_back_as_well() -> None:
    made = lab()
    (heard,) = made.publish(b"lost", "nowhere", mandatory=True)
    assert heard.method == amqp.BasicReturn(312, "NO_ROUTE", "", "nowhere")
    # It is asked once.
    made.commands()
    assert made.say(1, amqp.BasicQos(prefetch_count=1)) == [Heard(1, amqp.BasicQosOk())]
    assert made.commands() == []


def test_it_is_asked_in_front_of_the_transfer_and_not_waited_for() -> None:
    made = lab(is_live=False)
    made.publish(b"x", "key", "amq.direct", mandatory=True)
    assert made.commands() == [
        amqp10.ExchangeQuery(b"amq.direct"),
        amqp10.ExchangeBound(exchange=b"amq.direct", binding_key=b"key"),
        amqp10.MessageTransfer(b"amq.direct", amqp10.AcceptMode.EXPLICIT, 0),
        amqp10.ExecutionSync(),
    ]


@pytest.mark.parametrize(
    ("kind", "key", "comes_back"),
    [
        (b"direct", "unbound", True),
        (b"direct", "bound", False),
        (b"direct", "", False),
        (b"topic", "unbound", False),
        (b"fanout", "unbound", False),
        (b"headers", "unbound", False),
    ],
)
def test_an_exchange_is_asked_by_key_if_it_is_direct(kind: bytes, key: str, comes_back: bool) -> None:
    made = confirming()
    made.results[b"x"] = exchange(kind)
    made.bindings.add((b"x", b"bound"))
    heard = made.publish(b"body", key, "x", mandatory=True)
    returned = Heard(1, amqp.BasicReturn(312, "NO_ROUTE", "x", key), EMPTY, b"body")
    assert heard == [*([returned] if comes_back else []), Heard(1, amqp.BasicAck(1))]
    # It may go to the exchange's alternate one.
    assert [one.body for one in transfers(made)] == [b"body"]


def test_what_is_not_mandatory_is_not_asked_for() -> None:
    made = confirming()
    assert made.publish(b"x", "nowhere") == [Heard(1, amqp.BasicAck(1))]
    assert [one.command.NAME for one in made.asked] == ["message.transfer", "execution.sync"]


def test_a_broker_may_reject_it_too_and_it_comes_back_once() -> None:
    made = confirming(is_live=False)
    made.publish(b"lost" * 3000, "nowhere", "amq.topic", mandatory=True)
    (transfer,) = transfers(made)
    assert transfer.command.accept_mode == amqp10.AcceptMode.EXPLICIT
    assert not transfer.structs[0].discard_unroutable
    one = SequenceSet(((transfer.command_id, transfer.command_id),))
    rejected = amqp10.MessageReject(one, amqp10.RejectCode.UNROUTABLE)
    method = amqp.BasicReturn(312, "NO_ROUTE", "amq.topic", "nowhere")
    assert made.tell(rejected) == [Heard(1, method, EMPTY, b"lost" * 3000)]
    assert made.finish(0, transfer.command_id) == [Heard(1, amqp.BasicAck(1))]
    assert made.tell(rejected) == []


def test_what_is_too_large_to_be_kept_is_not_asked_back() -> None:
    made = confirming()
    assert made.publish(b"x" * (MOST_KEPT + 1), "nowhere", mandatory=True) == [Heard(1, amqp.BasicAck(1))]
    (transfer,) = transfers(made)
    assert transfer.command.accept_mode == amqp10.AcceptMode.NONE
    assert transfer.structs[0].discard_unroutable


def test_while_much_is_kept_the_channel_waits() -> None:
    made = confirming(is_live=False)
    for _ in range(3):
        made.publish(b"x" * (MOST_KEPT // 2), "nowhere", mandatory=True)
    assert len(transfers(made)) == 2
    assert not made.translator.wants_frames
    heard = made.finish(0, transfers(made)[-1].command_id)
    assert heard == [Heard(1, amqp.BasicAck(2, multiple=True))]
    assert len(transfers(made)) == 3
    assert made.translator.wants_frames
