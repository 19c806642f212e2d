"""What came of a run, as values: faults with what clients waited for, throughput, verdict. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from .checker import Verdict
from .history import Event, Kind

CONFIRMS = frozenset({Kind.CONFIRMED, Kind.COMMITTED})
DELIVERIES = frozenset({Kind.DELIVERED, Kind.REDELIVERED})


#: Seconds; there are more between two faults.
_MOMENT = 1.0


@attrs.define
class FaultRun:
    """One fault, once: from when to when, in seconds since 1970; the longest waits that it lies in."""

    name: str
    begin: float
    end: float = 0.0
    detail: str = ""
    confirm_stall: float = 0.0
    delivery_stall: float = 0.0
    #: What went wrong while it was played, the clients left aside.
    problem: str = ""


@attrs.frozen
class Level:
    """A quantity over a run: its mean, by how much it rises in an hour, and the standard error of that."""

    what: str
    mean: float
    slope: float
    error: float
    #: Means of the quarters of the run: what rises at first only is not what rises for ever.
    quarters: list[float] = attrs.field(factory=list)

    @property
    def is_level(self) -> bool:
        """Whether it does not rise by more than can be told from chance, or by a hundredth in an hour."""
        return self.slope <= 3 * self.error or self.slope < 0.01 * self.mean

    def __str__(self) -> str:
        means = ", ".join(f"{mean:.1f}" for mean in self.quarters)
        rise = f"{self.slope:+.2f} an hour, error {self.error:.2f}"
        return f"{self.what}: {means} by quarters, {rise}: {'level' if self.is_level else 'RISES'}"


@attrs.frozen
class Growth:
    """Of memory by connections, in a part of a run: KiB for each 100,000, and the standard error of that."""

    part: str
    #: That came in this part.
    connections: int
    slope: float
    error: float

    def __str__(self) -> str:
        rise = f"{self.slope:+.0f} KiB for each 100,000, error {self.error:.0f}"
        return f"memory in the {self.part}, {self.connections:,} connections: {rise}"


@attrs.define
class Outcome:
    """Of one set-up."""

    setup: str
    begin: float
    seed: int
    end: float = 0.0
    faults: list[FaultRun] = attrs.field(factory=list)
    verdict: Verdict = attrs.field(factory=Verdict)
    #: Messages a second, second by second since `begin`.
    confirms: list[int] = attrs.field(factory=list)
    deliveries: list[int] = attrs.field(factory=list)
    #: Longest waits without any fault.
    quiet: tuple[float, float] = (0.0, 0.0)
    #: How often clients were cut off, by the code that they heard; 0: none.
    ends: Counter[int] = attrs.field(factory=Counter)
    #: What is no anomaly of a message: clients that get on no more, tracebacks, queues that do not empty.
    problems: list[str] = attrs.field(factory=list)
    #: What churn has seen.
    levels: list[Level] = attrs.field(factory=list)
    #: And by connections, of visitors that made no pause.
    growths: list[Growth] = attrs.field(factory=list)

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.problems and not any(one.problem for one in self.faults)

    @property
    def settled(self) -> int:
        return self.verdict.confirmed + self.verdict.committed


def times_of(events: Iterable[Event], kinds: frozenset[Kind]) -> list[float]:
    """When a client got on, in order."""
    return [event.time for event in events if event.kind in kinds]


def longest(times: Sequence[float], begin: float, until: float) -> float:
    """The longest wait between two successes of one client, of those that overlap a span."""
    first = max(0, bisect_left(times, begin) - 1)
    stop = min(len(times) - 1, bisect_left(times, until))
    return max((times[at + 1] - times[at] for at in range(first, stop)), default=0.0)


def stalls(
    faults: Sequence[FaultRun], confirms: Sequence[Sequence[float]], deliveries: Sequence[Sequence[float]]
) -> None:
    """Fill in what clients waited for: a fault answers for what begins until a moment after it."""
    for fault in faults:
        until = fault.end + _MOMENT
        fault.confirm_stall = max((longest(one, fault.begin, until) for one in confirms), default=0.0)
        fault.delivery_stall = max((longest(one, fault.begin, until) for one in deliveries), default=0.0)


def per_second(events: Iterable[Event], kinds: frozenset[Kind], begin: float, into: list[int]) -> None:
    """Add what happened in each second."""
    for event in events:
        if event.kind in kinds:
            second = max(0, int(event.time - begin))
            into.extend([0] * (second + 1 - len(into)))
            into[second] += event.last - event.first + 1


def by_fault(outcomes: Iterable[Outcome]) -> Mapping[str, list[tuple[Outcome, FaultRun]]]:
    """All runs of each fault."""
    found: dict[str, list[tuple[Outcome, FaultRun]]] = {}
    for outcome in outcomes:
        for run in outcome.faults:
            found.setdefault(run.name, []).append((outcome, run))
    return dict(sorted(found.items()))
