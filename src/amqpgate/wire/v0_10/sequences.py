"""Serial numbers and sets of them (AMQP 0-10, types "sequence-no" and "sequence-set"; RFC 1982, 32 bits).

The ids of commands count up and start anew after 4294967295. Which of two comes first follows from the
shorter way around: what is less than 2**31 ahead is later. A set is a list of ranges, each with both its ends
in it.

No function here walks a range id by id: a peer names two thousand million ids in eight bytes.

Error handling
    A set that is malformed: :class:`ProtocolViolation` 503. More ranges than a :class:`RangeSet` may hold:
    506.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain
from struct import Struct, pack, unpack_from
from typing import Final, Self

from attrs import frozen

from amqpgate.errors import ProtocolViolation

_RANGE: Final = Struct(">II")
_ONE_RANGE: Final = Struct(">HII")
_MASK: Final = 0xFFFF_FFFF
#: Half of the way around: two numbers that far apart have no order (RFC 1982, section 3.2).
_HALF: Final = 0x8000_0000

#: What the 16-bit length of a set on the wire has room for, at eight bytes a range.
MOST_RANGES: Final = 8191


def serial_add(number: int, count: int) -> int:
    """The number that is ``count`` behind ``number``, or before it if ``count`` is negative."""
    return (number + count) & _MASK


def serial_less(first: int, second: int) -> bool:
    """Whether ``first`` comes before ``second``; of two that are 2**31 apart neither does."""
    return 0 < (second - first) & _MASK < _HALF


@frozen
class SequenceSet:
    """A set of serial numbers as it stands on the wire.

    ``ranges`` are pairs of lower and upper, both in the set, ascending and disjoint, the last upper less than
    2**31 after the first lower.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    def encode(self) -> bytes:
        """A 16-bit length in bytes, and lower and upper of each range.

        :class:`ValueError` for more than `MOST_RANGES`.
        """
        count = len(self.ranges)
        if count == 1:
            # Nearly all of them.
            return _ONE_RANGE.pack(8, *self.ranges[0])
        if count > MOST_RANGES:
            raise ValueError(f"a sequence-set holds {MOST_RANGES} ranges, not {count}")
        return pack(f">H{2 * count}I", 8 * count, *chain.from_iterable(self.ranges))

    @classmethod
    def decode(cls, view: bytes | memoryview, at: int = 0, end: int | None = None) -> tuple[Self, int]:
        """The set at ``at``, which ends at ``end`` or before it, and where it ends.

        Violation 503 where it is cut short, its length is no multiple of eight, or its ranges are not as
        `SequenceSet` says.
        """
        if end is None:
            end = len(view)
        start = at + 2
        if start > end:
            raise _malformed("its length is cut short")
        size = view[at] << 8 | view[at + 1]
        at = start + size
        if at > end:
            raise _malformed("it is cut short")
        if not size:
            return cls(), at
        if size & 7:
            raise _malformed(f"{size} bytes are no whole ranges")
        if size == 8:
            # Nearly all of them.
            lower, upper = _RANGE.unpack_from(view, start)
            if (upper - lower) & _MASK >= _HALF:
                raise _malformed("its ranges do not ascend")
            return cls(((lower, upper),)), at
        numbers: tuple[int, ...] = unpack_from(f">{size >> 2}I", view, start)
        first = numbers[0]
        last = -1
        for number in range(0, len(numbers), 2):
            lower, upper = (numbers[number] - first) & _MASK, (numbers[number + 1] - first) & _MASK
            if not last < lower <= upper < _HALF:
                raise _malformed("its ranges do not ascend")
            last = upper
        return cls((*zip(numbers[::2], numbers[1::2], strict=True),)), at


def ids_of(numbers: Iterable[int]) -> SequenceSet:
    """The set of these numbers; violation 506 if they make more than `MOST_RANGES` ranges."""
    ids = RangeSet(MOST_RANGES)
    for number in numbers:
        ids.add(number)
    return ids.frozen()


