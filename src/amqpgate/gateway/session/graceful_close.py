"""Sessions that are read no more and hear connection.close 320 when they are owed nothing.

::

    0 ──── read no more ──── owed nothing ──── a breath ──── told

So the broker has had a beginning of what the client has said, and nothing behind a gap: no acknowledgement
of a message whose result has not come along. What the broker answers still arrives. When nothing more is owed
that the client may count on, confirms and commits, and it has had time to read them, both sides hear 320. Who
is in the middle of a message hears it as well, without a confirm.

The client's consumers are not cancelled: see spec/decisions/0022.

A drain has all sessions leave, ever more of them (`draining`); an operator single ones (`dismissing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.values import define

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session

#: Seconds between two looks at what is still owed.
LOOK: Final = 0.05
#: Seconds from the last confirm to the close. A client that reads both at once may drop the confirm: pika's
#: blocking publish raises the close then, and its caller publishes again. Without it, that happened at 2 of
#: 75 restarts of such a publisher (``test_three_restarts_with_a_hundred_clients``, on a busy machine).
BREATH: Final = 0.5


@define(eq=False)
class GracefulClose:
    """Those of them that there are."""

    #: Since when they are owed nothing, or None: they are.
    _since: dict[Session, float | None] = attrs.field(factory=dict, init=False)

    def __contains__(self, session: Session) -> bool:
        return session in self._since

    def begin(self, session: Session) -> None:
        """Read no more of its client."""
        session.relay.pump.halt(session.relay)
        self._since.setdefault(session, None)

    def look(self, now: float) -> list[Session]:
        """Those that are to be told. ``now`` is in seconds, from any beginning."""
        self._since = {session: since for session, since in self._since.items() if session.relay.active}
        told = []
        for session, since in self._since.items():
            if session.closing is not CloseState.NO:
                # The broker closes it; what the client answers is read in the tear-down.
                told.append(session)
            elif is_owed(session):
                self._since[session] = None
            elif since is None and hears_answers(session):
                self._since[session] = now
            elif since is None or now - since >= BREATH:
                told.append(session)
        return told


def hears_answers(session: Session) -> bool:
    """Whether the broker answers what the client publishes."""
    return any(
        state.confirms_from is not None or state.transacts for _, state in session.channels.states.made()
    )


def is_owed(session: Session) -> bool:
    """Whether the client still waits for what it may count on: a confirm, or the answer to a commit.

    A message that has not come whole is not confirmed. Where confirms came in an order that cannot be
    remembered it may say so although none is due (`datapath.confirms`).
    """
    channels = session.relay.channels
    for number, state in session.channels.states.made():
        if state.commits_due or state.waiting:
            return True
        if state.confirms_from is None or not channels.state(number):
            continue
        is_half = channels.due(Side.CLIENT, number) > 0 and session.consumers.is_sending(number)
        if channels.unconfirmed(number) > is_half:
            return True
    return False
