"""Where the first that matches holds: routes and audit rules that are never reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.kinds.audit import AuditPolicy, AuditRule
from amqpgate.policy.kinds.route import Route, RoutePolicy
from amqpgate.policy.kinds.route_table import in_order
from amqpgate.policy.tools.findings import Finding
from amqpgate.policy.tools.inclusion import pattern_within, subject_within
from amqpgate.yamldoc import Mark, Node, locate


def never_reached(documents: Iterable[tuple[Node, object]]) -> Iterator[Finding]:
    """Findings about routes and audit rules that come after others which take all that is theirs."""
    documents = list(documents)
    yield from _routes([(node, one) for node, one in documents if isinstance(one, RoutePolicy)])
    yield from _audit_rules([(node, one) for node, one in documents if isinstance(one, AuditPolicy)])


# -- routes ----------------------------------------------------------------------------------


def _routes(policies: list[tuple[Node, RoutePolicy]]) -> Iterator[Finding]:
    nodes = {policy.metadata.name: node for node, policy in policies}
    before: list[tuple[RoutePolicy, Route, Mark]] = []
    for policy in in_order(policy for _, policy in policies):
        if policy.spec.mode == "off":
            continue
        for index, route in enumerate(policy.spec.routes):
            mark = locate(nodes[policy.metadata.name], RoutePolicy, ("spec", "routes", index))
            for earlier, taker, place in before:
                if _holds_before(earlier, policy) and subject_within(route.match, taker.match):
                    yield Finding(
                        "problem",
                        mark,
                        f"route '{route.id}' is never taken: '{taker.id}' ({place.file}:{place.line}) comes "
                        "first, and takes all its connections",
                        "remove it, put it first, or narrow the other's match",
                    )
                    break
            before.append((policy, route, mark))


def _holds_before(earlier: RoutePolicy, later: RoutePolicy) -> bool:
    """Whether the earlier policy is in force wherever the later one is."""
    spec = earlier.spec
    return earlier is later or spec.mode == "enforce" or spec.enforce_percent >= 100


# -- audit rules -----------------------------------------------------------------------------


@attrs.frozen
class _Placed:
    policy: AuditPolicy
    rule: AuditRule
    mark: Mark


def _audit_rules(policies: list[tuple[Node, AuditPolicy]]) -> Iterator[Finding]:
    before: list[_Placed] = []
    for node, policy in sorted(policies, key=lambda one: one[1].metadata.name):
        for index, rule in enumerate(policy.spec.rules):
            one = _Placed(policy, rule, locate(node, AuditPolicy, ("spec", "rules", index)))
            takers = [
                next((other for other in before if _takes(other, one, name)), None)
                for name in OPERATIONS
                if rule.applies_to(name)
            ]
            if takers and None not in takers:
                first = takers[0]
                assert first is not None
                yield Finding(
                    "problem",
                    one.mark,
                    f"audit rule '{policy.metadata.name}/{rule.id}' never decides: "
                    f"'{first.policy.metadata.name}/{first.rule.id}' ({first.mark.file}:{first.mark.line}) "
                    "comes first, and matches all that it does",
                    "remove it, put it first, or narrow the other",
                )
            before.append(one)


def _takes(other: _Placed, one: _Placed, operation: str) -> bool:
    """Whether the other rule surely matches whatever this one does."""
    if not other.rule.applies_to(operation):
        return False
    if other.policy is not one.policy and not all(
        any(subject_within(inner, outer) for outer in other.policy.spec.subjects)
        for inner in one.policy.spec.subjects
    ):
        return False
    if other.rule.level == "none" != one.rule.level and not _is_certain(other, operation):
        return False
    mine = one.rule.matches
    for attribute, wide in other.rule.matches.items():
        own = mine.get(attribute)
        if own is None or not pattern_within(own, wide):
            return False
    return True


def _is_certain(placed: _Placed, operation: str) -> bool:
    """A rule that says none does not match where something that it asks for is not known."""
    knows = all(not match.variables for match in placed.rule.matches.values())
    anybody = all(subject.user.is_prefix and not subject.user.text for subject in placed.policy.spec.subjects)
    return knows and anybody and not OPERATIONS[operation].binds
