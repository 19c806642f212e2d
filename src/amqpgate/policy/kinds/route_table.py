"""All routes of a policy set in the order in which they are tried, and the choice for one connection.

One rule: policies by priority, then by name; within a policy, routes as they are listed; the first that
matches holds. Each new connection looks at the routes one by one: there are few, and few connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from amqpgate.policy.engine.operations import Principal
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.engine.weights import by_weight
from amqpgate.policy.kinds.kind import is_enforced
from amqpgate.policy.kinds.route_document import Route, RoutePolicy
from amqpgate.policy.kinds.user_groups import Membership
from amqpgate.values import frozen


def in_order(policies: Iterable[RoutePolicy]) -> list[RoutePolicy]:
    """By priority, then by name."""
    return sorted(policies, key=lambda policy: (-policy.spec.priority, policy.metadata.name))


@frozen
class Choice:
    """The route that a connection takes."""

    policy: str
    route: Route
    #: Name of an upstream.
    cluster: str


@frozen
class Chosen:
    """What the routes say of one connection."""

    #: None where no route matches: the listener's own upstream.
    choice: Choice | None = None
    #: What policies in mode shadow would have chosen before that.
    shadow: tuple[Choice, ...] = ()


@frozen
class _Entry:
    policy: RoutePolicy
    route: Route
    #: What can be told of its match before the client has said anything.
    early: Subject


@frozen(eq=False)
class RouteTable:
    """Replaced whole, never changed."""

    policies: tuple[RoutePolicy, ...] = ()
    membership: Membership = attrs.field(factory=Membership)
    _entries: tuple[_Entry, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        entries = tuple(
            _Entry(policy, route, _early(route.match))
            for policy in in_order(self.policies)
            for route in policy.spec.routes
        )
        object.__setattr__(self, "_entries", entries)

    @property
    def routes(self) -> Iterator[tuple[str, Route]]:
        """Each with its policy's name, in order."""
        for entry in self._entries:
            yield entry.policy.metadata.name, entry.route

    def find(self, policy: str, name: str, session: str) -> Route | None:
        """The route of that name, if the policy is enforced for the session."""
        for entry, enforced in self._held(session):
            if enforced and (entry.policy.metadata.name, entry.route.id) == (policy, name):
                return entry.route
        return None

    def choose(self, principal: Principal, session: str) -> Chosen:
        """For a client that has said who it is and what it wants to open."""
        shadow: list[Choice] = []
        principal = self.membership.applied(principal)
        for entry, enforced in self._held(session):
            # A user who is not known is not routed as somebody.
            if entry.route.match.selects(principal):
                if enforced:
                    return Chosen(_choice(entry, session), tuple(shadow))
                shadow.append(_choice(entry, session))
        return Chosen(None, tuple(shadow))

    def choose_early(self, principal: Principal, session: str) -> Chosen | None:
        """For one of whom only listener, source and certificate are known; None where more must be.

        What is only for show must not make wait for more: it is told by ``choose``, later.
        """
        for entry, enforced in self._held(session):
            if enforced and entry.early.selects(principal) is not None:
                return None if entry.route.is_late else Chosen(_choice(entry, session))
        return Chosen()

    def candidates(self, principal: Principal, session: str, default: str) -> Sequence[str]:
        """Names of the upstreams that such a client may end up at."""
        found: dict[str, None] = {}
        for entry, enforced in self._held(session):
            if enforced and entry.early.selects(principal) is not None:
                found.update(dict.fromkeys(share.cluster for share in entry.route.upstream.shares))
                if not entry.route.is_late:
                    return list(found)
        # The listener's own speaks first.
        return list({default: None} | found)

    def _held(self, session: str) -> Iterator[tuple[_Entry, bool]]:
        for entry in self._entries:
            spec = entry.policy.spec
            enforced = is_enforced(spec.mode, spec.enforce_percent, entry.policy.metadata.name, session)
            if enforced is not None:
                yield entry, enforced


def _early(match: Subject) -> Subject:
    return attrs.evolve(
        match, user=NamePattern("", True), vhosts=None, client={}, groups=None, scopes=None, claims={}
    )


def _choice(entry: _Entry, session: str) -> Choice:
    shares = entry.route.upstream.shares
    key = f"{entry.policy.metadata.name}\0{entry.route.id}\0{session}"
    ordered = by_weight(shares, key, lambda share: share.cluster, lambda share: share.weight)
    return Choice(entry.policy.metadata.name, entry.route, ordered[0].cluster)
