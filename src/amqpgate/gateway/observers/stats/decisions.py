"""What policies have decided, for operators: how often each rule did, and the last refusals.

Of requests that the data path passes by a flow the rule has decided once, for all messages of a session with
these arguments. The data path has counted them, and `rule_messages` reads that.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import count, islice
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.gateway.session.observer import RuleKey
from amqpgate.logs import without_passwords
from amqpgate.policy import Operation, Principal, SharedLimit, Verdict, denial_text
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.policy.kinds.rate import RATE
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.events import Events
from amqpgate.values import define, frozen

#: How many are kept; each is less than 2 KiB, since names are at most 255 bytes.
KEPT: Final = 500

#: ``shadow``: a policy that is not enforced would have decided so. ``not_transformed``: a transform policy
#: cannot, or may not, change it.
Sort: TypeAlias = Literal["denied", "shadow", "not_transformed"]


@frozen
class Decision:
    """One that is kept."""

    at: float
    #: Of the decisions of this process, from 1.
    number: int
    kind: Sort
    session: str
    user: str | None
    vhost: str
    #: The client's IP address.
    client: str | None
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
        """As the log would show it: without passwords."""
        return {
            name: without_passwords(value) if isinstance(value, str) else value
            for name, value in attrs.asdict(self).items()
        }


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
    _kept: deque[Decision] = attrs.field(factory=lambda: deque(maxlen=KEPT), init=False)
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
        principal = operation.principal
        decision = Decision(
            now,
            next(self._numbers),
            kind,
            session,
            principal.user,
            principal.vhost,
            principal.source,
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
        self._kept.append(decision)
        if self.events.listeners:
            self.events.tell("decision", **decision.shown())
