"""Groups of users: who is in which, and that subjects of every kind can name them."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import Operation, Principal, Source, TokenIdentity, build
from amqpgate.policy.policy_set import PolicySet
from amqpgate.policy.tools.diff import compare
from amqpgate.policy.tools.explain import explain
from tests.unit.policy.build_set import BOB, document, found, policies

GROUPS = "apiVersion: amqpgate.io/v1alpha1\nkind: UserGroups\nmetadata: {name: %s}\nspec:\n  groups: {%s}\n"
OF_GROUP = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: slow}
spec:
  subjects: [{groups: [billing]}]
  limits: [{id: few, messages: 1/s}]
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: away}
spec:
  routes: [{id: away, match: {groups: [billing]}, upstream: {cluster: other}}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TransformPolicy
metadata: {name: tenant}
spec:
  subjects: [{groups: [billing]}]
  names: {both: {prefix: "t."}}
---
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: seen}
spec:
  subjects: [{groups: [billing]}]
  rules: [{id: all, operations: [basic.publish], level: metadata}]
---
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: traced}
spec:
  subjects: [{groups: [billing]}]
  rules: [{id: all, operations: [basic.publish], ratio: 1}]
---
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: old}
spec:
  subjects: [{groups: [billing]}]
  as: rabbitmq-3.13
"""


def groups(said: str, name: str = "teams") -> str:
    return GROUPS % (name, said)


def selecting(policy_set: PolicySet, principal: Principal) -> set[str]:
    return {one.kind for one in policy_set.selecting(principal)}


@pytest.mark.parametrize(
    ("user", "are"),
    [("bob", {"billing", "both"}), ("svc-1", {"both"}), ("svc", set()), ("bobby", set())],
)
def test_who_is_in_which(user: str, are: set[str]) -> None:
    policy_set = policies(groups("billing: [bob]"), groups("both: [bob, 'svc-*']", "more"))
    assert policy_set.membership.of_user(user) == are


def test_a_subject_names_groups() -> None:
    subject = document(subjects="{groups: [billing]}")
    policy_set = policies(groups("billing: [bob]"), subject)
    assert not policy_set.for_principal(BOB).unrestricted
    assert policy_set.for_principal(Principal("alice", "prod")).unrestricted
    # A token may name groups of its own, whatever the documents say.
    token = attrs.evolve(BOB, user="carol", groups=frozenset({"billing"}))
    assert not policy_set.for_principal(token).unrestricted
    assert not policies(subject).for_principal(token).unrestricted


def test_of_a_user_who_is_not_known_only_denies_count() -> None:
    unknown = Principal(None, "prod")
    policy_set = policies(
        groups("billing: [bob]"),
        document(
            "effect: allow, operations: [basic.get], queue: {literal: a}", subjects="{groups: [billing]}"
        ),
    )
    session = policy_set.for_principal(unknown)
    assert not session.unrestricted
    assert not session.decide(Operation(unknown, "basic.get", queue="a")).allowed
    assert policy_set.for_principal(BOB).decide(Operation(BOB, "basic.get", queue="a")).allowed


def test_every_kind_of_policy_selects_by_groups() -> None:
    text = groups("billing: [bob]") + "---" + OF_GROUP + "---\n" + document(subjects="{groups: [billing]}")
    policy_set = build([Source("p.yaml", text.encode())])
    alice = Principal("alice", "prod")
    assert selecting(policy_set, BOB) == {
        "AccessPolicy",
        "RatePolicy",
        "TransformPolicy",
        "CompatibilityPolicy",
        "AuditPolicy",
        "TracePolicy",
    }
    assert selecting(policy_set, alice) == set()
    assert policy_set.limits_for(BOB, "s")
    assert not policy_set.limits_for(alice, "s")
    chosen = policy_set.route_of(BOB).choice
    assert chosen is not None
    assert chosen.cluster == "other"
    assert policy_set.route_of(alice).choice is None
    # Nothing of it is known before the login.
    assert not policy_set.limits_strangers
    assert policy_set.routes[0].spec.routes[0].is_late


def test_explain_says_which_groups_there_are() -> None:
    policy_set = policies(groups("billing: [bob]"), document(subjects="{groups: [sales]}"))
    said = explain(policy_set, Operation(BOB, "basic.get", queue="a"))
    assert [report.why for report in said.policies] == ["its groups (billing) are not sales"]
    assert said.operation.principal.groups == {"billing"}
    said = explain(
        policies(document(subjects="{scopes: [write], claims: {unit: x}}")),
        Operation(attrs.evolve(BOB, token=TokenIdentity(frozenset({"read"}))), "basic.get", queue="a"),
    )
    assert [report.why for report in said.policies] == ["its scopes (read) are not write"]


def test_explain_knows_them_in_the_settled_set() -> None:
    rule = "effect: allow, operations: [basic.get], queue: {literal: a}"
    policy_set = policies(groups("billing: [bob]"), document(rule, subjects="{groups: [billing]}"))
    assert explain(policy_set, Operation(BOB, "basic.get", queue="a")).by == "p/r0"


def test_a_move_to_another_group_is_a_difference() -> None:
    rule = "effect: allow, operations: [basic.get], queue: {literal: a}"
    of_group = document(rule, subjects="{groups: [billing]}")
    compared = compare(
        policies(groups("billing: [bob]"), of_group, document(name="rest", subjects="{user: '*'}")),
        policies(groups("billing: [eve]"), of_group, document(name="rest", subjects="{user: '*'}")),
    )
    assert {one.principal.user for found in compared.differences for one in found.examples} >= {"bob", "eve"}


def test_a_group_that_no_document_has() -> None:
    said = found(groups("billing: [bob]"), document(subjects="{groups: [bilingg]}"))
    assert any(
        "no UserGroups document has a group bilingg (did you mean 'billing'?)" in line for line in said
    )
    assert not any("UserGroups" in line for line in found(document(subjects="{groups: [billing]}")))
    assert any("no group has an empty name" in line for line in found(document(subjects="{groups: ['']}")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("'': [bob]", "a group needs a name"),
        ("billing: ['*']", "name a user, or the start of a name and *"),
        ("billing: ['']", "name a user, or the start of a name and *"),
        ("billing: bob", "expected a list, not 'bob'"),
    ],
)
def test_what_is_no_group(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"p\.yaml:5") as raised:
        policies(groups(text))
    assert why in str(raised.value)
