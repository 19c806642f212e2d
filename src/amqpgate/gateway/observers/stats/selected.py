"""Whom the policies in force select: how many sessions each of them, and how many no access policy.

A policy that has selected nobody may be new, or its subjects are not written as their users are. What is
counted has come since the start, under the same document; when policies are read again, the sessions that
there are count for those that have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, MutableMapping
from typing import Final, TypeAlias

import attrs

from amqpgate.policy import PolicySet, Principal, SessionAccess
from amqpgate.policy.kinds.access import default_access_words
from amqpgate.policy.kinds.kind import Document
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.faults import contained
from amqpgate.telemetry.policies import PolicyMetrics
from amqpgate.telemetry.time_slices import TimeSlices
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Names that are told in one line of the log.
MOST_TOLD: Final = 5

#: Principals of whom it is known what selects them.
MOST_KNOWN: Final = 256

#: A policy's kind and name.
_Key: TypeAlias = tuple[str, str]


@define(eq=False)
class Selected:
    """Of one gateway."""

    policies: PolicySet
    metrics: PolicyMetrics
    #: Sessions by policy.
    sessions: dict[_Key, int] = attrs.field(factory=dict, init=False)
    #: Sessions that no access policy has selected.
    unselected: int = attrs.field(default=0, init=False)

    #: The metric of each policy.
    _counters: MutableMapping[tuple[str, ...], int] = attrs.field(init=False)
    #: Those that select a principal.
    _known: dict[Principal, tuple[_Key, ...]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._begin(self.policies, {})

    @contained("metrics", None)
    def note(self, principal: Principal, access: SessionAccess, route: str | None = None) -> None:
        """As `count`; a fault is only counted."""
        self.count(principal, access, route)

    def count(self, principal: Principal, access: SessionAccess, route: str | None = None) -> None:
        """A client has come; ``route`` is the name of the route policy that sends it somewhere."""
        self._select(principal, route)
        if not access.enforced.policies:
            self.unselected += 1
            self.metrics.unselected.inc()

    def unseen(self) -> list[str]:
        """Names of policies that have selected nobody."""
        return [name for (_, name), sessions in self.sessions.items() if not sessions]

    def use(self, policies: PolicySet) -> set[_Key]:
        """Others are in force; which of them are new, or have changed."""
        before = {_key(one): one for one in self.policies.policies}
        same = {_key(one) for one in policies.policies if before.get(_key(one)) == one}
        self._begin(policies, {key: count for key, count in self.sessions.items() if key in same})
        return self.sessions.keys() - same

    async def take_stock(
        self, changed: Container[_Key], live: Iterable[tuple[Principal, str | None]]
    ) -> None:
        """``live`` are those who were connected when these policies came; the log says how it stands."""
        policies, turns = self.policies, TimeSlices()
        for principal, route in live:
            if self.policies is not policies:
                return  # others still
            self._select_again(principal, route, changed)
            await turns.next()
        log.info("%s", self.told())

    def told(self) -> str:
        """For the log."""
        unseen = self.unseen()
        names = ", ".join(sorted(unseen)[:MOST_TOLD]) + (", ..." if len(unseen) > MOST_TOLD else "")
        words = f"policies: {len(self.sessions)} in force, {len(unseen)} of which select nobody seen so far"
        return (
            f"{words}{f' ({names})' if names else ''}; {default_access_words(self.policies.default_access)}"
        )

    def shown(self) -> dict[str, JSON]:
        """For operators."""
        return {
            "default_access": self.policies.default_access,
            "unselected_sessions": self.unselected,
            "sessions": [
                {"kind": kind, "policy": name, "sessions": sessions}
                for (kind, name), sessions in self.sessions.items()
            ],
        }

    @contained("metrics", None)
    def _select_again(self, principal: Principal, route: str | None, changed: Container[_Key]) -> None:
        self._select(principal, route, changed)

    def _select(self, principal: Principal, route: str | None, among: Container[_Key] | None = None) -> None:
        found = self._known.get(principal)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[principal] = tuple([_key(one) for one in self.policies.selecting(principal)])
        for key in (*found, *(() if route is None else (("RoutePolicy", route),))):
            if key in self.sessions and (among is None or key in among):
                self.sessions[key] += 1
                self._counters[key] += 1

    def _begin(self, policies: PolicySet, known: dict[_Key, int]) -> None:
        self.policies = policies
        self._known.clear()
        self.sessions = {_key(one): known.get(_key(one), 0) for one in policies.policies}
        self._counters = self.metrics.hold(self.sessions)


def _key(policy: Document) -> _Key:
    return policy.kind, policy.metadata.name
