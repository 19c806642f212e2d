"""What access policies come to for one session: who is selected, what adds up, and how denials are told."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.policy import Operation, PolicySet, Principal, Verdict
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.access import default_access_words
from tests.unit.policy.build_set import BOB, document, policies, rules

ALLOW_ALL = "effect: allow, operations: ['*']"
PUBLISH = Operation(BOB, "basic.publish", exchange="x", routing_key="k")


def publish(
    policy_set: PolicySet, exchange: str, routing_key: str = "k", principal: Principal = BOB
) -> Verdict:
    return policy_set.decide(
        Operation(principal, "basic.publish", exchange=exchange, routing_key=routing_key)
    )


class TestSelection:
    def test_no_policy_allows_everything(self) -> None:
        assert publish(PolicySet.empty(), "x") is UNRESTRICTED
        session = PolicySet.empty().for_principal(BOB)
        assert session.unrestricted
        assert session.policies == ()

    def test_whom_no_policy_selects_may_do_everything(self) -> None:
        policy_set = rules()
        assert publish(policy_set, "x", principal=Principal("alice", "prod")).allowed
        assert not publish(policy_set, "x").allowed
        assert policy_set.for_principal(BOB).policies == ("p",)

    @pytest.mark.parametrize(
        ("subjects", "selected"),
        [
            ("{user: bob}", True),
            ("{user: Bob}", False),
            ("{user: bo}", False),
            ("{user: 'bo*'}", True),
            ("{user: 'bob*'}", True),
            ("{user: 'bobb*'}", False),
            ("{user: '*'}", True),
            ("{}", True),
            ("{user: bob, vhosts: [prod]}", True),
            ("{user: bob, vhosts: [test]}", False),
            ("{user: alice, vhosts: [prod]}", False),
            ("{vhosts: [test, 'pr*']}", True),
            ("{vhosts: ['*']}", True),
            ("{vhosts: [pr]}", False),
            ("{user: alice}, {user: bob}", True),
            ("{user: alice}, {user: carol}", False),
        ],
    )
    def test_subjects(self, subjects: str, selected: bool) -> None:
        policy_set = policies(document(subjects=subjects))
        assert policy_set.for_principal(BOB).unrestricted is not selected

    def test_policies_add_up(self) -> None:
        one = document("effect: allow, operations: [basic.publish], exchange: {literal: a}", name="one")
        two = document(
            "effect: allow, operations: [basic.publish], exchange: {literal: b}",
            name="two",
            subjects="{user: 'b*'}",
        )
        three = document(
            "effect: deny, operations: [basic.publish], exchange: {literal: a}",
            name="three",
            subjects="{vhosts: [x]}",
        )
        policy_set = policies(two, one, three)
        assert publish(policy_set, "a") == Verdict("allow", "one", "r0")
        assert publish(policy_set, "b") == Verdict("allow", "two", "r0")
        assert not publish(policy_set, "c").allowed
        assert publish(policy_set, "a", principal=Principal("bob", "x")) == Verdict(
            "deny", "three", "r0", "exchange"
        )
        assert policy_set.for_principal(BOB).policies == ("one", "two")

    def test_a_user_who_is_not_known_gets_the_worst_of_all(self) -> None:
        unknown = Principal(None, "prod")
        specific = document(ALLOW_ALL, name="bobs")
        assert not publish(policies(specific), "x", principal=unknown).allowed
        anyone = document(
            "effect: allow, operations: [basic.publish], exchange: {prefix: a}",
            name="all",
            subjects="{user: '*'}",
        )
        denies = document(
            "effect: deny, operations: ['*'], exchange: {literal: ab}", name="no", subjects="{user: 'x*'}"
        )
        both = policies(specific, anyone, denies)
        assert publish(both, "aa", principal=unknown).policy == "all"
        assert publish(both, "ab", principal=unknown).policy == "no"
        assert not publish(both, "b", principal=unknown).allowed
        elsewhere = document(ALLOW_ALL, subjects="{user: bob, vhosts: [other]}")
        assert publish(policies(elsewhere), "x", principal=unknown).allowed

    def test_sessions_with_the_same_policies_share_one_index(self) -> None:
        policy_set = policies(document(ALLOW_ALL, subjects="{user: 'b*'}"))
        assert policy_set.for_principal(BOB) is policy_set.for_principal(Principal("bert", "test"))
        assert policy_set.for_principal(BOB) is not policy_set.for_principal(Principal("al", "test"))


@pytest.mark.parametrize("mode", ["mode: off", "mode: shadow"])
def test_a_policy_that_is_not_in_force_selects_nobody(mode: str) -> None:
    text = document("effect: allow, operations: ['*']").replace("spec:\n", f"spec:\n  {mode}\n")
    closed = attrs.evolve(policies(text), default_access="deny")
    access = closed.access_of(BOB, "session")
    assert not access.enforced.decide(PUBLISH).allowed
    assert access.shadow is None or access.shadow.decide(PUBLISH).allowed


WAYS = ["channel-close", "nack", "return", "drop"]


@pytest.mark.parametrize("one", WAYS)
@pytest.mark.parametrize("other", WAYS)
@pytest.mark.parametrize("order", [1, -1])
def test_of_several_policies_the_answer_that_tells_most_holds(one: str, other: str, order: int) -> None:
    """Where no rule decides. Where one denies, its own policy says how."""
    documents = [
        document(f"id: no, effect: deny, operations: [basic.publish], exchange: {name}", name=name).replace(
            "spec:\n", f"spec:\n  onDeny: {{publish: {way}}}\n"
        )
        for name, way in (("a", one), ("b", other))
    ]
    policy_set = policies(*documents[::order])
    assert publish(policy_set, "x").on_denied == min(one, other, key=WAYS.index)
    assert publish(policy_set, "a").on_denied == one
    assert publish(policy_set, "b").on_denied == other


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("one", "other", "is_told"),
    [("rule-id", "rule-id", True), ("rule-id", "nothing", False), ("nothing", "nothing", False)],
)
def test_what_no_rule_allows_is_told_where_all_policies_tell(
    one: str, other: str, is_told: bool, order: int
) -> None:
    """Where a rule denies, its own policy says whether it is named."""
    documents = [
        document(f"id: no, effect: deny, operations: [basic.publish], exchange: {name}", name=name).replace(
            "spec:\n", f"spec:\n  onDeny: {{disclose: {disclose}}}\n"
        )
        for name, disclose in (("a", one), ("b", other))
    ]
    policy_set = policies(*documents[::order])
    assert publish(policy_set, "x").disclosed is is_told
    assert publish(policy_set, "a").disclosed is (one == "rule-id")
    assert publish(policy_set, "b").disclosed is (other == "rule-id")


def test_who_is_not_sure_to_be_selected_is_denied_by_it_and_not_allowed() -> None:
    nobody = Principal(None, "prod")
    perhaps = policies(
        document(
            "id: yes, effect: allow, operations: [basic.publish]",
            "id: no, effect: deny, operations: [basic.publish], exchange: {literal: secret}",
        )
    )
    assert publish(perhaps, "x", principal=nobody) == Verdict("deny", None, "default", "exchange")
    assert publish(perhaps, "secret", principal=nobody).rule == "no"


@pytest.mark.parametrize(("default", "may"), [("allow", "everything"), ("deny", "nothing")])
def test_the_log_says_what_holds_for_the_others(default: str, may: str) -> None:
    words = default_access_words(default)  # type: ignore[arg-type]
    assert words == f"defaultAccess: {default}, so users whom no access policy selects may do {may}"


def test_operators_see_its_rules_in_order() -> None:
    text = document(
        "id: z, effect: deny, operations: ['queue.*', basic.get]",
        "id: a, effect: allow, operations: ['*']",
    ).replace("spec:\n", "spec:\n  mode: shadow\n  enforcePercent: 12.5\n")
    assert list(policies(text).rows()) == [
        {
            "kind": "AccessPolicy",
            "name": "p",
            "mode": "shadow",
            "enforce_percent": 12.5,
            "rules": [
                {"id": "z", "effect": "deny", "operations": ["queue.*", "basic.get"]},
                {"id": "a", "effect": "allow", "operations": ["*"]},
            ],
        }
    ]