def sets_of(numbers: Iterable[int], most: int) -> Iterator[SequenceSet]:
    """Ascending numbers as sets of at most ``most`` ranges each."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and serial_add(ranges[-1][1], 1) == number:
            ranges[-1] = ranges[-1][0], number
            continue
        if len(ranges) == most:
            yield SequenceSet(tuple(ranges))
            ranges.clear()
        ranges.append((number, number))
    if ranges:
        yield SequenceSet(tuple(ranges))


def _malformed(what: str) -> ProtocolViolation:
    return ProtocolViolation(503, f"malformed sequence-set: {what}")


class RangeSet:
    """A set of serial numbers that changes; it holds at most ``most`` ranges, whatever is put into it.

    All its numbers must lie within 2**31 of each other, as those of one session's outstanding commands do.
    """

    __slots__ = ("_lowers", "_most", "_near", "_uppers")

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        # Ranges in order, as numbers that do not start anew: the serial number is their lower 32 bits.
        self._lowers: list[int] = []
        self._uppers: list[int] = []
        # The last number that was put in: serial numbers are looked for on the shorter way from here.
        self._near = 0

    def add(self, lower: int, upper: int | None = None) -> None:
        """Put in one number, or all from ``lower`` to ``upper``.

        Violation 506, and nothing is changed, if that makes more ranges than there may be.
        """
        # As in `_unwrapped`: this is done for each command.
        near = self._near
        first = last = near + ((lower - near + _HALF) & _MASK) - _HALF
        if upper is not None:
            last += (upper - lower) & _MASK
        lowers, uppers = self._lowers, self._uppers
        if uppers and uppers[-1] == first - 1:
            # It goes on where the last one ends, as nearly always.
            uppers[-1] = self._near = last
            return
        # Those that touch the new range become one with it.
        begin = bisect_left(uppers, first - 1)
        end = bisect_left(lowers, last + 2)
        if begin < end:
            first = min(first, lowers[begin])
            last = max(last, uppers[end - 1])
        elif len(lowers) >= self._most:
            raise ProtocolViolation(506, f"a set of more than {self._most} ranges of commands")
        lowers[begin:end] = [first]
        uppers[begin:end] = [last]
        self._near = last

    def reach(self, lower: int, upper: int) -> tuple[int, int] | None:
        """`add`, and `only`."""
        uppers = self._uppers
        if len(uppers) == 1 and uppers[0] == self._near and (lower - self._near) & _MASK == 1:
            # The one range goes on.
            uppers[0] = self._near = self._near + 1 + ((upper - lower) & _MASK)
            return self._lowers[0] & _MASK, upper
        self.add(lower, upper)
        return self.only

    def discard(self, lower: int, upper: int | None = None) -> None:
        """Take out one number, or all from ``lower`` to ``upper``, as far as they are in.

        Violation 506, and nothing is changed, if that makes more ranges than there may be.
        """
        first, last = self._unwrapped(lower, upper)
        lowers, uppers = self._lowers, self._uppers
        begin = bisect_left(uppers, first)
        end = bisect_left(lowers, last + 1)
        if begin >= end:
            return
        left = [(lowers[begin], first - 1)] if lowers[begin] < first else []
        if uppers[end - 1] > last:
            left.append((last + 1, uppers[end - 1]))
        if len(lowers) - (end - begin) + len(left) > self._most:
            raise ProtocolViolation(506, f"a set of more than {self._most} ranges of commands")
        lowers[begin:end] = [one for one, _ in left]
        uppers[begin:end] = [one for _, one in left]

    def intersect(self, wanted: SequenceSet) -> SequenceSet:
        """What is in both. It takes time by the number of ranges, not of ids."""
        lowers, uppers = self._lowers, self._uppers
        found: list[tuple[int, int]] = []
        for lower, upper in wanted.ranges:
            first, last = self._unwrapped(lower, upper)
            at = bisect_left(uppers, first)
            while at < len(lowers) and lowers[at] <= last:
                found.append((max(first, lowers[at]) & _MASK, min(last, uppers[at]) & _MASK))
                at += 1
        return SequenceSet(tuple(found))

    @property
    def first(self) -> int | None:
        """The number that comes before all others."""
        return self._lowers[0] & _MASK if self._lowers else None

    @property
    def only(self) -> tuple[int, int] | None:
        """Both ends of the one range that it is; None: it is not one."""
        if len(self._lowers) != 1:
            return None
        return self._lowers[0] & _MASK, self._uppers[0] & _MASK

    def frozen(self) -> SequenceSet:
        """The set as it is now."""
        pairs = zip(self._lowers, self._uppers, strict=True)
        return SequenceSet(tuple([(lower & _MASK, upper & _MASK) for lower, upper in pairs]))

    def __contains__(self, number: int) -> bool:
        first, _ = self._unwrapped(number, None)
        at = bisect_left(self._uppers, first)
        return at < len(self._lowers) and self._lowers[at] <= first

    def __len__(self) -> int:
        """How many numbers are in."""
        return sum(self._uppers) - sum(self._lowers) + len(self._lowers)

    def __bool__(self) -> bool:
        return bool(self._lowers)

    def _unwrapped(self, lower: int, upper: int | None) -> tuple[int, int]:
        first = self._near + ((lower - self._near + _HALF) & _MASK) - _HALF
        return (first, first) if upper is None else (first, first + ((upper - lower) & _MASK))
