"""How long bytes are in the gateway, as both engines time it: one turn of many (`ROUNDS`).

What is timed is a turn that epoll has announced: from when the bytes were there at the latest that is known
to when all that came of them was given to the system. Where the pump had waited for them they had just come.
Where they were there when it looked, it is not known since when: they are taken to have come right after
the look before. So it is never told too little, and under load up to twice as much. The time of policies,
of what is rewritten, of TLS, and of those who had their turns before is in it. What a limit, a slow receiver
or an answer of somebody else made wait is not: such a turn is not counted.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.buckets import ADDED, bucket_of

#: Looks at epoll of which one is timed; see decision 0082 for what it costs.
ROUNDS: Final = 64


@attrs.define(eq=False)
class LatencyCounts:
    """What one pump has timed since it began."""

    #: By `buckets.ADDED`, and beyond them.
    counts: list[int] = attrs.field(factory=lambda: [0] * (len(ADDED) + 1), init=False)
    #: All of them together.
    seconds: float = attrs.field(default=0.0, init=False)

    def add(self, seconds: float) -> None:
        """So long were some."""
        self.counts[bucket_of(ADDED, seconds)] += 1
        self.seconds += seconds
