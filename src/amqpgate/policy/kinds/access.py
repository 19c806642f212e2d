"""Access policies: who may do what, and what that means for one session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amqpgate.policy.engine.access_rule import DEFAULT_ACCESS, OnDenied
from amqpgate.policy.engine.matching import Values
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.engine.rules import CompiledRule, compile_rule
from amqpgate.policy.engine.verdicts import UNRESTRICTED, UNSELECTED, OperationRules, SessionPolicy
from amqpgate.policy.kinds.access_document import AccessPolicy
from amqpgate.policy.kinds.access_findings import findings
from amqpgate.policy.kinds.common import DefaultAccess
from amqpgate.policy.kinds.kind import PolicyKind, Row, SessionSelection, by_subjects, rule_variables
from amqpgate.values import frozen

#: From the one that tells the client most to the one that tells it least.
_ON_DENIED: Final[tuple[OnDenied, ...]] = ("channel-close", "nack", "return", "drop")


def default_access_words(default: DefaultAccess) -> str:
    """For logs."""
    may = "everything" if default == "allow" else "nothing"
    return f"{DEFAULT_ACCESS}: {default}, so users whom no access policy selects may do {may}"


@frozen(eq=False)
class SessionAccess:
    """What one session may do by its access policies."""

    #: What holds.
    enforced: SessionPolicy
    #: What would hold if every policy were enforced; None where they all are.
    shadow: SessionPolicy | None = None

    #: Whether no policy would deny the session anything, not even for show.
    is_unrestricted: bool = attrs.field(init=False)

    @is_unrestricted.default
    def _is_unrestricted(self) -> bool:
        return self.enforced.unrestricted and self.shadow is None


def session_access(session: SessionSelection[AccessPolicy]) -> SessionAccess:
    """Of policies that select a session. It takes long where there are many rules."""
    everything = [(one.policy, one.is_sure) for one in session.policies]
    held = [(one.policy, one.is_sure) for one in session.policies if one.is_enforced]
    values, default = session.values, session.default_access
    return SessionAccess(
        session_policy(held, values, default),
        session_policy(everything, values, default) if len(held) < len(everything) else None,
    )


def session_policy(
    selected: Sequence[tuple[AccessPolicy, bool]], values: Values, default_access: DefaultAccess = "allow"
) -> SessionPolicy:
    """From the policies that select, and whether their allow rules count; or from what holds without any."""
    deny: dict[str, list[CompiledRule]] = {name: [] for name in OPERATIONS}
    allow: dict[str, list[CompiledRule]] = {name: [] for name in OPERATIONS}
    for policy, may_allow in selected:
        on_deny = policy.spec.on_deny
        for rule in policy.spec.rules:
            if rule.effect == "allow" and not may_allow:
                continue
            into = allow if rule.effect == "allow" else deny
            for name in dict.fromkeys(name for pattern in rule.operations for name in pattern.names):
                if rule.applies_to(name):
                    into[name] += compile_rule(
                        policy.metadata.name,
                        rule,
                        OPERATIONS[name],
                        values,
                        on_denied=on_deny.publish,
                        disclosed=on_deny.disclose == "rule-id",
                    )
    ways = {policy.spec.on_deny.publish for policy, _ in selected}
    return SessionPolicy(
        tuple(sorted(policy.metadata.name for policy, _ in selected)),
        {name: OperationRules(kind, deny[name], allow[name]) for name, kind in OPERATIONS.items()},
        next((way for way in _ON_DENIED if way in ways), "channel-close"),
        bool(selected) and all(policy.spec.on_deny.disclose == "rule-id" for policy, _ in selected),
        UNRESTRICTED if default_access == "allow" else UNSELECTED,
    )


def _row(policy: AccessPolicy) -> Row:
    return {
        "enforce_percent": policy.spec.enforce_percent,
        "rules": [
            {"id": rule.id, "effect": rule.effect, "operations": [str(one) for one in rule.operations]}
            for rule in policy.spec.rules
        ],
    }


ACCESS: Final = PolicyKind(
    document=AccessPolicy,
    subjects=by_subjects,
    compile=session_access,
    variables=rule_variables,
    row=_row,
    findings=findings,
)
