"""Messages of a queue that is deleted, and has an alternate exchange."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import SequenceSet
from tests.unit.bridge.v0_10.lab import Lab


@pytest.fixture
def lab() -> Lab:
    """A queue with an alternate exchange, and three messages."""
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q", alternate_exchange=b"amq.fanout"))
    for body in (b"1", b"2", b"3"):
        lab.transfer(body, b"q")
    lab.asked.clear()
    return lab


def rejected(lab: Lab) -> int:
    return sum(isinstance(method, amqp.BasicReject) and not method.requeue for _, method in lab.asked)


def test_they_are_rejected_one_by_one_before_the_queue_goes(lab: Lab) -> None:
    lab.do(amqp10.QueueDelete(queue=b"q"))
    assert lab.names() == [*["queue.declare"] * 2, *["basic.get", "basic.reject"] * 3, "queue.delete"]
    assert rejected(lab) == 3
    assert lab.query(amqp10.QueueQuery(queue=b"q")).queue is None


def test_what_the_session_has_comes_first(lab: Lab) -> None:
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=2))
    lab.asked.clear()
    lab.do(amqp10.QueueDelete(queue=b"q"))
    assert lab.names() == [
        "queue.declare",
        # Its consumer would get the third one in their place.
        *["basic.cancel", "basic.qos"],
        *["basic.reject"] * 2,
        "basic.qos",
        *["queue.declare", "basic.get", "basic.reject"],
        "queue.delete",
    ]
    assert rejected(lab) == 3
    # They are nobody's any more.
    lab.asked.clear()
    lab.do(amqp10.MessageAccept(transfers=SequenceSet(((0, 9),))))
    assert lab.asked == []


@pytest.mark.parametrize(
    "delete",
    [
        amqp10.QueueDelete(queue=b"q", if_empty=True),
        amqp10.QueueDelete(queue=b"q", if_unused=True),
    ],
)
def test_what_is_refused_costs_no_message(lab: Lab, delete: amqp10.QueueDelete) -> None:
    lab.attach(1, b"other")
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0), 1)
    heard = lab.do(delete)
    assert heard[0].command.error_code == 406
    assert rejected(lab) == 0


def test_without_an_alternate_exchange_they_are_gone() -> None:
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"1", b"q")
    lab.asked.clear()
    lab.do(amqp10.QueueDelete(queue=b"q"))
    assert lab.names() == ["queue.declare", "queue.delete"]


def test_in_a_transaction_the_sessions_own_stay_its_own(lab: Lab) -> None:
    lab.do(amqp10.TxSelect())
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=2))
    lab.asked.clear()
    lab.do(amqp10.QueueDelete(queue=b"q"))
    assert rejected(lab) == 1
