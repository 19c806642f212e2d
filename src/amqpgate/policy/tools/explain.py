"""Which rule decides a request, and why each other one does not.

The verdict is the engine's own. The reasons are found by asking the engine's compiled rules for one
condition at a time, so that no condition is written down twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

import attrs

from amqpgate.policy.engine.access_rule import DEFAULT_ACCESS, DEFAULT_RULE, Rule
from amqpgate.policy.engine.conditions import (
    CompiledConditions,
    Effect,
    Match,
    Peek,
    PropertyConditions,
    TableConditions,
)
from amqpgate.policy.engine.matching import Values
from amqpgate.policy.engine.operations import OPERATIONS, MessageContent, Operation, Principal, every
from amqpgate.policy.engine.rules import Check, CompiledRule, Verdict, compile_rule
from amqpgate.policy.engine.separators import shared_by
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.engine.verdicts import as_judged, further
from amqpgate.policy.kinds.access_document import AccessPolicy
from amqpgate.policy.policy_set import PolicySet

_NO_LOGINS: Final[Mapping[str, str | None]] = MappingProxyType({})


@attrs.frozen
class RuleReport:
    """One rule of a policy that selects."""

    policy: str
    rule: str
    effect: Effect
    #: Whether it matches; one of those that do decides.
    matches: bool
    decides: bool
    #: Where it does not match.
    mismatch: str


@attrs.frozen
class PolicyReport:
    """One policy: whether it counts for who asks."""

    policy: str
    counts: bool
    #: Where it does not, or counts in part.
    why: str


@attrs.frozen
class ExplainStep:
    """The request, or one that it leads to."""

    operation: Operation
    verdict: Verdict
    rules: tuple[RuleReport, ...]


@attrs.frozen
class Explanation:
    """A verdict and its reasons."""

    operation: Operation
    verdict: Verdict
    policies: tuple[PolicyReport, ...]
    #: The request first, then those that it leads to, until one is denied.
    steps: tuple[ExplainStep, ...]
    #: Of a publish that is allowed: where a copy may go, in words.
    mirror: str | None = None
    #: Where the route logs in as another user, in words.
    login: str | None = None

    @property
    def by(self) -> str:
        """Who decided, in words."""
        if self.verdict.policy is not None:
            return f"{self.verdict.name}"
        if not any(report.counts for report in self.policies):
            return f"{DEFAULT_ACCESS}: no policy selects"
        if self.verdict.allowed:
            return f"{DEFAULT_RULE}: it touches no resource"
        about = self.verdict.attribute
        return f"{DEFAULT_RULE}: no rule allows it" + (
            f" for this {about.replace('_', ' ')}" if about is not None else ""
        )


def settled(policy_set: PolicySet, *, shadow: bool = False) -> PolicySet:
    """The access policies of the set, with those in mode shadow enforced, or off.

    Which sessions a share of a hundred means is not known here, so it means none.
    """
    return PolicySet(
        tuple(
            attrs.evolve(
                policy,
                spec=attrs.evolve(
                    policy.spec,
                    mode="enforce" if shadow else "off",
                    enforce_percent=type(policy.spec.enforce_percent)(0),
                ),
            )
            if policy.spec.mode == "shadow"
            else policy
            for policy in policy_set.access
        )
        + policy_set.membership.documents,
        policy_set.digest,
        policy_set.default_access,
    )


def explain(
    policy_set: PolicySet,
    operation: Operation,
    *,
    shadow: bool = False,
    logins: Mapping[str, str | None] = _NO_LOGINS,
) -> Explanation:
    """Why the set answers as it does; with ``shadow``, as if policies in mode shadow were enforced.

    ``logins`` has, by upstream, the user that it logs in as, if it does.
    """
    held = settled(policy_set, shadow=shadow)
    operation = attrs.evolve(operation, principal=policy_set.membership.applied(operation.principal))
    session = held.for_principal(operation.principal)
    reports, counting = [], []
    for policy, original in zip(held.access, policy_set.access, strict=True):
        report, may_allow = _selection(policy, original, operation.principal)
        reports.append(report)
        if report.counts:
            counting.append((policy, may_allow))
    values = operation.principal.values
    steps = []
    for one in chain([operation], further(operation)):
        verdict = session.judge(one)
        rules = tuple(_rules(counting, as_judged(one), values, verdict))
        steps.append(ExplainStep(one, verdict, rules))
        if not verdict.allowed:
            break
    verdict = session.decide(operation)
    mirror = _mirror(policy_set, operation) if verdict.allowed else None
    login = _login(policy_set, operation.principal, logins)
    return Explanation(operation, verdict, tuple(reports), tuple(steps), mirror, login)


def _login(policy_set: PolicySet, principal: Principal, logins: Mapping[str, str | None]) -> str | None:
    """Whom brokers take who asks for, by its route, where that is another user."""
    choice = policy_set.route_of(principal).choice
    return None if choice is None else choice.route.lent(logins)


def _mirror(policy_set: PolicySet, operation: Operation) -> str | None:
    """Where a copy of a publish goes by the route of who asks."""
    choice = policy_set.route_of(operation.principal).choice
    mirror = choice.route.upstream.mirror if choice is not None else None
    if choice is None or mirror is None or operation.name != "basic.publish":
        return None
    return f"route {choice.route.id}: {mirror.shown}" if mirror.wants(operation.exchange or "") else None


def _selection(
    policy: AccessPolicy, original: AccessPolicy, principal: Principal
) -> tuple[PolicyReport, bool]:
    """Whether the policy counts, and whether its allow rules do."""
    name = policy.metadata.name
    answers = [subject.selects(principal) for subject in policy.spec.subjects]
    if all(answer is None for answer in answers):
        reasons = "; ".join(_unfit(subject, principal) for subject in policy.spec.subjects)
        return PolicyReport(name, False, reasons), False
    if policy.spec.mode == "off":
        percent = original.spec.enforce_percent
        share = f", enforced for {percent:g} % of sessions" if percent else ""
        return PolicyReport(name, False, f"its mode is {original.spec.mode}{share}"), False
    if True not in answers:
        return PolicyReport(name, True, "the user is not known, so that only its deny rules count"), False
    return PolicyReport(name, True, ""), True


def _unfit(subject: Subject, principal: Principal) -> str:
    """The first part of the subject that does not fit."""
    user = f"'{principal.user}'" if principal.user is not None else "that is not known"
    parts: list[tuple[Subject, str]] = [
        (Subject(user=subject.user), f"user {user} is not {subject.user}"),
    ]
    if subject.vhosts is not None:
        wanted = _list(subject.vhosts)
        parts.append((Subject(vhosts=subject.vhosts), f"vhost '{principal.vhost}' is not {wanted}"))
    if subject.source_cidr is not None:
        wanted = _list(subject.source_cidr)
        parts.append(
            (Subject(source_cidr=subject.source_cidr), f"source {principal.source} is not in {wanted}")
        )
    if subject.listeners is not None:
        wanted = _list(subject.listeners)
        parts.append((Subject(listeners=subject.listeners), f"listener {principal.listener} is not {wanted}"))
    if subject.tls is not None:
        parts.append((Subject(tls=subject.tls), "the client's certificate does not fit"))
    if subject.groups is not None:
        groups = ", ".join(sorted(principal.groups)) or "none"
        parts.append(
            (Subject(groups=subject.groups), f"its groups ({groups}) are not {_list(subject.groups)}")
        )
    if (subject.scopes is not None or subject.claims) and principal.token is None:
        parts.append(
            (Subject(scopes=subject.scopes, claims=subject.claims), "it has shown no verified token")
        )
    elif principal.token is not None:
        token = principal.token
        if subject.scopes is not None:
            scopes = ", ".join(sorted(token.scopes)) or "none"
            parts.append(
                (Subject(scopes=subject.scopes), f"its scopes ({scopes}) are not {_list(subject.scopes)}")
            )
        for claim, pattern in subject.claims.items():
            values = " and ".join(token.values_of(claim)) or "not there"
            parts.append((Subject(claims={claim: pattern}), f"claim {claim} is {values}, not {pattern}"))
    for key, pattern in subject.client.items():
        said = principal.client.get(key)
        parts.append((Subject(client={key: pattern}), f"client property {key} is {said}, not {pattern}"))
    for part, reason in parts:
        if part.selects(principal) is None:
            return reason
    raise AssertionError("a subject whose parts all fit selects")


def _list(items: tuple[object, ...]) -> str:
    return " or ".join(map(str, items))


def _rules(
    counting: list[tuple[AccessPolicy, bool]], operation: Operation, values: Values, verdict: Verdict
) -> Iterator[RuleReport]:
    for policy, may_allow in counting:
        name = policy.metadata.name
        for rule in policy.spec.rules:
            mismatch = _mismatch(rule, operation, values)
            if mismatch is None and rule.effect == "allow" and not may_allow:
                mismatch = "the user is not known, so that allow rules do not count"
            decides = (verdict.policy, verdict.rule) == (name, rule.id)
            if mismatch is None and not decides and verdict.policy is None and verdict.effect == "deny":
                mismatch = "a name with CR or LF in it is denied whatever the rules say"
            yield RuleReport(name, rule.id, rule.effect, mismatch is None, decides, mismatch or "")


def _mismatch(rule: Rule, operation: Operation, values: Values) -> str | None:
    """Why the rule does not match; None where it does."""
    listed = {name for pattern in rule.operations for name in pattern.names}
    if operation.name not in listed:
        return f"it is about {', '.join(map(str, rule.operations))}"
    if not rule.applies_to(operation.name):
        return f"{operation.name} has no {rule.lacks_of(operation.name)}"
    kind = OPERATIONS[operation.name]
    reasons: dict[str, None] = {}
    for variant in compile_rule("", rule, kind, values, on_denied="channel-close", disclosed=False):
        if variant.matches(operation):
            return None
        reasons[next(_reasons(variant, rule, operation, values))] = None
    return "; ".join(reasons)


def _reasons(variant: CompiledRule, rule: Rule, operation: Operation, values: Values) -> Iterator[str]:
    if variant.passive is not None and variant.passive is not operation.passive:
        yield "the declare is not passive" if variant.passive else "the declare is passive"
    for check in variant.checks:
        if not check.accepts(operation, variant.binds):
            yield _unmet(check, operation, values, variant.binds)
    if rule.arguments is not None:
        for part, words in _parts(rule.arguments, "argument", rule.effect, operation.arguments):
            if not part.hold(operation.arguments, rule.effect):
                yield words
    if rule.properties is not None:
        content = operation.content
        if operation.any_content:
            yield "it denies some messages to anywhere, each when it is published"
            return
        if content is None:
            yield "nothing is known of the message"
            return
        for condition, words in _conditions(rule.properties, rule.effect, values, content):
            if not condition.hold(content):
                yield words
        if rule.properties.headers is not None:
            for part, words in _parts(rule.properties.headers, "header", rule.effect, content.headers):
                if not part.hold(content.headers, rule.effect):
                    yield words
    raise AssertionError("a rule whose conditions all hold matches")


def _unmet(check: Check, operation: Operation, values: Values, binds: bool) -> str:
    value = getattr(operation, check.attribute)
    what = check.attribute.replace("_", " ")
    if check.matcher is None:
        return f"{what}: {check.said} {_not_told(check.said, values)}"
    if check.attribute == "routing_key" and (binds or operation.any_key):
        if not check.allows:
            return f"binding key '{value}' catches nothing that it means by {check.said}"
        if check.matcher.matches(value or ""):
            return f"binding key '{value}' can catch more than {check.said}"
    return f"{what} '{value}' is not {check.said}"


def _not_told(match: Match, values: Values) -> str:
    """Why a pattern that grants something means nothing to the session."""
    found = shared_by(*match.given, values)
    if found is None:
        return "holds a variable that is not known"
    variable, separator = found
    return f"means nothing to a {variable} with '{separator}' in it, which would share names with others"


def _parts(
    table: TableConditions, what: str, effect: Effect, given: Mapping[str, object]
) -> Iterator[tuple[TableConditions, str]]:
    """Each condition alone."""
    for name in table.require:
        yield TableConditions(require=(name,)), f"{what} {name} is not there"
    for pattern in table.deny:
        found = ", ".join(name for name in given if pattern.matches(name))
        yield TableConditions(deny=(pattern,)), f"{what} {found} is not acceptable to it"
    if table.allow is not None:
        others = ", ".join(name for name in given if not any(p.matches(name) for p in table.allow))
        yield TableConditions(allow=table.allow), f"{what} {others} is not acceptable to it"
    for name, match in table.values.items():
        said = " and ".join(f"'{value}'" for value in every(given, name))
        words = f"is {said}" if said else "is not there"
        yield TableConditions(values={name: match}), f"{what} {name} {words}, which it does not mean"


def _conditions(
    said: PropertyConditions, effect: Effect, values: Values, content: MessageContent
) -> Iterator[tuple[CompiledConditions, str]]:
    """Each condition on a message alone, but for its headers."""
    for name, match in said.texts.items():
        value = content.properties.get(name)
        matcher = match.compile(values, grants=effect == "allow")
        words = f"is '{value}', not {match}" if value is not None else f"is not there, it means {match}"
        if matcher is None:
            words = f"{match} {_not_told(match, values)}"
        alone = CompiledConditions(PropertyConditions(), effect, ((name, matcher),), Peek())
        yield alone, f"property {name} {words}"
    others = []
    if said.delivery_mode is not None:
        words = f"delivery mode is not {said.delivery_mode}"
        others.append((PropertyConditions(delivery_mode=said.delivery_mode), words))
    for required in said.require:
        others.append((PropertyConditions(require=(required,)), f"property {required} is not there"))
    if said.max_body_bytes is not None:
        words = f"the body has {content.body_size} bytes, more than {said.max_body_bytes}"
        others.append((PropertyConditions(max_body_bytes=said.max_body_bytes), words))
    for condition, words in others:
        yield condition.compile(effect, values), words
