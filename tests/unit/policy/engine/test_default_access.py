"""What those may do whom no access policy selects."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.policy import OPERATIONS, Operation, PolicySet, Principal
from amqpgate.policy.tools.diff import compare
from amqpgate.policy.tools.explain import explain
from tests.unit.policy.build_set import BOB, document, policies

EVE = attrs.evolve(BOB, user="eve")
SET = policies(document("effect: allow, operations: [basic.publish]"))
CLOSED = attrs.evolve(SET, default_access="deny")


def publish(who: Principal) -> Operation:
    return Operation(who, "basic.publish", exchange="x", routing_key="k")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_at_all(operation: str) -> None:
    """Not even what touches no resource, such as to open the connection."""
    names = dict.fromkeys(OPERATIONS[operation].attributes, "x")
    asked = Operation(EVE, operation, **names)
    assert SET.decide(asked).allowed
    verdict = CLOSED.decide(asked)
    assert (verdict.effect, verdict.policy, verdict.rule) == ("deny", None, "defaultAccess")
    assert PolicySet.empty("deny").decide(asked) == verdict


def test_who_is_selected_notices_nothing() -> None:
    for operation in (publish(BOB), Operation(BOB, "connection.open"), Operation(BOB, "tx.commit")):
        assert CLOSED.decide(operation) == SET.decide(operation)
    assert CLOSED.for_principal(BOB).admit(publish(BOB)).verdict.allowed


def test_publishes_of_which_only_the_method_has_come() -> None:
    held = CLOSED.for_principal(EVE)
    assert not held.unrestricted
    assert not held.admit(publish(EVE)).verdict.allowed


def test_a_user_who_is_not_known_is_selected_by_what_may_mean_it() -> None:
    verdict = CLOSED.decide(publish(attrs.evolve(BOB, user=None)))
    assert (verdict.effect, verdict.rule) == ("deny", "default")


@pytest.mark.parametrize(("held", "effect"), [(SET, "allow"), (CLOSED, "deny")])
def test_it_is_explained(held: PolicySet, effect: str) -> None:
    said = explain(held, publish(EVE))
    assert (said.verdict.effect, said.by) == (effect, "defaultAccess: no policy selects")
    assert explain(held, publish(BOB)).verdict.policy == "p"


def test_a_policy_less_is_a_difference_either_way() -> None:
    other = policies(document("effect: allow, operations: [basic.publish]", subjects="{user: eve}"))
    closed = attrs.evolve(other, default_access="deny")
    for before, after in ((SET, other), (CLOSED, closed)):
        assert compare(before, after).differences
    assert not compare(SET, SET).differences
    assert not compare(CLOSED, CLOSED).differences
