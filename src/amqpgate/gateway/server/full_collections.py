"""When Python looks for cycles among all that lives: seldom, for what is over here is none.

Python itself looks whenever objects have become a quarter more. While 5,000 clients log in it does so some
ten times, each time at all sessions, of which none is garbage: 16 to 25 ms at the end, in which everybody
waits. Collections of younger objects go on as they did. See decisions 0079 and 0096.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Final

import attrs

from amqpgate.later import NEVER
from amqpgate.values import define

#: Seconds from one to the next, at least.
LONG: Final = 60.0


@define(eq=False)
class FullCollections:
    """Those of the process of one gateway. They are Python's own until they are begun."""

    #: When the last one was, and how many blocks of pymalloc were left by it.
    _at: float = attrs.field(default=0.0, init=False)
    _blocks: int | None = attrs.field(default=None, init=False)

    def begin(self) -> None:
        """From now on Python makes none of itself."""
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, NEVER)
        self._note(time.monotonic())

    def look(self, now: float) -> None:
        """Make one where there is a quarter more of everything, and the last one was long ago."""
        if (
            self._blocks is not None
            and now - self._at >= LONG
            and sys.getallocatedblocks() * 4 > self._blocks * 5
        ):
            gc.collect()
            self._note(now)

    def _note(self, now: float) -> None:
        self._at, self._blocks = now, sys.getallocatedblocks()
