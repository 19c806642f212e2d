"""The end of a gateway's sessions: in slices, so that their clients do not come back all at once.

::

    0 ─────────────── slices ─────────── confirms ──── end
      sessions are told, ever more of      │            │
      them; the last one at the end        │            what has not closed by then is cut off
                                           who still waits for the broker's answers is told

A session that has its turn is read no more. So the broker has had a beginning of what the client has said,
and nothing behind a gap: no acknowledgement of a message whose result has not come along. What the broker
answers still arrives. When nothing more is owed that the client may count on, confirms and commits, and it
has had time to read them, both sides hear connection.close 320. Who is in the middle of a message hears it as
well, without a confirm.

The client's consumers are not cancelled: see spec/decisions/0022.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Self

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.closing import Closing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amqpgate.gateway.session import Session

#: Seconds between two looks: at who has its turn, and at what is still owed.
LOOK: Final = 0.05
#: Seconds from the last confirm to the close. A client that reads both at once may drop the confirm: pika's
#: blocking publish raises the close then, and its caller publishes again. Without it, that happened at 2 of
#: 75 restarts of such a publisher (``test_three_restarts_with_a_hundred_clients``, on a busy machine).
BREATH: Final = 0.5
#: What share of the time until ``confirms`` the slices take.
_SLICES: Final = 0.8


@attrs.frozen
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


@attrs.define(eq=False)
class Draining:
    """Of one gateway."""

    #: Connections when it began.
    connections: int
    times: Times
    #: Those that have had their turn; and since when they are owed nothing, or None: they are.
    _leaving: dict[Session, float | None] = attrs.field(factory=dict, init=False)

    def look(self, sessions: Iterable[Session], after: float) -> None:
        """Tell those that have their turn, the oldest first. ``after`` is in seconds from the beginning."""
        left = [session for session in sessions if session.relay.active and session.closing is Closing.NO]
        still = [session for session in left if session not in self._leaving]
        most = staying(self.connections, after, self.times)
        for session in still[: max(0, len(still) - most)]:
            session.relay.pump.halt(session.relay)
            self._leaving[session] = None
        self._leaving = {session: self._leaving[session] for session in left if session in self._leaving}
        for session, since in self._leaving.items():
            if is_owed(session):
                self._leaving[session] = None
            elif since is None and hears_answers(session):
                self._leaving[session] = after
            elif since is None or after - since >= BREATH:
                session.relay.finish()


def hears_answers(session: Session) -> bool:
    """Whether the broker answers what the client publishes."""
    return any(
        state.confirms_from is not None or state.transacts for state in session.closes.channels.values()
    )


def is_owed(session: Session) -> bool:
    """Whether the client still waits for what it may count on: a confirm, or the answer to a commit.

    A message that has not come whole is not confirmed. Where confirms came in an order that cannot be
    remembered it may say so although none is due (`datapath.confirms`).
    """
    channels = session.relay.channels
    for number, state in session.closes.channels.items():
        if state.commits_due or state.waiting:
            return True
        if state.confirms_from is None or not channels.state(number):
            continue
        is_half = channels.due(Side.CLIENT, number) > 0 and session.consumers.is_sending(number)
        if channels.unconfirmed(number) > is_half:
            return True
    return False
