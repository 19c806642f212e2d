"""Serial numbers and their sets, against plain sets of Python."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.v0_10.sequences import MOST_RANGES, RangeSet, SequenceSet, serial_add, serial_less

NUMBER = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(
    ("first", "second", "less"),
    [
        (0, 1, True),
        (1, 0, False),
        (7, 7, False),
        (0xFFFF_FFFF, 0, True),
        (0, 0xFFFF_FFFF, False),
        (0xFFFF_FFF0, 15, True),
        (0, 0x7FFF_FFFF, True),
        (0x7FFF_FFFF, 0, False),
        # Half of the way around: RFC 1982 leaves it open.
        (0, 0x8000_0000, False),
        (0x8000_0000, 0, False),
    ],
)
def test_which_comes_first(first: int, second: int, less: bool) -> None:
    assert serial_less(first, second) is less


def test_numbers_start_anew() -> None:
    assert serial_add(0xFFFF_FFFF, 1) == 0
    assert serial_add(0xFFFF_FFFE, 5) == 3
    assert serial_add(3, -5) == 0xFFFF_FFFE


@given(NUMBER, st.integers(1, 2**31 - 1))
def test_what_is_added_is_later(number: int, count: int) -> None:
    assert serial_less(number, serial_add(number, count))
    assert not serial_less(serial_add(number, count), number)


@pytest.mark.parametrize(
    ("ranges", "raw"),
    [
        ((), "0000"),
        (((0, 0),), "0008 00000000 00000000"),
        (((0, 3), (5, 5)), "0010 00000000 00000003 00000005 00000005"),
        (((0, 3), (4, 5)), "0010 00000000 00000003 00000004 00000005"),
        (((0xFFFF_FFFE, 1), (3, 4)), "0010 fffffffe 00000001 00000003 00000004"),
        (((0, 0x7FFF_FFFF),), "0008 00000000 7fffffff"),
    ],
)
def test_sets_in_bytes(ranges: tuple[tuple[int, int], ...], raw: str) -> None:
    value, data = SequenceSet(ranges), bytes.fromhex(raw)
    assert value.encode() == data
    assert SequenceSet.decode(data) == (value, len(data))
    assert SequenceSet.decode(memoryview(b"x" + data + b"x"), 1) == (value, 1 + len(data))
    for end in range(len(data)):
        with pytest.raises(ProtocolViolation):
            SequenceSet.decode(data, 0, end)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("0007 00000000 000000", id="seven bytes"),
        pytest.param("0004 00000000", id="half a range"),
        pytest.param("000c 00000000 00000001 00000004", id="one range and a half"),
        pytest.param("ffff 00000000 00000001", id="longer than what there is"),
        pytest.param("0008 00000001 00000000", id="lower above upper"),
        pytest.param("0008 00000000 ffffffff", id="everything"),
        pytest.param("0008 00000000 80000000", id="half of everything, and one"),
        pytest.param("0010 00000004 00000005 00000000 00000001", id="descending"),
        pytest.param("0010 00000000 00000005 00000005 00000006", id="overlapping"),
        pytest.param("0018 00000000 60000000 60000001 c0000000 c0000001 00000010", id="all the way around"),
    ],
)
def test_malformed_sets(data: str) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        SequenceSet.decode(bytes.fromhex(data))
    assert caught.value.code == 503


def test_the_largest_set() -> None:
    ranges = tuple((2 * number, 2 * number) for number in range(MOST_RANGES))
    data = SequenceSet(ranges).encode()
    assert len(data) == 2 + 8 * MOST_RANGES
    assert SequenceSet.decode(data) == (SequenceSet(ranges), len(data))
    with pytest.raises(ValueError, match="8191 ranges"):
        SequenceSet((*ranges, (2**17, 2**17))).encode()


def _ids(ranges: tuple[tuple[int, int], ...]) -> set[int]:
    """For small sets only."""
    return {serial_add(lower, n) for lower, upper in ranges for n in range((upper - lower) % 2**32 + 1)}


@given(NUMBER, st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 9)), max_size=40))
def test_it_is_a_set(base: int, steps: list[tuple[bool, int, int]]) -> None:
    """Anywhere on the circle, across its seam too."""
    held, model = RangeSet(), set()
    for adds, at, length in steps:
        lower, upper = serial_add(base, at), serial_add(base, at + length)
        numbers = {serial_add(lower, n) for n in range(length + 1)}
        before = held.intersect(SequenceSet(((lower, upper),)))
        assert _ids(before.ranges) == numbers & model
        if adds:
            held.add(lower, upper)
            model |= numbers
        else:
            held.discard(lower, upper)
            model -= numbers
        now = held.frozen()
        assert _ids(now.ranges) == model
        assert (len(held), bool(held)) == (len(model), bool(model))
        # Never two ranges where one does, and always as the wire has it.
        assert all(serial_less(serial_add(one[1], 1), two[0]) for one, two in pairwise(now.ranges))
        assert SequenceSet.decode(now.encode())[0] == now
        assert all((number in held) is (number in model) for number in numbers)


@pytest.mark.parametrize("first", [0, 0x7FFF_FF00, 0xFFFF_FF00])
def test_ids_that_count_on_for_ever(first: int) -> None:
    """Over the seam, and over what is farthest from it."""
    held = RangeSet(most=2)
    number = first
    for _ in range(0x200):
        held.add(number)
        number = serial_add(number, 1)
    last = serial_add(number, -1)
    assert held.frozen() == SequenceSet(((first, last),))
    assert held.intersect(SequenceSet(((first, last),))) == held.frozen()
    # A set that was emptied long ago does not matter.
    held.discard(first, last)
    far = serial_add(first, 0x8000_0000)
    held.add(far)
    assert held.frozen() == SequenceSet(((far, far),))


def test_thousands_of_millions_of_ids_cost_nothing() -> None:
    held = RangeSet()
    for number in range(0, 600, 2):
        held.add(number)
    everything = SequenceSet(((0, 0x7FFF_FFFF),))
    assert held.intersect(everything) == held.frozen()
    held.add(0, 0x7FFF_FFFF)
    assert len(held) == 2**31
    assert held.intersect(everything) == everything
    held.discard(0, 0x7FFF_FFFF)
    assert not held


def test_as_many_ranges_as_it_may_hold_and_no_more() -> None:
    held = RangeSet(most=3)
    for number in (0, 10, 20):
        held.add(number, number + 5)
    before = held.frozen()
    with pytest.raises(ProtocolViolation) as caught:
        held.add(30)
    assert caught.value.code == 506
    with pytest.raises(ProtocolViolation):
        held.discard(12)
    assert held.frozen() == before
    # What makes no range more is no matter.
    held.add(6, 9)
    held.add(30)
    held.discard(20)
    assert held.frozen() == SequenceSet(((0, 15), (21, 25), (30, 30)))


@given(
    st.sampled_from([0, 5, 2**31 - 3, 2**32 - 4]),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.booleans()), max_size=20),
)
def test_reach_adds_and_says_what_there_is(base: int, steps: list[tuple[int, int, bool]]) -> None:
    one, other = RangeSet(), RangeSet()
    for offset, more, discards in steps:
        lower, upper = serial_add(base, offset), serial_add(base, offset + more)
        if discards:
            one.discard(lower, upper)
            other.discard(lower, upper)
            continue
        other.add(lower, upper)
        assert one.reach(lower, upper) == other.only
        assert one.frozen() == other.frozen()
