"""Memory that was needed for a while goes back to the system.

What Python frees, and OpenSSL most of all, glibc keeps: after 500 half TLS handshakes some 20 MiB, for ever.
100 sessions with 1,000 routing keys each, with audit, rates, traces and a tap, left 115 MiB more than the 186
that there were before, and leave 65: pymalloc returns an arena of 1 MiB only when nothing in it lives, and a
session that is over was a cycle, some 30 objects, that kept 50 arenas until Python's next full collection. It
is none any more (`Session.release`), but what only some sessions have may be.

Few sessions may have much, too: 10 clients with 10,000 routing keys each, whose bodies are recorded, were
1.3 million blocks of pymalloc. Of the 157 MiB that came with them 132 stayed where nobody looked, and 72
stay: one of Python's own free tuples keeps an arena. They are used again: after the same once more, with
everything on, there was as much as after the first time.

A collection holds the interpreter's lock: 7 ms after those 100 sessions. What lives is looked at, too, so
none is made where more than a `FEW` sessions are live.

A trim does not hold the interpreter's lock, but glibc's: a thread that asks glibc for memory waits meanwhile.
It took 6 ms in a gateway, and up to 0.3 s where a heap of 270 MB was made of nothing but fragments.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

import attrs

from amqpgate.values import define

#: What so many connections hold is worth giving back.
MANY: Final = 48

#: So many blocks of pymalloc are: some 20 MiB. Counting a million of them takes 0.15 ms.
MANY_BLOCKS: Final = 200_000

#: So many live sessions may wait until Python has looked for cycles.
FEW: Final = 4


@define(eq=False)
class Tide:
    """How many of something there were at once, and whether most of them are gone."""

    #: That are worth it.
    many: int = MANY
    _peak: int = attrs.field(default=0, init=False)

    def rise(self, count: int) -> None:
        """There are so many now."""
        self._peak = max(self._peak, count)

    def fell(self, count: int) -> bool:
        """Whether there are ``many`` fewer now, and less than half. Then the peak is what there is now."""
        self.rise(count)
        if self._peak - count < self.many or count > self._peak // 2:
            return False
        self._peak = count
        return True


def collect(live: int) -> None:
    """Free the cycles that sessions were, unless too many are ``live``, which all wait meanwhile."""
    if live <= FEW:
        gc.collect()


def give_back() -> None:
    """Blocks for milliseconds, or tenths of a second: for a thread of its own. Only glibc has it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
