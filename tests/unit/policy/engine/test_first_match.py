"""Rules of which the first that matches decides."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.access_rule import OperationPattern
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.first_match import FirstMatch, FirstMatchRule
from amqpgate.policy.engine.operations import Operation, Principal
from amqpgate.yamldoc import Invalid

BOB = Principal("bob", "/")
PUBLISH = Operation(BOB, "basic.publish", exchange="bob", routing_key="k")


def rule(operations: str, **more: Match) -> FirstMatchRule:
    return FirstMatchRule(id="r", operations=(OperationPattern.parse(operations),), **more)


def test_the_first_decides_for_its_operations() -> None:
    rules = [(rule("basic.publish", exchange=Match(literal="x")), 1, True), (rule("basic.*"), 2, True)]
    found = FirstMatch.of(rules, BOB.values)
    assert found.decide(PUBLISH) == 2
    assert found.decide(Operation(BOB, "basic.publish", exchange="x", routing_key="k")) == 1
    assert found.decide(Operation(BOB, "queue.declare", queue="q")) is None
    assert "basic.get" in found.operations
    assert "queue.declare" not in found.operations


@pytest.mark.parametrize(("is_sure", "decision"), [(True, 2), (False, 1)])
def test_where_a_variable_is_not_known_a_rule_that_must_match_for_sure_does_not(
    is_sure: bool, decision: int
) -> None:
    rules = [(rule("basic.publish", exchange=Match(literal="{user}")), 1, is_sure), (rule("*"), 2, True)]
    assert FirstMatch.of(rules, Principal(None, "/").values).decide(PUBLISH) == decision
    assert FirstMatch.of(rules, BOB.values).decide(PUBLISH) == 1


def test_an_operation_without_what_the_rule_names_is_an_error() -> None:
    with pytest.raises(Invalid, match=r"'queue\.purge' does not have all that this rule names"):
        rule("queue.purge", exchange=Match(literal="x"))
