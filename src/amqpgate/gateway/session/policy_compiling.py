"""Policies are compiled for their sessions off the data path's thread.

That takes from microseconds to a second (5,000 rules), once for all sessions that the same policies select
with the same variables; what comes of it is kept (`PolicySet.prepare`). The data path goes on meanwhile, and
the session's policies hold from its first method on all the same: whoever opens it waits here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs
import trio

from amqpgate.values import define

_T = TypeVar("_T")


@define(eq=False)
class PolicyCompiler:
    """Of one gateway: one at a time, so that it leaves the data path the processor.

    Where the login chooses the broker, policies judge before a broker has checked it: an address may claim
    as many users as it has handshakes. Of each address one waits for the thread, the others for that one.
    """

    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1), init=False)

    #: By the source address for which work is done, or waits.
    _turns: dict[str, trio.Lock] = attrs.field(factory=dict, init=False)

    async def run_for(self, source: str, work: Callable[[], _T]) -> _T:
        """As ``run``, after what has been asked for the same source address."""
        turn = self._turns.setdefault(source, trio.Lock())
        try:
            async with turn:
                return await self.run(work)
        finally:
            if not turn.locked():
                self._turns.pop(source, None)

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do it in a thread. Who is cancelled does not wait for its end."""
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
