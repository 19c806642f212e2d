"""How far the set-up of a connection has come, and when: for its span."""

from __future__ import annotations

import time

import attrs

from amqpgate.values import define


@define(eq=False)
class HandshakeTiming:
    """Of one connection, from its accept on. Times are in nanoseconds since 1970."""

    began: int = attrs.field(factory=time.time_ns, init=False)
    #: Each with the time at which it was done. They are few: every one has its place in the code.
    done: list[tuple[str, int]] = attrs.field(factory=list, init=False)

    def mark(self, stage: str) -> None:
        """The stage is over, and the next one begins."""
        self.done.append((stage, time.time_ns()))
