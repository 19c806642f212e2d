"""What came of a run."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import attrs

from tests.interop.delayed.course import Course


@attrs.frozen
class Report:
    """What came of it."""

    confirmed: int
    deliveries: int
    #: Copies that did not come: where the ladder has none any more; where it still has ``waiting``.
    lost: list[str]
    late_still: list[str]
    waiting: int
    #: Copies that came more than once; those of them of which the broker, or the gateway, said so not.
    twice: int
    unmarked: list[str]
    #: Of these what one process of the gateway delivered both times: it should have known.
    unmarked_by_one: list[str]
    #: What is known of each of these: its delay, when it came, and what was killed since.
    stories: list[str]
    odd: list[str]
    #: How often something was killed, by what.
    killed: dict[str, int]
    slow_starts: list[str]
    #: Seconds in which messages were published.
    seconds: float
    late: dict[str, float]

    @property
    def is_as_expected(self) -> bool:
        return not (self.lost or self.unmarked or self.odd)

    def line(self) -> str:
        """What documents cite."""
        killed = ", ".join(f"{count} of the {what}" for what, count in sorted(self.killed.items()))
        late = self.late
        times = (
            f"median {late['median s']:.2f} s late, 99 % within {late['99 % s']:.2f} s, at most"
            f" {late['latest s']:.1f} s, {late['within 1 s + 1 %']:.2%} within 1 s and 1 %"
            if "median s" in late
            else "no times"
        )
        return (
            f"{self.confirmed:,} confirmed in {self.seconds / 60:.1f} minutes"
            f" ({self.confirmed / max(self.seconds, 1):.0f} a second); kills: {killed or 'none'};"
            f" lost {len(self.lost)}, still in the ladder {len(self.late_still)}; twice {self.twice},"
            f" of these unmarked {len(self.unmarked)};"
            f" of {late['counted']:,.0f} while nothing was down: {times};"
            f" latest of all {late['latest of all s']:.0f} s"
        )

    def text(self) -> str:
        brief = {"odd": self.odd[:3], "lost": self.lost[:5], "late_still": self.late_still[:5]}
        return json.dumps(attrs.asdict(self) | brief, indent=1)


def report(course: Course, waiting: int) -> Report:
    """Of a run that has ended with so many messages in the ladder."""
    came = course.came
    twice = [copy for copy, deliveries in came.items() if len(deliveries) > 1]
    unmarked = [copy for copy in twice if not all(is_again for _, is_again in came[copy][1:])]
    lateness = []
    for copy, (sent, delay, _) in course.confirmed.items():
        if copy in came:
            # What came late is marked as what may have come before: it counts.
            arrived, _ = came[copy][0]
            if not any(sent < end + 10 and begin < arrived for begin, end, _ in course.outages):
                lateness.append((arrived - sent - delay / 1000, delay / 1000))
    every = [
        came[copy][0][0] - sent - delay / 1000
        for copy, (sent, delay, _) in course.confirmed.items()
        if copy in came
    ]
    within = [late <= 1 + delay / 100 for late, delay in lateness]
    lates = sorted(late for late, _ in lateness)
    late = {"counted": float(len(lates)), "latest of all s": max(every, default=0.0)}
    late["over a minute late"] = float(sum(one > 60 for one in every))
    if lates:
        late |= {
            "earliest s": lates[0],
            "median s": lates[len(lates) // 2],
            "99 % s": lates[len(lates) * 99 // 100],
            "latest s": lates[-1],
            "within 1 s + 1 %": sum(within) / len(within),
        }
    return Report(
        len(course.confirmed),
        sum(map(len, came.values())),
        [] if waiting else sorted(course.missing()),
        sorted(course.missing()) if waiting else [],
        waiting,
        len(twice),
        unmarked,
        [copy for copy in unmarked if _is_of_one_process(course, copy)],
        [_story(course, copy) for copy in unmarked],
        course.odd,
        dict(Counter(what for _, _, what in course.outages)),
        course.slow_starts,
        _seconds(course),
        {name: round(value, 4) for name, value in late.items()},
    )


def _seconds(course: Course) -> float:
    confirmed = [when for _, _, when in course.confirmed.values()]
    return round(max(confirmed) - min(confirmed), 1) if confirmed else 0.0


def _is_of_one_process(course: Course, copy: str) -> bool:
    """Whether a gateway delivered this copy again, and did not say so. What came while one started is of
    the one before: it was on its way."""
    marks = [
        (sum(end <= when for _, end, what in course.outages if what != "broker"), is_again)
        for when, is_again in course.came[copy]
    ]
    return any(process == before for (before, _), (process, is_again) in pairwise(marks) if not is_again)


def _story(course: Course, copy: str) -> str:
    if copy not in course.confirmed:
        return f"{copy}: not confirmed; came {_times(course, copy, course.came[copy][0][0])}"
    sent, delay, _ = course.confirmed[copy]
    last = course.came[copy][-1][0]
    killed = [f"{what} {begin - sent:.1f}" for begin, _, what in course.outages if sent - 5 < begin < last]
    return f"{copy}: for {delay / 1000} s; came {_times(course, copy, sent)}; killed {', '.join(killed)}"


def _times(course: Course, copy: str, since: float) -> str:
    return ", ".join(f"{when - since:.1f}{' marked' * is_again}" for when, is_again in course.came[copy])
