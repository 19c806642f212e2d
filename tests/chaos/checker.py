"""Judges the history of all messages. Pure: records in, a verdict out.

What RabbitMQ promises, and so what is an anomaly:

* **lost**: confirmed, or committed, and never delivered. **forgotten**: delivered, and acknowledged by
  nobody: who had it has gone, and it did not come again.
* **twice**: delivered more than once without the mark. (A copy with the mark may be read before the one
  without: it waited in another socket.)
* **twice over a kill**, **forgotten over a kill**: the same, where a node of the broker was killed after the
  copy was delivered, and soon. A classic queue of RabbitMQ 4.3 does the latter directly, too: neither is the
  gateway's; what was never delivered is **lost**, whoever was killed.
* **invented**: never offered, or no message of this run. **uncalled**: denied or rolled back, and delivered.
* **changed**: the checksum or a property differs. **unasked**: a confirm of what waits for none.
* **disordered**: what is published in one channel to one queue reaches each consumer in that order, for what
  is not marked as redelivered. What is requeued (a nack, an end of a consumer, a queue that gets another
  leader) has the mark, and may come later or earlier than its neighbours.

A message that was not confirmed may arrive or not. So may one that the broker, not a policy, has nacked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from .history import Event, Kind
from .message import DENIED, parts_of

_OFFERED, _CONFIRMED, _FORBIDDEN, _ROLLED, _DELIVERED, _UNMARKED, _ACKED = 1, 2, 4, 8, 16, 32, 64

#: Seconds between a delivery and the revival of a broker that was killed before the acknowledgement.
_KILL_LASTS = 30

#: Of each anomaly so many are named.
_MOST_NAMED = 20

ANOMALIES = (
    "lost",
    "forgotten",
    "twice",
    "twice over a kill",
    "forgotten over a kill",
    "invented",
    "uncalled",
    "changed",
    "unasked",
    "disordered",
)

#: What a broker itself does, seen without a gateway.
FORGIVEN = frozenset({"twice over a kill", "forgotten over a kill"})


@attrs.define
class Lane:
    """What is known of each message: bits, after how many kills of a broker it came without the mark, and in
    which second it came last.
    """

    states: bytearray = attrs.field(factory=bytearray)
    ages: bytearray = attrs.field(factory=bytearray)
    seconds: array[int] = attrs.field(factory=lambda: array("I"))

    def reach(self, last: int) -> None:
        missing = last + 1 - len(self.states)
        if missing > 0:
            self.states.extend(bytes(missing))
            self.ages.extend(bytes(missing))
            self.seconds.extend([0] * missing)


@attrs.define
class Verdict:
    """What came of it: how many of each, and the names of the first ones."""

    offered: int = 0
    confirmed: int = 0
    committed: int = 0
    nacked: int = 0
    delivered: int = 0
    redelivered: int = 0
    rolled_back: int = 0
    forbidden: int = 0
    anomalies: Counter[str] = attrs.field(factory=Counter)
    named: dict[str, list[str]] = attrs.field(factory=dict)

    @property
    def is_good(self) -> bool:
        return not any(count for what, count in self.anomalies.items() if what not in FORGIVEN)

    def found(self, what: str, lane: int, number: int, more: str = "", count: int = 1) -> None:
        assert what in ANOMALIES, what
        self.anomalies[what] += count
        names = self.named.setdefault(what, [])
        if len(names) < _MOST_NAMED:
            publisher, epoch, queue = parts_of(lane)
            at = "denied" if queue == DENIED else f"q{queue}"
            names.append(f"p{publisher}.{epoch}.{at}#{number}{' ' + more if more else ''}")


class Checker:
    """Takes the records of publishers first, then those of consumers, client by client."""

    def __init__(self, kills: Sequence[float] = ()) -> None:
        """``kills`` are the times at which a broker that was killed served again."""
        self._kills = sorted(kills)
        self._lanes: dict[int, Lane] = {}
        #: Of this consumer's life: the last number of each lane that came without the mark.
        self._last: dict[int, int] = {}
        self.verdict = Verdict()

    # -- publishers ------------------------------------------------------------------------------

    def published(self, events: Iterable[Event]) -> None:
        verdict = self.verdict
        for event in events:
            kind, count = event.kind, event.last - event.first + 1
            if kind in (Kind.OFFERED, Kind.FORBIDDEN):
                is_denied = kind is Kind.FORBIDDEN
                self._set(event, _OFFERED | (_FORBIDDEN if is_denied else 0))
                verdict.offered += count
                verdict.forbidden += count * is_denied
            elif kind is Kind.CONFIRMED:
                verdict.confirmed += count
                self._confirm(event)
            elif kind is Kind.COMMITTED:
                verdict.committed += count
                self._confirm(event)
            elif kind is Kind.NACKED:
                verdict.nacked += count
            elif kind is Kind.ROLLED_BACK:
                verdict.rolled_back += count
                self._set(event, _ROLLED)
            elif kind is Kind.UNASKED:
                verdict.found("unasked", event.lane, event.first)

    def _set(self, event: Event, bits: int) -> None:
        lane = self._lanes.setdefault(event.lane, Lane())
        lane.reach(event.last)
        for number in range(event.first, event.last + 1):
            lane.states[number] |= bits

    def _confirm(self, event: Event) -> None:
        lane = self._lanes.setdefault(event.lane, Lane())
        lane.reach(event.last)
        states = lane.states
        for number in range(event.first, event.last + 1):
            state = states[number]
            if not state & _OFFERED or state & _CONFIRMED:
                self.verdict.found("unasked", event.lane, number)
            elif state & _FORBIDDEN:
                self.verdict.found("uncalled", event.lane, number, "confirmed")
            states[number] = state | _CONFIRMED

    # -- consumers -------------------------------------------------------------------------------

    def consumed(self, events: Iterable[Event]) -> None:
        """One consumer's, after all publishers'."""
        self._last = {}
        for event in events:
            if event.kind in (Kind.DELIVERED, Kind.REDELIVERED):
                self._deliver(event)
            elif event.kind is Kind.ACKED:
                self._ack(event)
            elif event.kind is Kind.BEGUN:
                self._last = {}
            elif event.kind is Kind.UNKNOWN:
                self.verdict.found("invented", 0, event.first, "bytes that are no message of this run")
            elif event.kind is Kind.CHANGED:
                self.verdict.found("changed", event.lane, event.first)

    def _deliver(self, event: Event) -> None:
        verdict, lane = self.verdict, self._lanes.get(event.lane)
        count = event.last - event.first + 1
        is_marked = event.kind is Kind.REDELIVERED
        verdict.delivered += count
        verdict.redelivered += count * is_marked
        if lane is None:
            verdict.found("invented", event.lane, event.first, count=count)
            return
        age = min(bisect_right(self._kills, event.time), 255)
        if not is_marked:
            if event.first <= self._last.get(event.lane, -1):
                verdict.found("disordered", event.lane, event.first, f"after {self._last[event.lane]}")
            self._last[event.lane] = event.last
        states, ages, seconds = lane.states, lane.ages, lane.seconds
        for number in range(event.first, event.last + 1):
            state = states[number] if number < len(states) else 0
            if not state & _OFFERED:
                verdict.found("invented", event.lane, number)
                continue
            if state & (_FORBIDDEN | _ROLLED):
                verdict.found("uncalled", event.lane, number, "delivered")
            if not is_marked:
                if state & _UNMARKED:
                    what = "twice" if ages[number] == age else "twice over a kill"
                    verdict.found(what, event.lane, number)
                state |= _UNMARKED
                ages[number] = age
            states[number] = state | _DELIVERED
            seconds[number] = max(int(event.time), seconds[number])

    def _ack(self, event: Event) -> None:
        lane = self._lanes.get(event.lane)
        if lane is not None:
            for number in range(event.first, min(event.last + 1, len(lane.states))):
                lane.states[number] |= _ACKED

    # -- the end ---------------------------------------------------------------------------------

    def end(self) -> Verdict:
        """All queues are empty now."""
        for name, lane in self._lanes.items():
            for number, state in enumerate(lane.states):
                if state & _CONFIRMED and not state & _DELIVERED:
                    self.verdict.found("lost", name, number)
                elif state & _DELIVERED and not state & _ACKED:
                    is_killed = any(0 <= kill - lane.seconds[number] <= _KILL_LASTS for kill in self._kills)
                    self.verdict.found("forgotten over a kill" if is_killed else "forgotten", name, number)
        return self.verdict


def judge(
    publishers: Iterable[Iterable[Event]], consumers: Iterable[Iterable[Event]], kills: Sequence[float] = ()
) -> Verdict:
    """The verdict on a whole history, with all queues empty at its end."""
    checker = Checker(kills)
    for events in publishers:
        checker.published(events)
    for events in consumers:
        checker.consumed(events)
    return checker.end()
