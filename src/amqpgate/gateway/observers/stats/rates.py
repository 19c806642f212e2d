"""How much passes now: rates are the difference of two looks at counters that are there anyway.

A look is taken when somebody asks, in slices, so that others get their turn in between. What was seen is
forgotten when nobody asks any more.
"""

from __future__ import annotations

import time
from typing import Final, TypeAlias

import attrs
import trio

from amqpgate.gateway.session.session import Session
from amqpgate.telemetry.faults import contained
from amqpgate.telemetry.time_slices import TimeSlices
from amqpgate.values import define, frozen

#: Seconds that lie between two looks, at least; and after which one is forgotten.
_APART: Final = 1.0
_KEPT: Final = 60.0

#: Messages from the client, bytes of their bodies, messages to the client, bytes of theirs.
_Counts: TypeAlias = tuple[int, int, int, int]


@frozen
class _Counted:
    #: Monotonic clock.
    at: float
    #: By session.
    counts: dict[str, _Counts] = attrs.field(factory=dict)


@define(eq=False)
class Rates:
    """The last two at all sessions of a gateway."""

    _last: _Counted | None = attrs.field(default=None, init=False)
    _before: _Counted | None = attrs.field(default=None, init=False)
    _looking: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def look(self, sessions: list[Session]) -> None:
        """Take note of what they have counted, unless that was done just now."""
        async with self._looking:
            now = time.monotonic()
            if self._last is not None and now - self._last.at < _APART:
                return
            seen = _Counted(now)
            turns = TimeSlices()
            for session in sessions:
                up, down = session.relay.up, session.relay.down
                seen.counts[session.id] = up.messages, up.body_bytes, down.messages, down.body_bytes
                await turns.next()
            self._before, self._last = self._last, seen

    @contained("metrics", None)
    def forget(self, now: float) -> None:
        """What is too old at ``now``, on the monotonic clock."""
        if self._last is not None and now - self._last.at > _KEPT:
            self._last = self._before = None

    def rate(self, session: str, index: int) -> float | None:
        """Of one of the counts, per second; None: the session was not seen twice."""
        if self._last is None or self._before is None:
            return None
        now, then = self._last.counts.get(session), self._before.counts.get(session)
        if now is None or then is None:
            return None
        return round((now[index] - then[index]) / (self._last.at - self._before.at), 3)
