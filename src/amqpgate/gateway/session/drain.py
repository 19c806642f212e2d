"""The end of a gateway's sessions: in slices, so that their clients do not come back all at once.

::

    0 ─────────────── slices ─────────── confirms ──── end
      sessions are told, ever more of      │            │
      them; the last one at the end        │            what has not closed by then is cut off
                                           who still waits for the broker's answers is told

What happens to a session that has its turn is in `leaving`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Self

import attrs

from amqpgate.gateway.session.graceful_close import GracefulClose
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amqpgate.gateway.session.session import Session

#: What share of the time until ``confirms`` the slices take.
_SLICES: Final = 0.8


@frozen
class Times:
    """How far a drain is when, in seconds from its beginning."""

    slices: float
    confirms: float
    end: float

    @classmethod
    def of(cls, window: float, close_timeout: float) -> Self:
        """It ends within the window, but for a very short one: to close takes its time."""
        confirms = window - min(close_timeout, window / 2)
        return cls(_SLICES * confirms, confirms, max(window, close_timeout))


def staying(connections: int, after: float, times: Times) -> int:
    """How many of so many connections at the beginning need not be told yet."""
    if after >= times.slices:
        return 0
    return math.ceil(connections * (1 - after / times.slices))


@define(eq=False)
class Drain:
    """Of one gateway."""

    #: Connections when it began.
    connections: int
    times: Times
    #: Those that have had their turn.
    _leaving: GracefulClose = attrs.field(factory=GracefulClose, init=False)

    def look(self, sessions: Iterable[Session], after: float) -> None:
        """Tell those that have their turn, the oldest first. ``after`` is in seconds from the beginning."""
        left = [session for session in sessions if session.relay.active and session.closing is CloseState.NO]
        still = [session for session in left if session not in self._leaving]
        most = staying(self.connections, after, self.times)
        for session in still[: max(0, len(still) - most)]:
            self._leaving.begin(session)
        for session in self._leaving.look(after):
            session.relay.finish()
