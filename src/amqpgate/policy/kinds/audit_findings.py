"""What ``amqpgate policy check`` says of audit policies."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.policy.engine.inclusion import pattern_within, subject_within
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.kinds.audit_document import AuditPolicy, AuditRule
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck
from amqpgate.policy.kinds.pattern_findings import about_wildcards
from amqpgate.values import frozen
from amqpgate.yamldoc import Mark


@frozen
class _PlacedAuditRule:
    policy: AuditPolicy
    rule: AuditRule
    mark: Mark


def findings(folder: FolderCheck[AuditPolicy]) -> Iterator[Finding]:
    """Wildcards that mean themselves, and rules that come after others which take all that is theirs."""
    before: list[_PlacedAuditRule] = []
    for placed in sorted(folder.documents, key=lambda one: one.name):
        policy = placed.document
        for index, rule in enumerate(policy.spec.rules):
            one = _PlacedAuditRule(policy, rule, placed.mark("spec", "rules", index))
            yield from about_wildcards(f"rule '{placed.name}/{rule.id}'", one.mark, rule)
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


def _takes(other: _PlacedAuditRule, one: _PlacedAuditRule, operation: str) -> bool:
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


def _is_certain(placed: _PlacedAuditRule, operation: str) -> bool:
    """A rule that says none does not match where something that it asks for is not known."""
    knows = all(not match.variables for match in placed.rule.matches.values())
    anybody = all(subject.user.is_prefix and not subject.user.text for subject in placed.policy.spec.subjects)
    return knows and anybody and not OPERATIONS[operation].binds
