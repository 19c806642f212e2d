"""What a gateway writes of itself into its hour (`telemetry.history`), once in five seconds."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable
from typing import Final

import attrs

from amqpgate.buckets import CONFIRMS, bucket_of
from amqpgate.datapath.engine import Pump
from amqpgate.datapath.tables import Side
from amqpgate.gateway.observers.stats.decisions import Decisions
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.session.session import Session
from amqpgate.telemetry.history import STEP, Ring, slot_at
from amqpgate.telemetry.metrics import Metrics
from amqpgate.telemetry.process import resident
from amqpgate.telemetry.time_slices import TimeSlices
from amqpgate.values import define, frozen

#: Of `telemetry.history.SERIES`, so many are counted, and seconds of CPU beside them.
_COUNTS: Final = 8
#: Seconds between two rows, at least: a look comes every second.
_LEAST: Final = STEP - 1


@frozen
class _CountsAt:
    """What only grows, and when it was read, on the monotonic clock."""

    at: float
    #: The first of `telemetry.history.SERIES`, in their order; the last is seconds of CPU.
    counts: tuple[float, ...]


@define(eq=False)
class HistorySampler:
    """The sampler of one process. Nothing is counted for it as it happens."""

    ring: Ring
    pump: Pump
    metrics: Metrics
    decisions: Decisions
    #: What the sessions that are over have passed.
    ended: SessionTotals
    #: At the look by which the row before was written.
    _last: _CountsAt = attrs.field(default=_CountsAt(math.inf, ()), init=False)
    _slot: int = attrs.field(default=0, init=False)
    #: Bytes, when they could be read last.
    _memory: int = attrs.field(default=0, init=False)
    #: How long brokers took to confirm since the last row.
    _took: list[int] = attrs.field(factory=lambda: [0] * (len(CONFIRMS) + 1), init=False)
    #: What the pump had counted of its latency at the row before.
    _added: tuple[int, ...] = attrs.field(default=(), init=False)

    def begin(self, wall: float, now: float) -> None:
        """The process serves from now on, and has counted nothing. As ``look`` otherwise."""
        nothing = [0.0] * (_COUNTS - 1)
        self._last, self._slot = _CountsAt(now, (*nothing, time.process_time())), slot_at(wall)
        self._added = tuple(self.pump.counters.latency.counts)

    def confirmed(self, seconds: float) -> None:
        """The broker has answered a publish that was timed."""
        self.metrics.confirmed(seconds)
        self._took[bucket_of(CONFIRMS, seconds)] += 1

    async def look(self, sessions: Iterable[Session], wall: float, now: float) -> None:
        """Write the row of the slot that is over, if one is.

        ``wall`` is in seconds since 1970, ``now`` on the monotonic clock. Where the loop stood still for
        longer, this row has the rates of all that time, and the slots between are a gap. A clock that is put
        back a little, as NTP does, replaces no row.
        """
        slot = slot_at(wall)
        if slot in {self._slot, self._slot - 1}:
            return
        tally, live = self.ended.copy(), list(sessions)
        waiting = buffered = 0
        turns = TimeSlices()
        for session in live:
            tally.add(session)
            client, broker = session.relay.endpoints[Side.CLIENT], session.relay.endpoints[Side.UPSTREAM]
            waiting += client.throttled or broker.throttled
            buffered += client.waiting + broker.waiting
            await turns.next()
        counts = (
            tally.published,
            tally.sent,
            tally.published_bytes,
            tally.sent_bytes,
            tally.refused,
            self.decisions.denials,
            self.pump.counters.throttled,
            time.process_time(),
        )
        last, self._last, self._slot = self._last, _CountsAt(now, counts), slot
        took, self._took = self._took, [0] * len(self._took)
        before, self._added = self._added, tuple(self.pump.counters.latency.counts)
        if now <= last.at:
            return
        # Who has begun in the midst of a slot was there for a part of it.
        passed = max(now - last.at, _LEAST)
        *rates, cpu = (
            max(0.0, count - before) / passed for count, before in zip(counts, last.counts, strict=True)
        )
        lag = self.metrics.lag.longest(last.at)
        with contextlib.suppress(OSError):
            # Of that there is a file to be read, and there may be no descriptor left.
            self._memory = resident()
        added = [count - one for count, one in zip(self._added, before, strict=True)]
        self.ring.write(slot - 1, (*rates, waiting, len(live), buffered, lag, cpu, self._memory), took, added)
