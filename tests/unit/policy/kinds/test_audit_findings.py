"""What policy check says of audit rules."""

from __future__ import annotations

import pytest

from tests.unit.policy.build_set import found

AUDIT = """
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {{name: a}}
spec:
  subjects: [{{user: {user}}}]
  rules:
  - {{id: first, operations: [{operations}], {first}}}
  - {{id: second, operations: [basic.publish, queue.delete], {second}}}
"""


@pytest.mark.parametrize(
    ("operations", "user", "first", "second", "reached"),
    [
        ("'*'", "bob", "level: metadata", "level: body", False),
        ("'basic.*'", "bob", "level: metadata", "level: body", True),
        ("basic.publish, 'queue.*'", "bob", "level: metadata", "level: none", False),
        # Of a session whose user is not known yet, a rule that says none says nothing.
        ("'*'", "bob", "level: none", "level: body", True),
        ("'*'", "'*'", "level: none", "level: body", False),
        ("basic.publish", "bob", "exchange: {prefix: o}, level: headers", "level: body", True),
    ],
)
def test_an_audit_rule_behind_one_that_matches_all_that_it_does(
    operations: str, user: str, first: str, second: str, reached: bool
) -> None:
    text = AUDIT.format(operations=operations, user=user, first=first, second=second)
    assert [one for one in found(text) if "never decides" in one] == (
        []
        if reached
        else [
            "9 problem audit rule 'a/second' never decides: 'a/first' (p.yaml:8) comes first, and matches "
            "all that it does"
        ]
    )
