"""How far the agreed close of a session's connection has come."""

from __future__ import annotations

from enum import Enum

import attrs

from amqpgate.datapath.tables import Side


class CloseState(Enum):
    """How far an agreed close of the connection has come."""

    NO = "no"
    #: A side sent connection.close, or both did; it was passed on.
    ASKED = "asked"
    #: Every close has been answered, and the answers were passed on.
    DONE = "done"


@attrs.define(weakref_slot=False)
class AgreedClose:
    """The agreed close of one connection, as far as it has come."""

    state: CloseState = CloseState.NO
    #: Who asked for a close that has not been answered. Both may ask at once.
    closers: tuple[Side, ...] = ()

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
