"""Outgoing commands: ids, and which of them are complete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10 import sending
from amqpgate.protocol.v0_10.receiving import MOST_RANGES
from amqpgate.protocol.v0_10.sending import CommandSender
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import SequenceSet, serial_add


def sender(count: int, first: int = 0) -> CommandSender:
    made = CommandSender(first)
    for number in range(count):
        assert made.take() == serial_add(first, number)
    return made


def completed(*ranges: tuple[int, int], timely: bool = False) -> amqp.SessionCompleted:
    return amqp.SessionCompleted(commands=SequenceSet(ranges), timely_reply=timely)


def test_each_id_is_told_once_though_the_set_is_cumulative() -> None:
    made = sender(10)
    assert made.completed(completed((0, 3))).ranges == ((0, 3),)
    assert made.completed(completed((0, 5))).ranges == ((4, 5),)
    assert made.completed(completed((0, 5), (8, 8))).ranges == ((8, 8),)
    assert made.completed(completed((0, 9))).ranges == ((6, 7), (9, 9))
    assert made.completed(completed((0, 9))).ranges == ()
    assert len(made._outstanding) == 0


def test_absent_and_empty_sets_complete_nothing() -> None:
    made = sender(3)
    assert made.completed(amqp.SessionCompleted()) == SequenceSet()
    assert made.completed(completed()) == SequenceSet()
    assert len(made._outstanding) == 3


def test_ids_start_anew() -> None:
    made = sender(6, 2**32 - 3)
    assert made.next_id == 3
    assert made.completed(completed((2**32 - 2, 1))).ranges == ((2**32 - 2, 1),)
    assert len(made._outstanding) == 2


@pytest.mark.parametrize(
    "ranges", [((3, 3),), ((0, 3),), ((0, 0), (2, 7)), ((2**32 - 1, 2**32 - 1),), ((2**32 - 1, 1),)]
)
def test_ids_that_were_not_sent_are_542(ranges: tuple[tuple[int, int], ...]) -> None:
    made = sender(3)
    with pytest.raises(ProtocolViolation) as caught:
        made.completed(completed(*ranges))
    assert caught.value.code == 542
    assert len(made._outstanding) == 3


def test_after_very_many_commands_older_ids_are_not_told_from_newer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "_MEMORY", 100)
    made = sender(99)
    with pytest.raises(ProtocolViolation):
        made.completed(completed((2**32 - 1, 5)))
    for _ in range(5):
        made.take()
    assert made.completed(completed((2**32 - 1, 5))).ranges == ((0, 5),)


def test_known_completed_is_owed_only_if_it_was_asked_for() -> None:
    made = sender(5)
    made.completed(completed((0, 1)))
    assert not made.is_due
    made.completed(completed((0, 2), timely=True))
    made.completed(completed((0, 3), timely=True))
    made.completed(completed((0, 4)))
    assert made.is_due
    assert made.reply() == amqp.SessionKnownCompleted(commands=SequenceSet(((0, 3),)))
    assert not made.is_due


def test_an_empty_set_is_answered_too() -> None:
    """qpidd sends such."""
    made = sender(1)
    made.completed(completed(timely=True))
    assert made.reply() == amqp.SessionKnownCompleted(commands=SequenceSet())


def test_a_reply_fits_where_it_must() -> None:
    made = sender(10)
    made.completed(completed((0, 0), (2, 2), (4, 4), timely=True))
    assert made.reply(2).commands.ranges == ((2, 2), (4, 4))


def test_the_command_point_is_the_next_id() -> None:
    assert sender(0, 7).point() == amqp.SessionCommandPoint(command_id=7, command_offset=0)


def test_a_set_of_very_many_ids_takes_no_time() -> None:
    made = sender(3)
    with pytest.raises(ProtocolViolation):
        made.completed(completed((0, 0x7FFF_FFFF)))
    ranges = [(2 * number, 2 * number) for number in range(8191)]
    made = sender(2 * 8191)
    made.completed(completed((0, 2 * 8191 - 1)))
    assert made.completed(completed(*ranges)) == SequenceSet()


def test_every_second_id_is_506_above_so_many_ranges() -> None:
    made = sender(3 * MOST_RANGES)
    with pytest.raises(ProtocolViolation) as caught:
        made.completed(completed(*[(2 * number + 1,) * 2 for number in range(MOST_RANGES + 1)]))
    assert caught.value.code == 506


@given(st.lists(st.sets(st.integers(0, 30))), st.sampled_from([0, 2**32 - 7, 2**31 - 2]))
def test_it_is_as_plain_sets_are(sets: list[set[int]], first: int) -> None:
    made = sender(31, first)
    done: set[int] = set()
    for ids in sets:
        ranges = [(serial_add(first, number),) * 2 for number in sorted(ids)]
        news = made.completed(completed(*ranges))
        found = {
            (lower - first) % 2**32 + at
            for lower, upper in news.ranges
            for at in range((upper - lower) % 2**32 + 1)
        }
        assert found == ids - done
        done |= ids
        assert len(made._outstanding) == 31 - len(done)
