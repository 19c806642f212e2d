"""Verdicts: deny overrides, default deny, order-free.

A policy selects a session if one of its subjects fits. A session that no policy selects may do
everything. Else an operation is denied if any deny rule of the selected policies matches, allowed if
any allow rule does, and denied by default.

A session whose user the gateway does not know is selected, to be safe, by every policy whose user it
could be: their deny rules hold for it, and their allow rules only if the policy is for any user.

`SessionPolicy` is made once per set of selected policies and shared by all sessions with that set; a
decision looks only at the rules for the operation's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TypeAlias

import attrs

from amqpgate.policy.documents import DEFAULT_RULE, AccessPolicy, Effect, Rule, Subject
from amqpgate.policy.matching import Matcher
from amqpgate.policy.operations import (
    OPERATIONS,
    SERVER_NAMED,
    Attribute,
    Operation,
    OperationKind,
    Principal,
)
from amqpgate.policy.rates import RatePolicy, SharedLimit, shared_limit

#: How many different sets of selected policies are kept ready; beyond that all are made anew.
SESSION_POLICIES = 1024


@attrs.frozen
class Verdict:
    """The answer, and who gave it."""

    effect: Effect
    #: The policy whose rule decided; None for the default.
    policy: str | None
    #: The rule's id, or ``default``.
    rule: str
    #: Of a denial: the attribute whose value was refused, which is what the client is told.
    attribute: Attribute | None = None

    @property
    def allowed(self) -> bool:
        """Whether the operation may go on."""
        return self.effect == "allow"


#: What a session that no policy selects hears.
UNRESTRICTED = Verdict("allow", None, DEFAULT_RULE)

Check: TypeAlias = "tuple[Attribute, Callable[[str], bool]]"


@attrs.frozen
class CompiledRule:
    """One rule as it applies to one operation."""

    verdict: Verdict
    checks: tuple[tuple[Callable[[Operation], str | None], Callable[[str], bool]], ...]
    #: The attribute that each check is about.
    attributes: tuple[Attribute, ...]

    def matches(self, operation: Operation) -> bool:
        """Whether all checks hold. A value that should be there and is not fails an allow, not a deny."""
        for get, accept in self.checks:
            value = get(operation)
            if value is None:
                if self.verdict.allowed:
                    return False
            elif not accept(value):
                return False
        return True


_GETTERS: dict[Attribute, Callable[[Operation], str | None]] = {
    "exchange": attrgetter("exchange"),
    "queue": attrgetter("queue"),
    "destination": attrgetter("destination"),
    "routing_key": attrgetter("routing_key"),
}


@attrs.define
class OperationRules:
    """The rules that speak of one operation."""

    kind: OperationKind
    deny: list[CompiledRule] = attrs.Factory(list)
    allow: list[CompiledRule] = attrs.Factory(list)

    def refused_attribute(self, operation: Operation) -> Attribute:
        """The first attribute, in RabbitMQ's order, at which no allow rule is left."""
        for position, attribute in enumerate(self.kind.attributes):
            accepted = self.kind.attributes[: position + 1]
            if not any(self._fits_so_far(rule, operation, accepted) for rule in self.allow):
                return attribute
        return self.kind.attributes[0]

    def _fits_so_far(self, rule: CompiledRule, operation: Operation, accepted: tuple[Attribute, ...]) -> bool:
        for attribute, (get, accept) in zip(rule.attributes, rule.checks, strict=True):
            value = get(operation)
            if attribute in accepted and (value is None or not accept(value)):
                return False
        return True


@attrs.frozen(eq=False)
class SessionPolicy:
    """What one session may do."""

    #: Names of the policies that selected the session, sorted.
    policies: tuple[str, ...]
    _rules: dict[str, OperationRules]

    @property
    def unrestricted(self) -> bool:
        """No policy selects the session: every decision is allow."""
        return not self.policies

    def decide(self, operation: Operation) -> Verdict:
        """May the session do this? What `OPERATIONS` does not list is denied if any policy selects."""
        if not self.policies:
            return UNRESTRICTED
        rules = self._rules.get(operation.name)
        if rules is None:
            return Verdict("deny", None, DEFAULT_RULE)
        if operation.queue == "" and operation.name == "queue.declare":
            operation = attrs.evolve(operation, queue=SERVER_NAMED)
        ambiguous = _ambiguous(operation)
        if ambiguous is not None:
            return Verdict("deny", None, DEFAULT_RULE, ambiguous)
        for rule in rules.deny:
            if rule.matches(operation):
                return rule.verdict
        for rule in rules.allow:
            if rule.matches(operation):
                return rule.verdict
        return Verdict("deny", None, DEFAULT_RULE, rules.refused_attribute(operation))


