"""The receiver of a session's commands: which ids they have, which are complete, what their sender is told.

Chapter "Sessions"; role "receiver" of class "session". No command carries its id: both ends count, from where
session.command-point says.

::

             complete        finished    unfinished    finished ahead    to come
      ──────────────────────┼─────────┼─────────────┼────────────────┼──────────────
       known to the sender    owed     ▲                               ▲
       (known-completed)               └ lowest                        └ highest

In order, as towards clients, nothing above the lowest unfinished id is told. What is owed is one range then,
however long the session lives, and a client that looks at no set but the last finds all it waits for in it.
Out of order, as towards brokers, an id is owed once it is finished, for credit comes back by it (decision
0035).

Memory
    `MOST_RANGES` ranges of ids twice, and a number for each unfinished command with the sync bit.

Error handling
    :class:`ProtocolViolation` 409 for a command before command-point, 542 for ids that have not come, 506 for
    sets that fall apart.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet, serial_add, serial_less

#: Ranges that a set of a session's own may fall apart into.
MOST_RANGES: Final = 1024

#: A sender that asks for nothing is told after so many commands. qpidd does it after 65536, and its JMS
#: client waits once it has as many (``qpid.session.command_limit``). 26 bytes for 4096 commands cost nothing.
TELL_EVERY: Final = 4096

#: Unfinished commands with the sync bit.
MOST_SYNCS: Final = 65536

#: With so many ranges in what is owed, the sender is asked to say which it knows.
_ASK_AT: Final = 64

#: What is further back than this counts as known, for serial numbers are in order within 2**31 only.
_MEMORY: Final = 2**30

_MASK: Final = 0xFFFF_FFFF
_HALF: Final = 0x8000_0000


class CommandReceiver:
    """The incoming commands of one session, from its attachment on."""

    __slots__ = (
        "_ahead",
        "_highest",
        "_is_ahead",
        "_is_in_order",
        "_is_new",
        "_lowest",
        "_owed",
        "_owed_to",
        "_syncs",
        "_untold",
        "is_due",
        "upcoming",
    )

    def __init__(self, *, is_in_order: bool) -> None:
        self._is_in_order = is_in_order
        #: The id of the next command; None before command-point.
        self.upcoming: int | None = None
        #: No command has come yet.
        self._is_new = True
        #: The lowest id that has not come: above ``upcoming`` only while commands are sent again.
        self._highest = 0
        #: The lowest id that is not finished.
        self._lowest = 0
        #: Finished ids above it, and whether there are any.
        self._ahead = RangeSet(MOST_RANGES)
        self._is_ahead = False
        #: Finished ids that the sender is told, until it knows them.
        self._owed = RangeSet(MOST_RANGES)
        #: In order, those from here to ``_lowest`` are owed as well: they are put in when somebody asks.
        self._owed_to = 0
        #: Unfinished ids with the sync bit, ascending.
        self._syncs: deque[int] = deque()
        #: How many ids were finished since the sender was told.
        self._untold = 0
        #: Whether the sender is to be told now.
        self.is_due = False

    @property
    def expected(self) -> SequenceSet:
        """What session.expected says: the next id; empty if no command has come (rule
        "commands-empty-means-new-session").
        """
        if self._is_new or self.upcoming is None:
            return SequenceSet()
        return SequenceSet(((self.upcoming, self.upcoming),))

    @property
    def is_untold(self) -> bool:
        """Whether commands are complete, and the sender has not heard of it."""
        return self._untold > 0

    def start(self, command_id: int) -> None:
        """session.command-point: the id of the command that comes next.

        Any id before the first command. Later on, any that came already: it and those after it are dropped
        when they come again. One that is ahead is 542.
        """
        if self._is_new:
            self._highest = self._lowest = self._owed_to = command_id
        elif serial_less(self._highest, command_id):
            raise ProtocolViolation(542, f"command-point {command_id} is ahead of {self._highest}")
        self.upcoming = command_id

    def take(self, *, sync: bool) -> int | None:
        """A command has come: its id, or None for one that came before."""
        command_id = self.upcoming
        if command_id is None:
            raise ProtocolViolation(409, "a command came before session.command-point")
        if command_id != self._highest:
            self.upcoming = serial_add(command_id, 1)
            self.is_due |= sync
            return None
        if sync:
            if len(self._syncs) >= MOST_SYNCS:
                raise ProtocolViolation(506, f"more than {MOST_SYNCS} commands wait to be complete")
            self._syncs.append(command_id)
        self._is_new = False
        self.upcoming = self._highest = serial_add(command_id, 1)
        return command_id

    def take_next(self, *, sync: bool) -> int | None:
        """As `take`, of a command that has not come before, and may come; None, and nothing has changed, of
        any other."""
        command_id = self.upcoming
        if command_id is None or command_id != self._highest or len(self._syncs) >= MOST_SYNCS:
            return None
        if sync:
            self._syncs.append(command_id)
        self._is_new = False
        self.upcoming = self._highest = (command_id + 1) & _MASK
        return command_id

    def finish(self, first: int, last: int | None = None) -> None:
        """The commands from ``first`` to ``last`` are done. Those below the lowest unfinished one are passed
        over.

        :class:`ValueError` for ids that have not come. Violation 506 if more than `MOST_RANGES` ranges of ids
        are finished apart from each other.
        """
        if last is None:
            if self._is_in_order and first == self._lowest != self._highest and not self._is_ahead:
                # The lowest unfinished command, in order: nearly always it is that one.
                self._lowest = (first + 1) & _MASK
                self._untold += 1
                if self._untold >= TELL_EVERY:
                    self.is_due = True
                if self._syncs and self._syncs[0] == first:
                    self._syncs.popleft()
                    self.is_due = True
                return
            last = first
        elif serial_less(last, first):
            raise ValueError(f"commands {first} to {last} have not come")
        if not serial_less(last, self._highest):
            raise ValueError(f"commands {first} to {last} have not come")
        if first != self._lowest and serial_less(first, self._lowest):
            first = self._lowest
            if serial_less(last, first):
                return
        if not self._is_in_order:
            self._owed.add(first, last)
            self._count(first, last)
        if first != self._lowest:
            self._ahead.add(first, last)
            self._is_ahead = True
            return
        if self._is_ahead:
            last = self._joined(first, last)
        if self._is_in_order:
            self._count(first, last)
        self._lowest = serial_add(last, 1)
        while self._syncs and serial_less(self._syncs[0], self._lowest):
            self._syncs.popleft()
            self.is_due = True

    def ask(self) -> None:
        """session.flush, or the owner's wish: the sender is to be told, even if nothing is complete."""
        self.is_due = True

    def owed(self, most: int = MOST_RANGES) -> SequenceSet:
        """All that is complete but what the sender knows (rule "exclude-known-complete"); the latest ranges
        if it is more than ``most``.
        """
        self._catch_up()
        owed = self._owed.frozen()
        return owed if len(owed.ranges) <= most else SequenceSet(owed.ranges[-most:])

    def tell_range(self) -> tuple[int, int] | None:
        """As `tell`, where it is one range, as nearly always in order: its ends. None, and nothing has
        changed, where it is not."""
        if self._is_in_order and self._owed_to != self._lowest:
            owed = self._owed.reach(self._owed_to, (self._lowest - 1) & _MASK)
            self._owed_to = self._lowest
        else:
            owed = self._owed.only
        if owed is None or 0 < (self._highest - owed[0] - _MEMORY) & _MASK < _HALF:
            return None
        self._untold = 0
        self.is_due = False
        return owed

    def tell(self, most: int = MOST_RANGES) -> amqp.SessionCompleted:
        """session.completed, with what is owed; the latest ranges if it is more than ``most``."""
        owed = self.owed()
        if owed.ranges:
            lowest, _ = owed.ranges[0]
            if serial_less(serial_add(lowest, _MEMORY), self._highest):
                self._owed.discard(lowest, serial_add(self._highest, -_MEMORY))
                owed = self.owed()
        self._untold = 0
        self.is_due = False
        asks = not self._is_in_order and len(owed.ranges) >= _ASK_AT
        if len(owed.ranges) > most:
            owed = SequenceSet(owed.ranges[-most:])
        return amqp.SessionCompleted(owed, asks)

    def forget(self, known: SequenceSet) -> None:
        """session.known-completed: the sender knows that these are complete.

        Violation 542 for ids that have not come.
        """
        for _, upper in known.ranges:
            if not serial_less(upper, self._highest):
                raise ProtocolViolation(
                    542, f"command {upper} cannot be known to be complete: it has not come"
                )
        self._catch_up()
        for lower, upper in known.ranges:
            self._owed.discard(lower, upper)

    def _count(self, first: int, last: int) -> None:
        self._untold += ((last - first) & 0xFFFF_FFFF) + 1
        if self._untold >= TELL_EVERY:
            self.is_due = True

    def _catch_up(self) -> None:
        if self._is_in_order and self._owed_to != self._lowest:
            self._owed.add(self._owed_to, (self._lowest - 1) & _MASK)
            self._owed_to = self._lowest

    def _joined(self, first: int, last: int) -> int:
        """The last of the finished ids that follow each other from ``first`` on; they are ahead no more."""
        beyond = SequenceSet(((last, serial_add(last, _MEMORY)),))
        for lower, upper in self._ahead.intersect(beyond).ranges[:1]:
            if not serial_less(serial_add(last, 1), lower):
                last = upper
        self._ahead.discard(first, last)
        self._is_ahead = bool(self._ahead)
        return last
