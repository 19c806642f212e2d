"""The close of a session that shares its connection: no broker hears that the client leaves, but its channels
close::

    client                      gateway                        shared connection
      │ connection.close ─────────▶ │ channel.close, each ────────▶ │
      │                             │ ◀─────────────────── close-ok │  where an answer is due
      │ ◀──────────────── close-ok  │

So the broker has heard all that was said before the client has its answer, as if it had asked the broker.
"""

from __future__ import annotations

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.pool.answers import is_idle
from amqpgate.gateway.pool.pooled_session import PooledSession
from amqpgate.wire.generated import v0_9_1 as amqp


@attrs.define(eq=False)
class PooledClose:
    """The agreed close of one session."""

    member: PooledSession
    #: Channels whose close the broker has to answer.
    due: int = attrs.field(default=0, init=False)

    def begin(self) -> None:
        """The client has asked for it."""
        member, session = self.member, self.member.session
        session.asks_close(Side.CLIENT)
        due = {number for number, one in member.channels.items() if not is_idle(session, number, one)}
        self.due = len(due)
        for channel in list(member.channels):
            member.release(channel, self._answered if channel in due else None)
        for channel in list(session.channels.states):
            session.relay.channels.discard(channel)
        if not due:
            self._end()

    def _answered(self) -> None:
        self.due -= 1
        if not self.due:
            self._end()

    def _end(self) -> None:
        """There is nothing more to wait for: the client has its answer."""
        session = self.member.session
        if session.relay.active:
            session.close_answered(Side.CLIENT)
            session.channels.send(Side.CLIENT, 0, amqp.ConnectionCloseOk())
            session.relay.finish()
