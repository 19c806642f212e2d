"""From samples to figures: medians with quartiles, ratios within a round, marks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

import attrs

from .cases import BY_NAME, Case, Mark
from .samples import Sample

#: The target that marks are about, and the one that all others are compared with.
OURS, YARDSTICK = "amqpgate", "haproxy"
#: Share of the machine's CPU time that others may have had where latencies are to be trusted.
BUSY = 0.05


@attrs.frozen
class Spread:
    """Median and quartiles of one figure over the rounds."""

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """None of no values. Quartiles are interpolated between the values themselves."""
        found = sorted(values)
        if not found:
            return None
        if len(found) == 1:
            return cls(found[0], found[0], found[0], 1)
        low, median, high = statistics.quantiles(found, n=4, method="inclusive")
        return cls(median, low, high, len(found))


@attrs.frozen
class Verdict:
    """What became of a mark."""

    case: Case
    mark: Mark
    figure: Spread | None

    @property
    def passed(self) -> bool | None:
        """None where it was not measured."""
        if self.figure is None:
            return None
        if self.mark.at_least:
            return self.figure.median >= self.mark.limit
        return self.figure.median <= self.mark.limit

    @property
    def by(self) -> float | None:
        """How far from the mark, as a share of it; positive is better than asked."""
        if self.figure is None:
            return None
        away = self.figure.median / self.mark.limit - 1
        return away if self.mark.at_least else -away


Figure = Callable[[Sample], float | None]


def cpu(sample: Sample) -> float | None:
    """Nanoseconds of the proxy per message."""
    return sample.cpu_per_message


def rate(sample: Sample) -> float | None:
    """Messages per second."""
    return sample.rate or None


def per_core(sample: Sample) -> float | None:
    """Messages that a second of the proxy's CPU time is enough for."""
    return 1e9 / sample.cpu_per_message if sample.cpu_per_message else None


def seconds(sample: Sample) -> float | None:
    """How long it took."""
    return sample.seconds or None


def storm_to_one_by_one(sample: Sample) -> float | None:
    """CPU time of all logins at once, as a multiple of the same one after the other."""
    if sample.storm is None or not sample.cpu_ns:
        return None
    return sample.cpu_ns / sample.storm.one_by_one_ns


def storm_to_quiet(sample: Sample) -> float | None:
    """99th percentile of who stayed, in the storm as a multiple of before it."""
    return sample.storm.beside_all.p99 / sample.storm.quiet.p99 if sample.storm else None


def latency(name: str) -> Figure:
    """A quantile in microseconds."""
    return lambda sample: getattr(sample.latency, name) if sample.latency else None


def memory(connections: int) -> Figure:
    """KiB per connection."""

    def of(sample: Sample) -> float | None:
        held = sample.memory.pss if sample.memory else {}
        return (held[connections] - held[0]) / connections / 1024 if connections in held else None

    return of


def memory_used(sample: Sample) -> float | None:
    """KiB per connection, the most there were, after each had published."""
    if sample.memory is None:
        return None
    most = max(sample.memory.pss)
    return (sample.memory.pss_used - sample.memory.pss[0]) / most / 1024


@attrs.frozen
class Samples:
    """All runs."""

    all: Sequence[Sample]

    def of(self, case: str, target: str) -> list[Sample]:
        return [sample for sample in self.all if (sample.case, sample.target) == (case, target)]

    @property
    def foreign(self) -> Spread | None:
        """The share of the machine's CPU time that others had, of the runs that are short."""
        return Spread.of(one.foreign for one in self.all if BY_NAME[one.case].per_message)

    @property
    def busy(self) -> bool:
        """Whether others had so much of the machine that what counts seconds says nothing."""
        return self.foreign is not None and self.foreign.median > BUSY

    def by_round(self, case: str, target: str, figure: Figure) -> dict[int, float]:
        """The figure of each round that has it."""
        found = ((sample.round, figure(sample)) for sample in self.of(case, target))
        return {number: value for number, value in found if value is not None}

    def spread(self, case: str, target: str, figure: Figure) -> Spread | None:
        return Spread.of(self.by_round(case, target, figure).values())

    def compare(
        self,
        case: str,
        target: str,
        figure: Figure,
        against: str,
        how: Callable[[float, float], float] = lambda ours, theirs: ours / theirs,
        *,
        other_case: str | None = None,
    ) -> Spread | None:
        """``how`` of the figures of both in the same round: what disturbs a round disturbs both."""
        ours = self.by_round(case, target, figure)
        theirs = self.by_round(other_case or case, against, figure)
        return Spread.of(how(ours[number], theirs[number]) for number in ours.keys() & theirs.keys())

    def verdicts(self, target: str = OURS) -> list[Verdict]:
        """Every mark of every case that was asked for."""
        cases = dict.fromkeys(sample.case for sample in self.all)
        return [
            Verdict(BY_NAME[name], mark, self._figure(name, target, mark))
            for name in cases
            for mark in BY_NAME[name].marks
        ]

    def _figure(self, case: str, target: str, mark: Mark) -> Spread | None:
        against = mark.against
        match mark.measure:
            case "cpu":
                return self.compare(case, target, cpu, against)
            case "cpu-of-case":
                return self.compare(case, target, cpu, target, other_case=against)
            case "p50":
                return self.compare(case, target, latency("p50"), against, lambda ours, theirs: ours - theirs)
            case "p99":
                return self.compare(case, target, latency("p99"), against)
            case "throughput":
                return self.compare(case, target, rate, against)
            case "memory":
                return self.spread(case, target, memory(int(against)))
            case "per-core":
                return self.spread(case, target, per_core)
            case "cpu-one-by-one":
                return self.spread(case, target, storm_to_one_by_one)
            case "p99-quiet":
                return self.spread(case, target, storm_to_quiet)
            case "seconds":
                return self.spread(case, target, seconds)
