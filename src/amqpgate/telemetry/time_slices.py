"""Work on many sessions that leaves the data path its turn."""

from __future__ import annotations

import time
from typing import Final

import attrs
import trio

from amqpgate.values import define

#: Seconds of work between turns: what messages wait for it at most.
TURN: Final = 50e-6


@define
class TimeSlices:
    """Of one such work, from now on."""

    _over: float = attrs.field(factory=lambda: time.perf_counter() + TURN, init=False)

    async def next(self) -> None:
        """Call it after each item, some microseconds of work: where a turn is over, others get theirs."""
        if time.perf_counter() >= self._over:
            await trio.lowlevel.checkpoint()
            self._over = time.perf_counter() + TURN
