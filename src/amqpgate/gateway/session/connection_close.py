"""An agreed close of a session's connection: connection.close and close-ok.

What each side says is passed on to the other, unless the session's ``Upstream`` closes without the broker.
"""

from __future__ import annotations

from typing import Final

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.dispatch import Do
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.violations import unexpected
from amqpgate.wire.generated import v0_9_1 as amqp

# To look a member of an enum up takes Python 3.11 a detour each time.
_CLOSE: Final = Do.CLOSE
_UPSTREAM: Final = Side.UPSTREAM


def pass_on(session: Session, side: Side, do: Do, frame: bytes | memoryview) -> None:
    """``side`` says connection.close, or (``do``) close-ok. Raises ``ProtocolViolation``."""
    if do is not _CLOSE:
        _answer(session, side, frame)
    elif side is _UPSTREAM or not session.upstream.close_connection():
        _ask(session, side, frame)


def _ask(session: Session, side: Side, frame: bytes | memoryview) -> None:
    session.asks_close(side)
    relay = session.relay
    if session.limits.limits_deliveries and relay.down.flows is not None:
        # The answer comes behind what is still to be delivered, which nobody waits for any more.
        # Names are still changed.
        relay.down.flows.flush()
        relay.pump.retry(relay)
    relay.send(side.other, frame)


def _answer(session: Session, side: Side, frame: bytes | memoryview) -> None:
    if side.other not in session.end.closers:
        raise unexpected(0, amqp.ConnectionCloseOk())
    session.close_answered(side.other)
    session.relay.send(side.other, frame)
    if not session.end.closers:
        session.relay.finish()
