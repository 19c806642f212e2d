"""Transactions: what belongs to them, and what waits for their end."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.structs import Command
from tests.unit.bridge.v0_10.lab import Lab


@pytest.fixture
def lab() -> Lab:
    """A queue with two messages, which the session has, and a transaction."""
    lab = Lab().open().attach()
    lab.do(amqp10.QueueDeclare(queue=b"q"))
    lab.transfer(b"1", b"q")
    lab.transfer(b"2", b"q")
    lab.do(amqp10.TxSelect())
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=2))
    assert [one.body for one in lab.heard if one.body] == [b"1", b"2"]
    lab.heard.clear()
    lab.asked.clear()
    return lab


def ids(lower: int, upper: int | None = None) -> SequenceSet:
    return SequenceSet(((lower, lower if upper is None else upper),))


def left(lab: Lab) -> list[bytes]:
    """What another session gets, of all that is there."""
    lab.say(amqp10.SessionDetach(name=b"session"))
    lab.attach(5, b"other")
    lab.do(amqp10.MessageSubscribe(queue=b"q", destination=b"d", accept_mode=0, acquire_mode=0), 5)
    lab.do(amqp10.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF), 5)
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=9), 5)
    return [one.body for one in lab.heard if one.body]


def test_transfers_are_complete_at_once_and_there_after_commit(lab: Lab) -> None:
    lab.transfer(b"3", b"q")
    assert 7 in lab.completed()
    assert lab.asked == [(3, amqp.BasicPublish(routing_key="q"))]
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 0
    lab.do(amqp10.TxCommit())
    assert left(lab) == [b"1", b"2", b"3"]


def test_transfers_are_gone_after_rollback(lab: Lab) -> None:
    lab.transfer(b"3", b"q")
    lab.do(amqp10.TxRollback())
    assert left(lab) == [b"1", b"2"]


def test_accepts_count_with_commit(lab: Lab) -> None:
    lab.do(amqp10.MessageAccept(transfers=ids(0)))
    assert lab.asked == []
    lab.do(amqp10.TxCommit())
    assert lab.names() == ["basic.ack", "tx.commit"]
    assert left(lab) == [b"2"]


def test_accepts_count_for_nothing_after_rollback(lab: Lab) -> None:
    lab.do(amqp10.MessageAccept(transfers=ids(0, 1)))
    lab.do(amqp10.TxRollback())
    assert lab.names() == ["tx.rollback"]
    lab.do(amqp10.MessageAccept(transfers=ids(1)))
    lab.do(amqp10.TxCommit())
    assert left(lab) == [b"1"]


def test_what_is_released_before_rollback_comes_back(lab: Lab) -> None:
    lab.do(amqp10.MessageAccept(transfers=ids(0)))
    lab.do(amqp10.MessageRelease(transfers=ids(0, 1)))
    lab.do(amqp10.TxRollback())
    assert lab.names() == ["tx.rollback", "basic.cancel", "basic.nack", "basic.nack", "tx.commit"]
    lab.do(amqp10.MessageFlow(destination=b"d", unit=0, value=2))
    assert [one.body for one in lab.heard if one.body] == [b"1", b"2"]


def test_what_was_tried_before_rollback_counts_as_a_failure(lab: Lab) -> None:
    lab.do(amqp10.MessageAccept(transfers=ids(0)))
    lab.do(amqp10.MessageRelease(transfers=ids(0), set_redelivered=True))
    lab.do(amqp10.MessageRelease(transfers=ids(1)))
    lab.do(amqp10.TxRollback())
    settled = [one for _, one in lab.asked if one.NAME in ("basic.nack", "basic.reject")]
    assert settled == [amqp.BasicNack(2, requeue=True), amqp.BasicReject(1, requeue=True)]


def test_what_is_released_after_rollback_comes_back_at_once(lab: Lab) -> None:
    lab.transfer(b"3", b"q")
    lab.do(amqp10.MessageAccept(transfers=ids(0, 1)))
    lab.do(amqp10.TxRollback())
    lab.asked.clear()
    lab.do(amqp10.MessageRelease(transfers=ids(0, 1)))
    assert lab.names() == ["basic.cancel", "basic.nack", "basic.nack", "tx.commit"]
    assert lab.query(amqp10.QueueQuery(queue=b"q")).message_count == 2


@pytest.mark.parametrize("publishes", [True, False])
def test_what_is_released_waits_where_something_else_would_be_committed(lab: Lab, publishes: bool) -> None:
    if publishes:
        lab.transfer(b"3", b"q")
    else:
        lab.do(amqp10.MessageAccept(transfers=ids(1)))
    lab.asked.clear()
    lab.do(amqp10.MessageRelease(transfers=ids(0)))
    assert lab.asked == []
    lab.do(amqp10.TxCommit())
    assert left(lab) == ([b"1", b"2", b"3"] if publishes else [b"1"])


def test_rejects_count_after_either(lab: Lab) -> None:
    lab.do(amqp10.MessageReject(transfers=ids(0)))
    lab.do(amqp10.TxRollback())
    lab.do(amqp10.MessageReject(transfers=ids(1)))
    lab.do(amqp10.TxCommit())
    assert left(lab) == []


def test_select_twice_is_one(lab: Lab) -> None:
    lab.do(amqp10.TxSelect())
    assert lab.asked == []
    assert 7 in lab.completed()


@pytest.mark.parametrize("command", [amqp10.TxCommit(), amqp10.TxRollback()])
def test_without_select_there_is_nothing_to_end(command: Command) -> None:
    lab = Lab().open().attach()
    lab.do(command)
    [exception] = lab.commands()
    assert exception.error_code == 409
    assert lab.asked == []


def test_exchange_that_is_not_there_shows_at_the_end_of_the_session(lab: Lab) -> None:
    lab.transfer(b"3", b"k", exchange=b"nope")
    [exception] = lab.commands()
    assert exception.error_code == 404
    assert isinstance(lab.heard[-1].control, amqp10.SessionDetach)


def test_what_waits_is_bounded(lab: Lab) -> None:
    ranges = tuple((at, at) for at in range(0, 2100, 2))
    lab.say(amqp10.MessageAccept(transfers=SequenceSet(ranges)))
    [exception] = lab.commands()
    assert exception.error_code == 506
