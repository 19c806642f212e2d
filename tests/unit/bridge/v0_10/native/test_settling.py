"""Deliveries that wait for the client's word, by ids that start anew and sets that say too much."""

from __future__ import annotations

from amqpgate.bridge.v0_10.native.settling import MOST_RANGES, Unsettled
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated.v0_10 import MessageAccept, MessageReject, MessageRelease
from amqpgate.wire.v0_10.sequences import SequenceSet


def ids(*ranges: tuple[int, int]) -> SequenceSet:
    return SequenceSet(ranges)


def delivered(*numbers: int) -> Unsettled:
    unsettled = Unsettled()
    for number in numbers:
        unsettled.tag(number)
        unsettled.delivered(number)
    return unsettled


def test_tags_go_on_where_ids_start_anew() -> None:
    unsettled = Unsettled()
    assert [unsettled.tag(number) for number in (2**32 - 2, 2**32 - 1, 0, 1)] == [
        2**32 - 1,
        2**32,
        2**32 + 1,
        2**32 + 2,
    ]
    # A broker that counts back says nothing that could be a tag.
    assert delivered(0).tag(2**32 - 2) == 2**32 - 1


def test_oldest_are_settled_at_once_others_one_by_one() -> None:
    unsettled = delivered(0, 1, 2, 4, 5, 9)
    assert unsettled.settle(MessageRelease(transfers=ids((4, 5)))) == [
        amqp.BasicNack(5, requeue=True),
        amqp.BasicNack(6, requeue=True),
    ]
    assert unsettled.settle(MessageAccept(transfers=ids((0, 7)))) == [amqp.BasicAck(3, multiple=True)]
    assert unsettled.settle(MessageReject(transfers=ids((9, 9)))) == [amqp.BasicNack(10, requeue=False)]


def test_what_was_not_delivered_or_is_settled_is_nothing() -> None:
    unsettled = delivered(3)
    for _ in range(2):
        assert unsettled.settle(MessageAccept(transfers=ids((0, 2), (4, 0x7FFFFFFF)))) == []
    assert unsettled.settle(MessageAccept()) == []
    assert unsettled.settle(MessageAccept(transfers=ids((0, 0x7FFFFFFF)))) == [amqp.BasicAck(4)]
    assert unsettled.settle(MessageAccept(transfers=ids((0, 0x7FFFFFFF)))) == []


def test_ids_across_their_end() -> None:
    unsettled = delivered(2**32 - 1, 0, 1)
    accept = MessageAccept(transfers=ids((2**32 - 1, 0)))
    assert unsettled.settle(accept) == [amqp.BasicAck(2**32 + 1, multiple=True)]


def test_who_settles_every_other_one_is_not_followed() -> None:
    unsettled = delivered(*range(0, 4 * MOST_RANGES, 2))
    assert unsettled.settle(MessageAccept(transfers=ids((0, 10)))) == []
    unsettled.delivered(1)
