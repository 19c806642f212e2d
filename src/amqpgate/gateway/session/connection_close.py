"""An agreed close of a session's connection: connection.close and close-ok.

What each side says is passed on to the other, unless the session's ``Upstream`` closes without the broker.
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
    from amqpgate.gateway.session.session import Session


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


def pass_on(session: Session, side: Side, do: Do, frame: bytes | memoryview) -> None:
    """``side`` says connection.close, or (``do``) close-ok. Raises ``ProtocolViolation``."""
    if do is not Do.CLOSE:
        _answer(session, side, frame)
    elif side is Side.UPSTREAM or not session.upstream.close_connection():
        _ask(session, side, frame)


def _ask(session: Session, side: Side, frame: bytes | memoryview) -> None:
    session.close.asked(side)
    relay = session.relay
    if session.throttle.limits_deliveries and relay.down.flows is not None:
        # The answer comes behind what is still to be delivered, which nobody waits for any more.
        # Names are still changed.
        relay.down.flows.flush()
        relay.pump.retry(relay)
    relay.send(side.other, frame)


def _answer(session: Session, side: Side, frame: bytes | memoryview) -> None:
    if side.other not in session.close.closers:
        raise unexpected(0, amqp.ConnectionCloseOk())
    session.close.answered(side.other)
    session.relay.send(side.other, frame)
    if not session.close.closers:
        session.relay.finish()
