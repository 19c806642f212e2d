"""Memory that was needed for a while goes back to the system.

What Python frees, and OpenSSL most of all, glibc keeps: after 500 half TLS handshakes some 20 MiB, for ever.
100 sessions with 1,000 routing keys each, and audit, rates and traces, left 110 to 147 MiB more than the 181
that there were before. Given back, they leave 76 to 92 more: pymalloc returns an arena of 1 MiB only when
nothing in it lives, and some of a session that is over is in cycles until Python's next full collection.

A trim does not hold the interpreter's lock, but glibc's: a thread that asks glibc for memory waits meanwhile.
It took 6 ms in a gateway, and up to 0.3 s where a heap of 270 MB was made of nothing but fragments.
"""

from __future__ import annotations

import ctypes
from typing import Final

import attrs

#: What so many connections hold is worth giving back.
MANY: Final = 48


@attrs.define(eq=False)
class Tide:
    """How many of something there were at once, and whether most of them are gone."""

    _peak: int = attrs.field(default=0, init=False)

    def rise(self, count: int) -> None:
        """There are so many now."""
        self._peak = max(self._peak, count)

    def fell(self, count: int) -> bool:
        """Whether there are `MANY` fewer now, and less than half. Then the peak is what there is now."""
        self.rise(count)
        if self._peak - count < MANY or count > self._peak // 2:
            return False
        self._peak = count
        return True


def give_back() -> None:
    """Blocks for milliseconds, or tenths of a second: for a thread of its own. Only glibc has it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
