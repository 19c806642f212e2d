"""Incoming commands: ids across the wrap, completion in order and out of it, and their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10 import receiving
from amqpgate.protocol.v0_10.receiving import MOST_RANGES, TELL_EVERY, CommandReceiver
from amqpgate.wire.v0_10.sequences import SequenceSet, serial_add

#: Where ids may start: amid, and right before they start anew.
STARTS = st.sampled_from([0, 1000, 2**31 - 3, 2**32 - 5, 2**32 - 1])


def receiver(start: int = 0, count: int = 0, *, is_in_order: bool = True) -> CommandReceiver:
    """One that has got ``count`` commands."""
    made = CommandReceiver(is_in_order=is_in_order)
    made.start(start)
    for number in range(count):
        assert made.take(sync=False) == serial_add(start, number)
    return made


def sequence(*ranges: tuple[int, int]) -> SequenceSet:
    return SequenceSet(ranges)


def numbers(found: SequenceSet, start: int) -> set[int]:
    """The members of a set as offsets from ``start``."""
    ids = set()
    for lower, upper in found.ranges:
        first = (lower - start) % 2**32
        ids |= set(range(first, first + (upper - lower) % 2**32 + 1))
    return ids


# -- ids ----------------------------------------------------------------------------------------------------


def test_ids_count_from_the_command_point_and_start_anew() -> None:
    made = receiver(4294967290)
    assert [made.take(sync=False) for _ in range(8)] == [*range(4294967290, 2**32), 0, 1]
    made.finish(4294967290, 1)
    assert made.tell().commands == sequence((4294967290, 1))


def test_a_command_before_the_command_point_is_409() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        CommandReceiver(is_in_order=True).take(sync=False)
    assert caught.value.code == 409


def test_any_command_point_before_the_first_command() -> None:
    made = receiver(5)
    made.start(3)
    made.start(4294967290)
    assert made.take(sync=False) == 4294967290


def test_a_command_point_ahead_is_542() -> None:
    made = receiver(0, 3)
    made.start(3)
    with pytest.raises(ProtocolViolation) as caught:
        made.start(4)
    assert caught.value.code == 542
    assert made.take(sync=False) == 3


def test_what_is_sent_again_is_dropped() -> None:
    made = receiver(2**32 - 2, 4)
    made.start(2**32 - 1)
    assert [made.take(sync=False) for _ in range(5)] == [None, None, None, 2, 3]


def test_what_is_sent_again_with_the_sync_bit_is_told_again() -> None:
    made = receiver(0, 2)
    made.finish(0, 1)
    made.tell()
    made.start(1)
    assert made.take(sync=True) is None
    assert made.is_due
    assert made.tell().commands == sequence((0, 1))


def test_expected_is_empty_for_a_new_session_and_the_next_id_after() -> None:
    assert CommandReceiver(is_in_order=True).expected == sequence()
    made = receiver(2**32 - 1)
    assert made.expected == sequence()
    made.take(sync=False)
    assert made.expected == sequence((0, 0))


# -- completion ---------------------------------------------------------------------------------------------


def test_in_order_nothing_is_told_above_the_lowest_unfinished() -> None:
    made = receiver(0, 6)
    made.finish(2, 3)
    made.finish(5)
    assert made.owed() == sequence()
    made.finish(0)
    assert made.owed() == sequence((0, 0))
    made.finish(1)
    assert made.owed() == sequence((0, 3))
    made.finish(4)
    assert made.owed() == sequence((0, 5))


def test_out_of_order_what_is_finished_is_told() -> None:
    made = receiver(0, 6, is_in_order=False)
    made.finish(2, 3)
    made.finish(5)
    assert made.owed() == sequence((2, 3), (5, 5))
    made.finish(0, 1)
    assert made.owed() == sequence((0, 3), (5, 5))


@pytest.mark.parametrize("is_in_order", [True, False])
def test_what_is_told_is_told_again_until_it_is_known(is_in_order: bool) -> None:
    made = receiver(0, 6, is_in_order=is_in_order)
    made.finish(0, 2)
    assert made.tell().commands == made.tell().commands == sequence((0, 2))
    made.forget(sequence((0, 1)))
    made.finish(3)
    assert made.tell().commands == sequence((2, 3))
    made.forget(sequence((2, 3)))
    assert made.tell().commands == sequence()


def test_known_completed_of_what_has_not_come_is_542() -> None:
    made = receiver(0, 3)
    made.finish(0, 2)
    for known in (sequence((0, 3)), sequence((1, 1), (7, 9))):
        with pytest.raises(ProtocolViolation) as caught:
            made.forget(known)
        assert caught.value.code == 542
    assert made.owed() == sequence((0, 2))


@pytest.mark.parametrize("is_in_order", [True, False])
def test_what_is_finished_twice_is_passed_over(is_in_order: bool) -> None:
    made = receiver(0, 4, is_in_order=is_in_order)
    made.finish(0, 2)
    made.forget(sequence((0, 2)))
    made.finish(1)
    made.finish(0, 2)
    assert made.owed() == sequence()
    made.finish(1, 3)
    assert made.owed() == sequence((3, 3))


def test_what_has_not_come_cannot_be_finished() -> None:
    made = receiver(10, 3)
    for first, last in [(13, 13), (10, 13), (12, 10)]:
        with pytest.raises(ValueError, match="have not come"):
            made.finish(first, last)
    assert made.owed() == sequence()


def test_the_sync_bit_is_told_once_it_and_all_before_it_are_complete() -> None:
    made = receiver(0, 2)
    made.take(sync=True)
    made.take(sync=False)
    made.finish(2, 3)
    made.finish(0)
    assert not made.is_due
    made.finish(1)
    assert made.is_due
    assert made.tell().commands == sequence((0, 3))
    assert not made.is_due


def test_without_a_question_a_sender_is_told_every_so_often() -> None:
    made = receiver(0, 3 * TELL_EVERY)
    told = 0
    for number in range(3 * TELL_EVERY):
        made.finish(number)
        if made.is_due:
            told += 1
            assert made.tell().commands == sequence((0, number))
    assert told == 3


def test_a_client_is_never_asked_for_a_timely_reply() -> None:
    made = receiver(0, 10)
    made.finish(0, 9)
    assert not made.tell().timely_reply


def test_a_client_is_never_asked_though_it_makes_holes() -> None:
    made = receiver(0, 400)
    made.finish(0, 399)
    made.forget(SequenceSet(tuple((number, number) for number in range(1, 300, 2))))
    told = made.tell()
    assert len(told.commands.ranges) > 100
    assert not told.timely_reply


def test_a_broker_is_asked_once_the_set_falls_apart() -> None:
    made = receiver(0, 400, is_in_order=False)
    for number in range(0, 126, 2):
        made.finish(number)
    assert not made.tell().timely_reply
    made.finish(126)
    told = made.tell()
    assert told.timely_reply
    made.forget(told.commands)
    assert made.owed() == sequence()


@given(st.data(), STARTS, st.booleans())
def test_it_is_as_plain_sets_are(data: st.DataObject, start: int, is_in_order: bool) -> None:
    made = receiver(start, is_in_order=is_in_order)
    count = 0
    finished: set[int] = set()
    known: set[int] = set()

    def tellable() -> set[int]:
        lowest = next(number for number in range(count + 1) if number not in finished)
        return finished - known if not is_in_order else set(range(lowest)) - known

    for _ in range(data.draw(st.integers(1, 30))):
        match data.draw(st.sampled_from(["take", "finish", "known"])):
            case "take":
                for _ in range(data.draw(st.integers(1, 4))):
                    assert made.take(sync=data.draw(st.booleans())) == serial_add(start, count)
                    count += 1
            case "finish" if left := sorted(set(range(count)) - finished):
                first = data.draw(st.sampled_from(left))
                last = first
                while last + 1 in left and data.draw(st.booleans()):
                    last += 1
                finished |= set(range(first, last + 1))
                made.finish(serial_add(start, first), serial_add(start, last))
            case "known" if told := sorted(tellable()):
                number = data.draw(st.sampled_from(told))
                known.add(number)
                made.forget(sequence((serial_add(start, number),) * 2))
        assert numbers(made.owed(), start) == tellable()
        assert not made.is_due or numbers(made.tell().commands, start) == tellable()


# -- what it costs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_in_order", [True, False])
def test_every_second_id_is_506_above_so_many_ranges(is_in_order: bool) -> None:
    made = receiver(0, 3 * MOST_RANGES, is_in_order=is_in_order)
    for number in range(MOST_RANGES):
        made.finish(2 * number + 1)
    with pytest.raises(ProtocolViolation) as caught:
        made.finish(2 * MOST_RANGES + 1)
    assert caught.value.code == 506
    made.finish(0)
    assert made.owed().ranges[0] == (0, 1)


@pytest.mark.parametrize("is_in_order", [True, False])
def test_what_was_ahead_is_no_more_once_it_is_caught_up_with(is_in_order: bool) -> None:
    count = 4 * MOST_RANGES
    made = receiver(0, count, is_in_order=is_in_order)
    for number in range(0, count, 2):
        made.finish(number + 1)
        made.finish(number)
    assert made.owed() == sequence((0, count - 1))


def test_holes_that_a_sender_makes_are_506_above_so_many() -> None:
    made = receiver(0, 3 * MOST_RANGES)
    made.finish(0, 3 * MOST_RANGES - 1)
    made.forget(SequenceSet(tuple((2 * number, 2 * number) for number in range(MOST_RANGES))))
    with pytest.raises(ProtocolViolation) as caught:
        made.forget(sequence((2 * MOST_RANGES,) * 2, (2 * MOST_RANGES + 2,) * 2))
    assert caught.value.code == 506


def test_commands_that_wait_with_the_sync_bit_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "MOST_SYNCS", 3)
    made = receiver()
    for _ in range(3):
        made.take(sync=True)
    with pytest.raises(ProtocolViolation) as caught:
        made.take(sync=True)
    assert caught.value.code == 506
    assert made.upcoming == 3


def test_what_is_told_fits_where_it_must() -> None:
    made = receiver(0, 10, is_in_order=False)
    for number in (1, 3, 5, 7):
        made.finish(number)
    assert made.tell(2).commands == sequence((5, 5), (7, 7))
    assert made.tell().commands == sequence((1, 1), (3, 3), (5, 5), (7, 7))


def test_a_session_that_lives_long_forgets_what_serial_numbers_do_not_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiving, "_MEMORY", 100)
    made = receiver(2**32 - 50)
    for number in range(300):
        made.take(sync=False)
        made.finish(serial_add(2**32 - 50, number))
        told = made.tell().commands
        assert len(told.ranges) == 1
        assert (told.ranges[0][1] - told.ranges[0][0]) % 2**32 <= 100
    assert told.ranges[0][1] == 249
