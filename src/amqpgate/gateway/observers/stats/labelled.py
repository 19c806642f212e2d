"""What sessions have passed by the labels that the settings ask for: a bounded number of sums.

A combination of values has its sums from the first session on that is seen with it, and keeps them: they only
grow. What comes when there are as many as the settings allow counts as `OTHER` in every label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from amqpgate.config import MetricLabels, SessionLabel
from amqpgate.gateway.observers.stats.totals import SessionTotals
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Principal
from amqpgate.telemetry.readings import LabelledUse, Traffic
from amqpgate.values import define

#: Values of labels, in the order of `MetricLabels.by`.
Labels: TypeAlias = tuple[str, ...]

OTHER: Final = "other"

#: Characters of a value, at most.
LONGEST: Final = 128


@define(eq=False)
class LabelledSum:
    """Of the sessions with the same labels."""

    #: What those have passed that are over.
    passed: SessionTotals = attrs.field(factory=SessionTotals)
    denials: int = 0
    #: Seconds that they waited for limits, as `sampler` sees it.
    waits: int = 0
    #: Those that live, at a scrape.
    sessions: int = 0

    def lives(self, session: Session) -> None:
        """What one of those has passed that live."""
        self.passed.add(session)
        self.sessions += 1

    def denied(self) -> None:
        self.denials += 1

    def waited(self) -> None:
        self.waits += 1


@define(eq=False)
class LabelledTotals:
    """Of one gateway."""

    settings: MetricLabels
    _other: Labels = attrs.field(init=False)
    _users: frozenset[str] = attrs.field(init=False)
    _sums: dict[Labels, LabelledSum] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._other = (OTHER,) * len(self.settings.by)
        self._users = frozenset(self.settings.users)
        self._sums = {self._other: LabelledSum()}

    def over(self, session: Session) -> None:
        """A session is over."""
        self._sum_of(session.principal).passed.add(session)

    def denied(self, principal: Principal) -> None:
        """An operation of its session was refused."""
        self._sum_of(principal).denied()

    def waited(self, principal: Principal) -> None:
        """Its session was seen to wait for a limit."""
        self._sum_of(principal).waited()

    def look(self) -> LabelledLook:
        """What there is now, to which sessions that live are added."""
        sums = {labels: attrs.evolve(one, passed=one.passed.copy()) for labels, one in self._sums.items()}
        return LabelledLook(self, sums)

    def labels_of(self, principal: Principal) -> Labels:
        """Of a session; they stay the same for as long as it lives."""
        labels = tuple([self._value(label, principal) for label in self.settings.by])
        if labels in self._sums:
            return labels
        if len(self._sums) > self.settings.most:
            return self._other
        self._sums[labels] = LabelledSum()
        return labels

    def _sum_of(self, principal: Principal) -> LabelledSum:
        return self._sums[self.labels_of(principal)]

    def _value(self, label: SessionLabel, principal: Principal) -> str:
        if label == "user":
            user = principal.user
            return text_of(user) if user is not None and user in self._users else OTHER
        return text_of(principal.vhost if label == "vhost" else principal.listener or "")


@define(eq=False)
class LabelledLook:
    """One scrape's."""

    _totals: LabelledTotals
    _sums: dict[Labels, LabelledSum]

    def add(self, session: Session) -> None:
        """This one lives, or did when the look began."""
        labels = self._totals.labels_of(session.principal)
        found = self._sums.get(labels)
        if found is None:
            found = self._sums[labels] = LabelledSum()
        found.lives(session)

    def told(self) -> Mapping[Labels, LabelledUse]:
        """All of it."""
        return {
            labels: LabelledUse(
                sessions=one.sessions,
                published=Traffic(one.passed.published, one.passed.published_bytes),
                refused=Traffic(one.passed.refused, one.passed.refused_bytes),
                sent=Traffic(one.passed.sent, one.passed.sent_bytes),
                denials=one.denials,
                waited=one.waits,
            )
            for labels, one in self._sums.items()
        }


def text_of(name: str) -> str:
    """A name as the value of a label: short, and nothing that a text format or a terminal stumbles over."""
    name = name[:LONGEST]
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")[:LONGEST]
