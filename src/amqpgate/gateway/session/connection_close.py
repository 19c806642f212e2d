"""An agreed close of a session's connection: connection.close and close-ok.

A session with an upstream connection of its own passes on what each side says. Of one that shares a link no
broker hears that the client leaves, but its channels close::

    client                      gateway                        link
      │ connection.close ─────────▶ │ channel.close, each ────────▶ │
      │                             │ ◀─────────────────── close-ok │  where an answer is due
      │ ◀──────────────── close-ok  │

So the broker has heard all that was said before the client has its answer, as if it had asked the broker.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.dispatch import Do
from amqpgate.gateway.session.violations import unexpected
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.pool.pooled_session import PooledSession
    from amqpgate.gateway.session.session import Session


class CloseState(Enum):
    """How far an agreed close of the connection has come."""

    NO = "no"
    #: A side sent connection.close, or both did; it was passed on.
    ASKED = "asked"
    #: Every close has been answered, and the answers were passed on.
    DONE = "done"


def pass_on(session: Session, side: Side, do: Do, frame: bytes | memoryview) -> None:
    """``side`` says connection.close, or (``do``) close-ok. Raises ``ProtocolViolation``."""
    if do is Do.CLOSE and session.riding is not None:
        if session.closing is CloseState.NO:
            session.riding.parting = PooledClose(session.riding)
            session.riding.parting.begin()
    elif do is Do.CLOSE:
        _ask(session, side, frame)
    else:
        _answer(session, side, frame)


def _ask(session: Session, side: Side, frame: bytes | memoryview) -> None:
    session.closing = CloseState.ASKED
    if side not in session.closers:
        session.closers += (side,)
    relay = session.relay
    if session.throttle.limits_deliveries and relay.down.flows is not None:
        # The answer comes behind what is still to be delivered, which nobody waits for any more.
        # Names are still changed.
        relay.down.flows.flush()
        relay.pump.retry(relay)
    relay.send(side.other, frame)


def _answer(session: Session, side: Side, frame: bytes | memoryview) -> None:
    if side.other not in session.closers:
        raise unexpected(0, amqp.ConnectionCloseOk())
    session.closers = tuple(one for one in session.closers if one is not side.other)
    session.relay.send(side.other, frame)
    if not session.closers:
        session.closing = CloseState.DONE
        session.relay.finish()


@attrs.define(eq=False)
class PooledClose:
    """The close of a session that shares a link."""

    riding: PooledSession
    #: Channels whose close the broker has to answer.
    due: int = attrs.field(default=0, init=False)

    def begin(self) -> None:
        """The client has asked for it."""
        riding, session = self.riding, self.riding.session
        session.closing, session.closers = CloseState.ASKED, (Side.CLIENT,)
        due = [channel for channel in riding.seats if not riding.is_idle(channel)]
        self.due = len(due)
        for channel in list(riding.seats):
            riding.hand_back(channel, self._answered if channel in due else None)
        for channel in list(session.closes.channels):
            session.relay.channels.discard(channel)
        if not due:
            self.end()

    def _answered(self) -> None:
        self.due -= 1
        if not self.due:
            self.end()

    def end(self) -> None:
        """There is nothing more to wait for: the client has its answer."""
        self.due = 0
        session = self.riding.session
        if session.relay.active:
            session.closers, session.closing = (), CloseState.DONE
            session.closes.send(Side.CLIENT, 0, amqp.ConnectionCloseOk())
            session.relay.finish()
