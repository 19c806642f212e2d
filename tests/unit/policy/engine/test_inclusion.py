"""Which rule lies within which."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from amqpgate.policy import Operation
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.inclusion import pattern_within, rule_within, subject_within
from amqpgate.policy.engine.subjects import Cidr, NamePattern, Subject
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


@pytest.mark.parametrize(
    ("inner", "outer", "within"),
    [
        (Match(literal="a"), Match(literal="a"), True),
        (Match(literal="a"), Match(literal="b"), False),
        (Match(literal="ab"), Match(prefix="a"), True),
        (Match(prefix="ab"), Match(prefix="a"), True),
        (Match(prefix="a"), Match(prefix="ab"), False),
        (Match(prefix="a"), Match(literal="a"), False),
        (Match(topic="a.*"), Match(topic="a.#"), True),
        (Match(topic="a.#"), Match(topic="a.*"), False),
        (Match(prefix="a."), Match(topic="a.#"), True),
        (Match(prefix="a"), Match(topic="a.#"), False),
        (Match(regex="a+"), Match(prefix=""), True),
        (Match(regex="a+"), Match(regex="a*"), False),
        (Match(literal="{user}"), Match(prefix="a"), False),
        (Match(literal="ab"), Match(prefix="a", unless=Match(literal="ab")), False),
    ],
)
def test_what_lies_within_a_pattern(inner: Match, outer: Match, within: bool) -> None:
    assert pattern_within(inner, outer) is within


BOB, ANY_B = NamePattern.parse("bob"), NamePattern.parse("b*")


@pytest.mark.parametrize(
    ("inner", "outer", "within"),
    [
        (Subject(user=BOB), Subject(user=ANY_B), True),
        (Subject(user=ANY_B), Subject(user=BOB), False),
        (Subject(user=BOB), Subject(user=BOB, vhosts=(BOB,)), False),
        (Subject(user=BOB, vhosts=(BOB,)), Subject(vhosts=(ANY_B,)), True),
        (
            Subject(source_cidr=(Cidr.parse("10.1.0.0/16"),)),
            Subject(source_cidr=(Cidr.parse("10.0.0.0/8"),)),
            True,
        ),
        (Subject(source_cidr=(Cidr.parse("::/0"),)), Subject(source_cidr=(Cidr.parse("0.0.0.0/0"),)), False),
        (Subject(), Subject(client={"product": BOB}), False),
    ],
)
def test_whom_another_subject_takes_in(inner: Subject, outer: Subject, within: bool) -> None:
    assert subject_within(inner, outer) is within