def _ambiguous(operation: Operation) -> Attribute | None:
    """A name with CR or LF in it: RabbitMQ strips them in some methods, so it would use another name."""
    names: tuple[tuple[Attribute, str | None], ...] = (
        ("exchange", operation.exchange),
        ("queue", operation.queue),
        ("destination", operation.destination),
    )
    for attribute, name in names:
        if name and ("\n" in name or "\r" in name):
            return attribute
    return None


def _session_policy(selected: Iterable[tuple[AccessPolicy, bool]]) -> SessionPolicy:
    """From the policies that select, and whether their allow rules count."""
    rules = {name: OperationRules(kind) for name, kind in OPERATIONS.items()}
    names = []
    for policy, may_allow in selected:
        names.append(policy.metadata.name)
        for rule in policy.spec.rules:
            if rule.effect == "allow" and not may_allow:
                continue
            for operation in dict.fromkeys(name for pattern in rule.operations for name in pattern.names):
                if rule.applies_to(operation):
                    target = rules[operation]
                    into = target.allow if rule.effect == "allow" else target.deny
                    into.extend(_compile(policy.metadata.name, rule, target.kind))
    return SessionPolicy(tuple(sorted(names)), rules)


def _compile(policy: str, rule: Rule, kind: OperationKind) -> list[CompiledRule]:
    matchers = {attribute: match.compile() for attribute, match in rule.matches.items()}
    variants = [matchers]
    if "destination" in kind.attributes and "exchange" in matchers and "destination" not in matchers:
        # An exchange binding joins two exchanges. A rule that names one means both: they must both fit to
        # be allowed, and either one is enough to be denied.
        both = matchers["exchange"]
        if rule.effect == "allow":
            variants = [{**matchers, "destination": both}]
        else:
            other = {**matchers, "destination": both}
            del other["exchange"]
            variants = [matchers, other]
    return [_compile_variant(policy, rule, kind, variant) for variant in variants]


def _compile_variant(
    policy: str, rule: Rule, kind: OperationKind, matchers: dict[Attribute, Matcher]
) -> CompiledRule:
    named = tuple(attribute for attribute in kind.attributes if attribute in matchers)
    checks = tuple(
        (_GETTERS[name], _question(matchers[name], rule.effect, name == "routing_key" and kind.binds))
        for name in named
    )
    blamed = None if rule.effect == "allow" else named[-1] if named else kind.attributes[0]
    return CompiledRule(Verdict(rule.effect, policy, rule.id, blamed), checks, named)


def _question(matcher: Matcher, effect: Effect, is_binding_key: bool) -> Callable[[str], bool]:
    if not is_binding_key:
        return matcher.matches
    return matcher.covers if effect == "allow" else matcher.overlaps


@attrs.frozen(eq=False)
class PolicySet:
    """All policies of one folder; replaced whole, never changed."""

    policies: tuple[AccessPolicy, ...]
    #: SHA-256 of what was read, in hexadecimal: the same digest means the same policies.
    digest: str
    rates: tuple[RatePolicy, ...] = ()
    _sessions: dict[tuple[tuple[int, bool], ...], SessionPolicy] = attrs.field(
        factory=dict, init=False, repr=False
    )

    @classmethod
    def empty(cls) -> PolicySet:
        """No policies: everything is allowed."""
        return cls((), "")

    def for_principal(self, principal: Principal) -> SessionPolicy:
        """The policy of a session; make it once, when the connection is opened."""
        selected = []
        for index, policy in enumerate(self.policies):
            answers = {_selects(subject, principal) for subject in policy.spec.subjects} - {None}
            if answers:
                selected.append((index, True in answers))
        key = tuple(selected)
        session = self._sessions.get(key)
        if session is None:
            session = _session_policy((self.policies[index], may_allow) for index, may_allow in key)
            if len(self._sessions) >= SESSION_POLICIES:
                self._sessions.clear()
            self._sessions[key] = session
        return session

    def limits_for(self, principal: Principal, connection: str) -> tuple[SharedLimit, ...]:
        """The limits that hold for the session that is called ``connection``.

        Those that might hold for a user whom the gateway does not know do.
        """
        return tuple(
            shared_limit(policy, limit, principal, connection)
            for policy in self.rates
            if any(_selects(subject, principal) is not None for subject in policy.spec.subjects)
            for limit in policy.spec.limits
        )

    def decide(self, operation: Operation) -> Verdict:
        """One decision from scratch; a session keeps its `SessionPolicy` instead."""
        return self.for_principal(operation.principal).decide(operation)


def _selects(subject: Subject, principal: Principal) -> bool | None:
    """True: it fits. False: it may fit, the user is not known. None: it does not fit."""
    if subject.vhosts is not None and not any(name.matches(principal.vhost) for name in subject.vhosts):
        return None
    if principal.user is not None:
        return True if subject.user.matches(principal.user) else None
    return subject.user.is_prefix and not subject.user.text
