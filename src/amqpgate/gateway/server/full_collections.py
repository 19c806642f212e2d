"""When Python looks for cycles among all that lives: as sessions end, and not as they come.

Python itself looks whenever objects have become a quarter more. While 5,000 clients log in it does so some
ten times, each time at all sessions, of which none is garbage: 16 to 25 ms at the end, in which everybody
waits. What becomes garbage here are sessions that are over, cycles of some 30 objects; their ends count.
Collections of younger objects go on as they did. See decision 0096.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sized
from typing import Final

import attrs

from amqpgate.gateway.handshake.accept import Connections
from amqpgate.values import define

#: Fewer sessions that are over, some 5 KiB each, are not worth one.
FEW: Final = 200

#: What else is garbage is looked for after so many seconds, where there is a quarter more of everything.
LONG: Final = 60.0

#: More collections of younger objects than there will be.
_NEVER: Final = 1 << 30


@define(eq=False)
class FullCollections:
    """Those of the process of one gateway."""

    connections: Connections
    live: Sized
    #: They are Python's own until then.
    _has_begun: bool = attrs.field(default=False, init=False)
    #: As it was after the last one: connections that were over, blocks of pymalloc, and when.
    _over: int = attrs.field(default=0, init=False)
    _blocks: int = attrs.field(default=0, init=False)
    _at: float = attrs.field(default=0.0, init=False)

    def begin(self) -> None:
        """From now on Python makes none of itself."""
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        self._has_begun = True
        self._note(time.monotonic())

    def look(self, now: float) -> None:
        """Make one if it is due."""
        if self._has_begun and self._is_due(now):
            gc.collect()
            self._note(now)

    def _is_due(self, now: float) -> bool:
        """As many are over as are live; or for long nobody has looked, and there is much more."""
        if self.connections.over - self._over >= max(FEW, len(self.live)):
            return True
        return now - self._at >= LONG and sys.getallocatedblocks() * 4 > self._blocks * 5

    def _note(self, now: float) -> None:
        self._over = self.connections.over
        self._blocks = sys.getallocatedblocks()
        self._at = now
