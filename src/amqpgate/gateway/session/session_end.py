"""How a session ends: the close that its peers agree on, and why it leaves the data path."""

from __future__ import annotations

from enum import Enum
from typing import Final

from amqpgate.datapath.engine import End
from amqpgate.datapath.tables import Side
from amqpgate.values import frozen


class CloseState(Enum):
    """How far an agreed close of the connection has come."""

    NO = "no"
    #: A side sent connection.close, or both did; it was passed on.
    ASKED = "asked"
    #: Every close has been answered, and the answers were passed on.
    DONE = "done"


# To look a member of an enum up takes Python 3.11 a detour each time.
_ASKED: Final = CloseState.ASKED
_DONE: Final = CloseState.DONE


@frozen
class SessionOutcome:
    """Why a session left the data path."""

    end: End
    side: Side | None
    error: Exception | None


@frozen
class SessionEnd:
    """The end of one session, as far as it has come. What happens makes another one of it."""

    state: CloseState = CloseState.NO
    #: Who asked for a close that has not been answered. Both may ask at once.
    closers: tuple[Side, ...] = ()
    #: Of a session that nothing ends early.
    outcome: SessionOutcome = SessionOutcome(End.FINISHED, None, None)

    @property
    def agreed(self) -> bool:
        """Whether the connection was closed by connection.close and close-ok of the peers."""
        return self.state is _DONE

    def asked(self, side: Side) -> SessionEnd:
        """``side`` asks for a close."""
        closers = self.closers if side in self.closers else (*self.closers, side)
        return SessionEnd(_ASKED, closers, self.outcome)

    def answered(self, side: Side) -> SessionEnd:
        """``side`` has its answer."""
        closers = tuple([one for one in self.closers if one is not side])
        return SessionEnd(self.state if closers else _DONE, closers, self.outcome)

    def failed(self, side: Side, why: Exception) -> SessionEnd:
        """The session ends because of what ``side`` does."""
        return SessionEnd(self.state, self.closers, SessionOutcome(End.FAILED, side, why))

    def left(self, end: End, side: Side | None, error: Exception | None) -> SessionEnd:
        """The session has left the data path. Why it failed, if it did, stays."""
        if self.outcome.error is not None:
            return self
        return SessionEnd(self.state, self.closers, SessionOutcome(end, side, error))


#: Of every session, until something ends it.
NOT_ENDED: Final = SessionEnd()
