"""What policies have decided, for operators: how often each rule did, and the last refusals.

Of requests that the data path passes by a flow the rule has decided once, for all messages of a session with
these arguments. The data path has counted them, and `rule_messages` reads that.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from itertools import count, islice
from typing import Final, Literal, TypeAlias, cast

import attrs

from amqpgate.gateway.session.observer import RuleKey
from amqpgate.logs import without_passwords
from amqpgate.policy import Operation, Principal, SharedLimit, Verdict, denial_text
from amqpgate.policy.engine.requests import who_asks
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.policy.kinds.rate import RATE
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.events import Events
from amqpgate.values import define, frozen

#: How many are kept; each is less than 2 KiB, since names are at most 255 bytes. Who asked is its session's.
KEPT: Final = 500

#: ``shadow``: a policy that is not enforced would have decided so. ``not_transformed``: a transform policy
#: cannot, or may not, change it.
Sort: TypeAlias = Literal["denied", "shadow", "not_transformed"]


def _is_no_principal(attribute: attrs.Attribute[object], _: object) -> bool:
    return attribute.name != "principal"


def _without_passwords(value: object) -> object:
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, dict):
        return {key: _without_passwords(one) for key, one in value.items()}
    return [_without_passwords(one) for one in value] if isinstance(value, list) else value


@frozen
class Decision:
    """One that is kept."""

    at: float
    #: Of the decisions of this process, from 1.
    number: int
    kind: Sort
    session: str
    #: Who asked. Its session has it too.
    principal: Principal
    operation: str
    exchange: str | None
    routing_key: str | None
    queue: str | None
    destination: str | None
    policy: str | None
    rule: str
    effect: str
    text: str

    def shown(self) -> dict[str, JSON]:
        """As the log would show it: without passwords. ``as`` is who asked, as `/explain` takes it."""
        principal = self.principal
        said: dict[str, JSON] = attrs.asdict(self, filter=_is_no_principal)
        said |= {"user": principal.user, "vhost": principal.vhost, "client": principal.source}
        return cast("dict[str, JSON]", _without_passwords(said | {"as": who_asks(principal)}))


@define
class Hits:
    """Of one rule."""

    count: int = 0
    #: That passed since it had decided about all those like them.
    messages: int = 0
    #: When it decided last, or was seen to have decided about more messages.
    last: float | None = None

    def add(self, now: float) -> None:
        self.count += 1
        self.last = now

    def passed(self, messages: int, now: float) -> None:
        self.messages += messages
        self.last = now

    def shown(self) -> dict[str, JSON]:
        return {"hits": self.count, "messages": self.messages, "last_hit": self.last}


@define(eq=False)
class Decisions:
    """Of one gateway."""

    events: Events
    #: Since when hits are counted: others count anew when other policies come into force.
    since: float = attrs.field(factory=time.time, init=False)
    hits: dict[RuleKey, Hits] = attrs.field(factory=dict, init=False)
    #: What policies that are not enforced would have decided otherwise, by policy, rule and effect.
    differences: dict[tuple[str | None, str, str], Hits] = attrs.field(factory=dict, init=False)
    #: Operations that policies have denied since the start.
    denials: int = attrs.field(default=0, init=False)
    _digest: str = attrs.field(default="", init=False)
    _kept: deque[Decision] = attrs.field(factory=deque, init=False)
    #: How many of these each user has of a kind.
    _shares: Counter[tuple[Sort, str | None]] = attrs.field(factory=Counter, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: count(1), init=False)

    def use(self, digest: str) -> None:
        """These policies are in force."""
        if digest != self._digest:
            self._digest, self.since = digest, time.time()
            self.hits.clear()
            self.differences.clear()

    def allowed(self, verdict: Verdict) -> None:
        """A rule allows an operation."""
        self.used((ACCESS.name, verdict.policy, verdict.rule))

    def used(self, rule: RuleKey) -> None:
        """A rule has decided."""
        hits = self.hits.get(rule)
        if hits is None:
            hits = self.hits[rule] = Hits()
        hits.add(time.time())

    def passed(self, rule: RuleKey, messages: int) -> None:
        """So many messages more have passed by what a rule has decided."""
        hits = self.hits.get(rule)
        if hits is None:
            hits = self.hits[rule] = Hits()
        hits.passed(messages, time.time())

    def limited(self, limit: SharedLimit) -> None:
        """A limit did something, or would have."""
        if limit.enforced:
            self.used((RATE.name, limit.policy, limit.limit))
        else:
            self.differences.setdefault((limit.policy, limit.limit, limit.action), Hits()).add(time.time())

    def denied(self, verdict: Verdict, operation: Operation, session: str, text: str) -> None:
        """A policy denies one; ``text`` is what the client reads."""
        now = time.time()
        self.denials += 1
        self.hits.setdefault((ACCESS.name, verdict.policy, verdict.rule), Hits()).add(now)
        self._keep(now, "denied", verdict, operation, session, text)

    def would_differ(self, verdict: Verdict, operation: Operation, session: str) -> None:
        """A policy that is not enforced would have decided so."""
        now = time.time()
        key = (verdict.policy, verdict.rule, verdict.effect)
        self.differences.setdefault(key, Hits()).add(now)
        said = "would be allowed" if verdict.allowed else denial_text(operation, verdict)
        self._keep(now, "shadow", verdict, operation, session, said)

    def not_transformed(self, operation: str, principal: Principal, why: str) -> None:
        """A transform policy refuses one."""
        verdict = Verdict("deny", None, "transform")
        self._keep(time.time(), "not_transformed", verdict, Operation(principal, operation), "", why)

    def last(self, most: int, kind: str | None) -> list[dict[str, JSON]]:
        """The newest first."""
        chosen = (one for one in reversed(self._kept) if kind is None or one.kind == kind)
        return [one.shown() for one in islice(chosen, most)]

    def _keep(
        self, now: float, kind: Sort, verdict: Verdict, operation: Operation, session: str, text: str
    ) -> None:
        decision = Decision(
            now,
            next(self._numbers),
            kind,
            session,
            operation.principal,
            operation.name,
            operation.exchange,
            operation.routing_key,
            operation.queue,
            operation.destination,
            verdict.policy,
            verdict.rule,
            verdict.effect,
            text,
        )
        if len(self._kept) == KEPT:
            self._make_room()
        self._kept.append(decision)
        self._shares[kind, decision.principal.user] += 1
        if self.events.listeners:
            self.events.tell("decision", **decision.shown())

    def _make_room(self) -> None:
        """The oldest goes of the user who has most: who asks in vain all day leaves the others' to be seen.

        A denial then takes 4 us here where one user has them all, and 29 where 500 have one each; 2 without.
        """
        most = max(self._shares, key=self._shares.__getitem__)
        oldest = next(place for place, one in enumerate(self._kept) if (one.kind, one.principal.user) == most)
        del self._kept[oldest]
        self._shares[most] -= 1
        if not self._shares[most]:
            del self._shares[most]
