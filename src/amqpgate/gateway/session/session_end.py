"""How a session ends: the close that its peers agree on, and why it leaves the data path."""

from __future__ import annotations

from enum import Enum

import attrs

from amqpgate.datapath.engine import End
from amqpgate.datapath.tables import Side


class CloseState(Enum):
    """How far an agreed close of the connection has come."""

    NO = "no"
    #: A side sent connection.close, or both did; it was passed on.
    ASKED = "asked"
    #: Every close has been answered, and the answers were passed on.
    DONE = "done"


@attrs.frozen
class SessionOutcome:
    """Why a session left the data path."""

    end: End
    side: Side | None
    error: Exception | None


#: Of a session that nothing ends early.
_FINISHED = SessionOutcome(End.FINISHED, None, None)


@attrs.define(weakref_slot=False)
class SessionEnd:
    """The end of one session, as far as it has come."""

    state: CloseState = CloseState.NO
    #: Who asked for a close that has not been answered. Both may ask at once.
    closers: tuple[Side, ...] = ()
    outcome: SessionOutcome = _FINISHED

    def asked(self, side: Side) -> None:
        """``side`` asks for a close."""
        self.state = CloseState.ASKED
        if side not in self.closers:
            self.closers += (side,)

    def answered(self, side: Side) -> None:
        """``side`` has its answer."""
        self.closers = tuple(one for one in self.closers if one is not side)
        if not self.closers:
            self.state = CloseState.DONE

    def failed(self, side: Side, why: Exception) -> None:
        """The session ends because of what ``side`` does."""
        self.outcome = SessionOutcome(End.FAILED, side, why)

    def left(self, end: End, side: Side | None, error: Exception | None) -> None:
        """The session has left the data path. Why it failed, if it did, stays."""
        if self.outcome.error is None:
            self.outcome = SessionOutcome(end, side, error)
