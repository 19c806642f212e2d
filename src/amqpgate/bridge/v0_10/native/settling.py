"""Which deliveries a client settles: sets of ids of commands, and acks of delivery tags.

The tag of a delivery is its command's id, counted from the first one that the session could have and on past
32 bits, plus one. So tags rise, as they must, and there are some that no delivery has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet

#: Ranges of deliveries that are not settled. Of a client that makes more, by settling every other one, the
#: copies say nothing from then on; what it settles passes all the same.
MOST_RANGES: Final = 4096

_HALF: Final = 1 << 31
_MASK: Final = 0xFFFF_FFFF

Settling = amqp10.MessageAccept | amqp10.MessageRelease | amqp10.MessageReject


class Unsettled:
    """The deliveries of one session that wait for the client's word."""

    __slots__ = ("_ids", "_last")

    def __init__(self) -> None:
        self._ids: RangeSet | None = RangeSet(MOST_RANGES)
        #: The last tag that was given, less one; None: none was.
        self._last: int | None = None

    def tag(self, command_id: int) -> int:
        """The delivery tag that stands for a command of the broker's."""
        self._last = self._counted(command_id)
        return self._last + 1

    def delivered(self, command_id: int) -> None:
        """The client is to settle it."""
        if self._ids is not None:
            try:
                self._ids.add(command_id)
            except ProtocolViolation:
                self._ids = None

    def settle(self, command: Settling) -> list[Method]:
        """The copies of what the client says; none for what it has not got."""
        if command.transfers is None or self._ids is None:
            return []
        methods: list[Method] = []
        try:
            for first, last, is_oldest in self._take(self._ids, command.transfers):
                if is_oldest:
                    methods.append(_of(command, last, multiple=last > first))
                else:
                    methods += [_of(command, tag, multiple=False) for tag in range(first, last + 1)]
        except ProtocolViolation:
            self._ids = None
        return methods

    def _counted(self, command_id: int) -> int:
        """An id, on past 32 bits."""
        if self._last is None:
            return command_id
        counted = self._last + ((command_id - self._last + _HALF) & _MASK) - _HALF
        return counted if counted >= 0 else command_id

    def _take(self, ids: RangeSet, wanted: SequenceSet) -> Iterator[tuple[int, int, bool]]:
        """Ranges of tags, and whether nothing older is left."""
        for lower, upper in ids.intersect(wanted).ranges:
            is_oldest = ids.first == lower
            ids.discard(lower, upper)
            first = self._counted(lower)
            yield first + 1, first + 1 + ((upper - lower) & _MASK), is_oldest


def _of(command: Settling, tag: int, *, multiple: bool) -> Method:
    match command:
        case amqp10.MessageAccept():
            return amqp.BasicAck(tag, multiple)
        case amqp10.MessageRelease():
            return amqp.BasicNack(tag, multiple, requeue=True)
        case _:
            return amqp.BasicNack(tag, multiple, requeue=False)
