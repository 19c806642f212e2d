"""The sender of a session's commands: their ids, and which of them the other end has completed.

Chapter "Sessions"; role "sender" of class "session". Nothing is kept of a command but its id: no session
outlives its attachment, so none is ever sent again.

Error handling
    :class:`ProtocolViolation` 542 for ids that were never sent, 506 for outstanding ids that fall apart.
"""

from __future__ import annotations

from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.v0_10.receiving import MOST_RANGES
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet, serial_add, serial_less

#: Once so many were sent, what comes before the first one is no longer told from what comes after the last.
_MEMORY: Final = 2**30


class CommandSender:
    """The outgoing commands of one session, from its attachment on; ``first`` is the id of the first."""

    __slots__ = ("_first", "_outstanding", "_reply", "is_due", "next_id")

    def __init__(self, first: int = 0) -> None:
        self.next_id = first
        #: None once serial numbers do not reach back to it.
        self._first: int | None = first
        #: Sent, and not known to be complete.
        self._outstanding = RangeSet(MOST_RANGES)
        #: What known-completed is to say, where a timely reply was asked for, and whether it was. It never
        #: goes out unasked: qpid-python's messaging API ends its connection when it gets one, and never asks.
        self._reply = SequenceSet()
        self.is_due = False

    def take(self) -> int:
        """The id of a command that is sent now."""
        command_id = self.next_id
        self._outstanding.add(command_id)
        self.next_id = serial_add(command_id, 1)
        if self._first is not None and serial_less(serial_add(self._first, _MEMORY), command_id):
            self._first = None
        return command_id

    def completed(self, control: amqp.SessionCompleted) -> SequenceSet:
        """session.completed: those of its ids that were not known to be complete before.

        Its set is cumulative. This takes time by the ranges that it and the outstanding ids have, not by ids.
        """
        commands = control.commands or SequenceSet()
        for lower, upper in commands.ranges:
            if not serial_less(upper, self.next_id) or (
                self._first is not None and serial_less(lower, self._first)
            ):
                raise ProtocolViolation(542, f"commands {lower} to {upper} were not sent")
        news = self._outstanding.intersect(commands)
        for lower, upper in news.ranges:
            self._outstanding.discard(lower, upper)
        if control.timely_reply:
            self._reply, self.is_due = commands, True
        return news

    def reply(self, most: int = MOST_RANGES) -> amqp.SessionKnownCompleted:
        """session.known-completed, with what the last session.completed had; at most so many ranges of it."""
        reply, self._reply, self.is_due = self._reply, SequenceSet(), False
        return amqp.SessionKnownCompleted(commands=SequenceSet(reply.ranges[-most:]))

    def point(self) -> amqp.SessionCommandPoint:
        """session.command-point, to be sent before the first command."""
        return amqp.SessionCommandPoint(command_id=self.next_id, command_offset=0)
