"""Which rule lies within which."""

from __future__ import annotations

from hypothesis import given, settings

from amqpgate.policy import Operation
from amqpgate.policy.engine.inclusion import rule_within
from tests.unit.policy.build_set import document, policies
from tests.unit.policy.tools.test_explain import OPERATIONS, RULES


# Few pairs of rules lie within each other.
@settings(max_examples=400)
@given(RULES, RULES, OPERATIONS)
def test_what_lies_within_a_rule_matches_only_where_it_does(
    inner: str, outer: str, operation: Operation
) -> None:
    from amqpgate.policy.tools.explain import explain

    policy_set = policies(document(inner, outer))
    one, two = policy_set.access[0].spec.rules
    for step in explain(policy_set, operation).steps:
        first, second = step.rules
        if first.matches and rule_within(one, two, step.operation.name):
            assert second.matches
