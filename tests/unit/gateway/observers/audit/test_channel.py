"""What the audit of one channel waits for: the broker's answers, in order, and the rest of a body."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest

from amqpgate.gateway.observers.audit.channel import (
    MOST_CHANGES,
    MOST_SILENT,
    Change,
    ChannelAudit,
    Reading,
    detail_of,
)
from amqpgate.gateway.observers.audit.columns import OperationKind
from amqpgate.policy import Operation, Principal
from amqpgate.policy.kinds.audit import NOT_AUDITED
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


def kind(name: str, queue: str | None = None) -> OperationKind:
    return OperationKind(operation=name, queue=queue)


def asked(waiting: ChannelAudit, *methods: Method) -> None:
    for method in methods:
        assert waiting.asked(method, kind(method.NAME, getattr(method, "queue", None))) is None


def answered(waiting: ChannelAudit, method: Method) -> tuple[str, str | None] | None:
    """Operation and queue of what is told, of one at most."""
    found = told(waiting.answered(method))
    assert len(found) <= 1
    return found[0] if found else None


def told(changes: Iterable[Change]) -> list[tuple[str, str | None]]:
    """Operations and queues."""
    return [(one.kind.operation, one.kind.queue) for one in changes if one.kind is not None]


def silent(queue: str, **said: bool) -> amqp.QueueDeclare:
    return amqp.QueueDeclare(queue=queue, no_wait=True, **said)


def test_changes_are_told_in_the_order_asked_with_the_names_that_the_broker_gives() -> None:
    waiting = ChannelAudit()
    asked(waiting, amqp.QueueDeclare(queue=""), amqp.QueueDeclare(queue="b"), amqp.QueueBind(queue="b"))
    assert answered(waiting, amqp.QueueDeclareOk("amq.gen-1", 0, 0)) == ("queue.declare", "amq.gen-1")
    assert answered(waiting, amqp.QueueDeclareOk("b", 0, 0)) == ("queue.declare", "b")
    assert answered(waiting, amqp.QueueBindOk()) == ("queue.bind", "b")
    # A broker that says more than it was asked.
    assert answered(waiting, amqp.QueueBindOk()) is None


def test_what_the_broker_does_not_answer_is_told_with_its_next_answer() -> None:
    waiting = ChannelAudit()
    asked(waiting, amqp.ExchangeDeclare(exchange="x", type="fanout", durable=True, no_wait=True))
    asked(waiting, silent("a"), amqp.QueueDeclare(queue="b"), silent("c"), amqp.QueueBind(queue="b"))
    exchange, *others = waiting.answered(amqp.QueueDeclareOk("b", 0, 0))
    assert exchange.detail == {"type": "fanout", "durable": True, "auto_delete": False, "internal": False}
    assert told(others) == [("queue.declare", "a"), ("queue.declare", "b")]
    # What else the broker answers tells of it, too, if nothing that was asked before is due.
    assert told(waiting.answered(amqp.BasicQosOk())) == [("queue.declare", "c")]
    asked(waiting, silent("d"))
    assert told(waiting.answered(amqp.BasicQosOk())) == []
    assert told(waiting.answered(amqp.QueueBindOk())) == [("queue.bind", "b")]
    assert told(waiting.answered(amqp.ChannelCloseOk())) == [("queue.declare", "d")]
    assert not waiting.changes


def test_the_answer_to_what_was_asked_is_nobody_elses_who_waits_for_none() -> None:
    waiting = ChannelAudit()
    asked(waiting, silent("a"), amqp.QueueDeclare(queue=""))
    assert told(waiting.answered(amqp.QueueDeclareOk("amq.gen-1", 0, 0))) == [
        ("queue.declare", "a"),
        ("queue.declare", "amq.gen-1"),
    ]


def refusal(method: type[Method]) -> amqp.ChannelClose:
    return amqp.ChannelClose(406, "PRECONDITION_FAILED", method.CLASS_ID, method.METHOD_ID)


def test_what_the_broker_refuses_is_not_told_nor_what_is_behind_it() -> None:
    waiting = ChannelAudit()
    asked(waiting, silent("a"), amqp.QueueBind(queue="a", no_wait=True), silent("b"))
    asked(waiting, amqp.QueueBind(queue="b", no_wait=True))
    assert told(waiting.answered(refusal(amqp.QueueDeclare))) == [("queue.declare", "a"), ("queue.bind", "a")]
    assert not waiting.changes
    # Something else is refused, behind them.
    asked(waiting, silent("a"), amqp.QueueDeclare(queue="b"))
    assert told(waiting.answered(refusal(amqp.BasicPublish))) == [("queue.declare", "a")]


def test_of_what_was_too_much_to_remember_nothing_is_left_when_the_channel_is_refused() -> None:
    waiting = ChannelAudit()
    asked(waiting, *(amqp.QueueDeclare(queue=f"q{number}") for number in range(MOST_CHANGES)))
    assert waiting.asked(amqp.QueueDeclare(queue="more"), kind("queue.declare", "more")) is not None
    assert told(waiting.answered(refusal(amqp.BasicPublish))) == []
    asked(waiting, amqp.QueueDeclare(queue="again"))
    assert answered(waiting, amqp.QueueDeclareOk("again", 0, 0)) == ("queue.declare", "again")


def test_of_many_without_an_answer_the_first_is_told() -> None:
    waiting = ChannelAudit()
    asked(waiting, amqp.QueueDeclare(queue="due"), *(silent(str(number)) for number in range(MOST_SILENT)))
    for number in range(3):
        change = waiting.asked(silent("more"), kind("queue.declare", "more"))
        assert change is not None
        assert told([change]) == [("queue.declare", str(number))]
    assert len(waiting.changes) == MOST_SILENT + 1
    assert len(told(waiting.left())) == MOST_SILENT
    # The other one is due.
    assert answered(waiting, amqp.QueueDeclareOk("due", 0, 0)) == ("queue.declare", "due")


def test_what_nobody_is_told_of_is_waited_for_all_the_same() -> None:
    """Else its answer would be taken for that of the next one."""
    waiting = ChannelAudit()
    waiting.asked(amqp.QueueDeclare(queue="there", passive=True), None)
    asked(waiting, amqp.QueueDeclare(queue="b"))
    (change,) = waiting.answered(amqp.QueueDeclareOk("there", 0, 0))
    assert change.kind is None
    assert answered(waiting, amqp.QueueDeclareOk("b", 0, 0)) == ("queue.declare", "b")


def test_a_consumer_is_told_with_the_tag_that_the_broker_gives() -> None:
    """That of direct replies is answered before what was asked earlier."""
    waiting = ChannelAudit()
    asked(waiting, amqp.QueueDelete(queue="q"), amqp.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True))
    (change,) = waiting.answered(amqp.BasicConsumeOk("amq.ctag-1"))
    assert change.detail == {"consumer_tag": "amq.ctag-1", "exclusive": False, "no_ack": True}
    assert answered(waiting, amqp.QueueDeleteOk(0)) == ("queue.delete", "q")


def test_of_several_cancels_the_tag_tells_which_is_answered() -> None:
    waiting = ChannelAudit()
    asked(waiting, amqp.BasicCancel("a"), amqp.BasicCancel("b"))
    for tag, left in (("b", 1), ("none", 1), ("a", 0)):
        tags = [change.detail["consumer_tag"] for change in waiting.answered(amqp.BasicCancelOk(tag))]
        assert tags == ([] if tag == "none" else [tag])
        assert len(waiting.changes) == left


def test_only_what_has_no_column_is_a_detail() -> None:
    assert detail_of(amqp.QueueBind(queue="q", exchange="x", routing_key="k")) == {}
    assert detail_of(amqp.QueueDeclare(queue="q", exclusive=True)) == {
        "durable": False,
        "auto_delete": False,
        "exclusive": True,
    }


# -- bodies --------------------------------------------------------------------------------------------------


def reading(wanted: int, due: int) -> Reading:
    operation = Operation(Principal("u", "/"), "basic.publish")
    return Reading(NOT_AUDITED, operation, kind("basic.publish"), wanted, due)


@pytest.mark.parametrize(
    ("wanted", "pieces", "kept"),
    [
        (10, [b"abc", b"def"], b"abcdef"),
        (4, [b"abc", b"def"], b"abcd"),
        (0, [b"abc", b"def"], b""),
        (10, [b"", b"abcdef"], b"abcdef"),
    ],
)
def test_so_much_is_kept_and_the_end_is_known(wanted: int, pieces: list[bytes], kept: bytes) -> None:
    it = reading(wanted, 6)
    ends = [it.take(memoryview(piece), 100) for piece in pieces]
    assert (ends, bytes(it.data)) == ([False, True], kept)


def test_where_there_is_no_room_nothing_behind_the_gap_is_kept() -> None:
    """What is told is the beginning of a body, and no body with a hole in it."""
    it = reading(10, 9)
    assert not it.take(memoryview(b"abc"), 2)
    assert not it.take(memoryview(b"def"), 100)
    assert it.take(memoryview(b"ghi"), 100)
    assert bytes(it.data) == b"ab"


def test_more_than_was_announced_ends_it_too() -> None:
    assert reading(10, 2).take(memoryview(b"abc"), 100)


def test_a_name_does_not_change_what_was_counted() -> None:
    """The kind of a request is a key of rows by now."""
    before = kind("queue.declare", "")
    change = Change(0, before, {})
    change.name_queue(before, "amq.gen-1")
    assert (before.queue, change.kind) == ("", attrs.evolve(before, queue="amq.gen-1"))


def test_what_is_too_much_to_remember_is_told_at_once() -> None:
    """It is told as it passes, and its answer is nobody else's."""
    waiting = ChannelAudit()
    names = [f"q{number}" for number in range(MOST_CHANGES)]
    asked(waiting, *(amqp.QueueDeclare(queue=name) for name in names))
    for name in ("more", "most"):
        change = waiting.asked(amqp.QueueDeclare(queue=name), kind("queue.declare", name))
        assert change is not None
    assert len(waiting.changes) == MOST_CHANGES
    for name in names[:-1]:
        assert answered(waiting, amqp.QueueDeclareOk(name, 0, 0)) == ("queue.declare", name)
    # Behind those that were told nothing is remembered yet, for the answers come in order.
    assert waiting.asked(amqp.QueueDeclare(queue="late"), kind("queue.declare", "late")) is not None
    assert answered(waiting, amqp.QueueDeclareOk(names[-1], 0, 0)) == ("queue.declare", names[-1])
    assert answered(waiting, amqp.BasicQosOk()) is None
    for name in ("more", "most", "late"):
        assert answered(waiting, amqp.QueueDeclareOk(name, 0, 0)) is None
    asked(waiting, amqp.QueueDeclare(queue="again"))
    assert answered(waiting, amqp.QueueDeclareOk("again", 0, 0)) == ("queue.declare", "again")
