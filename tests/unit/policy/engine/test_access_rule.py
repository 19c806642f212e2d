"""Rules of access policies as documents write them."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.access_rule import OperationPattern, Rule
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.yamldoc import Invalid


def test_a_pattern_names_operations() -> None:
    assert OperationPattern.parse("basic.get").names == ("basic.get",)
    assert set(OperationPattern.parse("*").names) == set(OPERATIONS)
    assert set(OperationPattern.parse("*.delete").names) == {"queue.delete", "exchange.delete"}
    with pytest.raises(ValueError, match=r"no operation is named 'basic.gett'.*basic.get"):
        OperationPattern.parse("basic.gett")


def test_a_rule_is_about_operations_that_have_what_it_names() -> None:
    every = Rule(id="r", effect="allow", operations=(OperationPattern.parse("*"),), queue=Match(literal="q"))
    assert every.applies_to("basic.get")
    assert not every.applies_to("basic.publish")
    assert every.lacks_of("basic.publish") is not None


def test_a_rule_that_could_never_match_is_an_error() -> None:
    with pytest.raises(Invalid):
        Rule(
            id="r",
            effect="allow",
            operations=(OperationPattern.parse("basic.publish"),),
            queue=Match(literal="q"),
        )
