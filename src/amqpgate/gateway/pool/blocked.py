"""What a session that shares a connection tells its client of the broker's memory and disk alarms."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import attrs

from amqpgate.datapath.engine import PeerGoneError
from amqpgate.datapath.tables import Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


@attrs.define(eq=False, weakref_slot=False)
class BlockedClient:
    """One client. Only who publishes need know."""

    session: Session
    #: It has been told that its connection is blocked.
    is_told: bool = attrs.field(default=False, init=False)

    def blocked(self, alarm: amqp.ConnectionBlocked) -> None:
        """It publishes on a connection that the broker blocks."""
        if not self.is_told:
            self.is_told = True
            self._tell(alarm)

    def unblocked(self) -> None:
        """The alarm is over, or the session does not use that connection any more."""
        if self.is_told:
            self.is_told = False
            self._tell(amqp.ConnectionUnblocked())

    def _tell(self, method: amqp.ConnectionBlocked | amqp.ConnectionUnblocked) -> None:
        session = self.session
        if session.facts.hears_blocked and session.publishes.hears(method):
            # A client that is gone is the data path's to find.
            with contextlib.suppress(PeerGoneError):
                session.relay.send(Side.CLIENT, method_frame(0, method))
