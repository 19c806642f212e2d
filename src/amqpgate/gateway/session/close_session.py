"""Sessions that operators close: as in a drain (`leaving`), each with the reason that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.config import Limits
from amqpgate.errors import Forced
from amqpgate.gateway.session.drain import Times
from amqpgate.gateway.session.graceful_close import LOOK, GracefulClose
from amqpgate.gateway.session.session_end import CloseState
from amqpgate.values import define, frozen

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


@frozen
class _ForcedClose:
    why: Forced
    #: When the client is told whatever it is owed, on trio's clock.
    until: float


@define(eq=False)
class ForcedCloses:
    """Of one gateway."""

    limits: Limits
    _leaving: GracefulClose = attrs.field(factory=GracefulClose, init=False)
    _orders: dict[Session, _ForcedClose] = attrs.field(factory=dict, init=False)

    def dismiss(self, session: Session, why: Forced) -> bool:
        """Have it leave; whether ``run`` has to be started. Who leaves already hears the first reason."""
        is_first = not self._orders
        if session not in self._orders:
            times = Times.of(self.limits.drain_timeout, self.limits.close_timeout)
            self._orders[session] = _ForcedClose(why, trio.current_time() + times.confirms)
            if session.closing is CloseState.NO:
                self._leaving.begin(session)
        return is_first

    async def run(self) -> None:
        """One task for all of them, for as long as there are any."""
        while True:
            now = trio.current_time()
            ready = self._leaving.look(now)
            for session, order in list(self._orders.items()):
                if session.relay.active and (session in ready or now >= order.until):
                    session.fail(order.why)
                if not session.relay.active:
                    del self._orders[session]
            if not self._orders:
                return
            await trio.sleep(LOOK)
