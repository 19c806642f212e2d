"""Which policies hold for a session: modes, shares, and the index by user."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.policy import OPERATIONS, Operation, PolicySet, Principal, SelectedPolicies, Source, build
from amqpgate.policy import policy_set as module
from amqpgate.policy.engine import verdicts
from amqpgate.policy.kinds.kind import PolicyKind
from tests.unit.policy.build_set import BOB, document, rules

ALLOW_ALL = "effect: allow, operations: ['*']"


FORMS = st.sampled_from(
    [
        "{literal: %s}",
        "{prefix: %s}",
        "{topic: '%s.#'}",
        "{topic: '*.%s'}",
        "{topic: '#.%s'}",
        "{regex: '%s.*'}",
    ]
)
PATTERNS = st.builds(lambda form, text: form % text, FORMS, st.sampled_from(["a", "b", "a.b", "ab"]))
RULES = st.lists(
    st.tuples(
        st.sampled_from(["allow", "deny"]),
        st.sampled_from(["basic.publish", "*.bind", "*"]),
        st.none() | PATTERNS,
        st.none() | PATTERNS,
    ),
    max_size=12,
)
TEXTS = st.sampled_from(["", "a", "b", "a.b", "ab", "abc", "b.a", "x.b", "a.*", "#", "*.b", "a.#"])


# Few sets of rules have one that an index could miss.
@settings(max_examples=300)
@given(RULES, TEXTS, TEXTS, st.booleans())
def test_the_index_finds_what_a_look_at_every_rule_finds(
    some: list[tuple[str, str, str | None, str | None]], exchange: str, key: str, any_key: bool
) -> None:
    policy_set: PolicySet = rules(
        *(
            f"effect: {effect}, operations: ['{operation}']"
            + (f", exchange: {on_exchange}" if on_exchange else "")
            + (f", routingKey: {on_key}" if on_key else "")
            for effect, operation, on_exchange, on_key in some
        )
    )
    session = policy_set.for_principal(BOB)
    for name in ("basic.publish", "queue.bind", "exchange.bind"):
        for missing in (False, True):
            operation = Operation(
                BOB,
                name,
                exchange=None if missing else exchange,
                routing_key=key,
                queue="q",
                destination="a",
                any_key=any_key,
            )
            of_name = session._rules[name]
            for index in (of_name.deny, of_name.allow):
                every = {rule.verdict.rule for rule in index.rules if rule.names_match(operation)}
                found = {
                    rule.verdict.rule for rule in index.candidates(operation) if rule.names_match(operation)
                }
                assert found == every
            partial = of_name.denied_attribute(operation)
            assert partial in OPERATIONS[name].attributes


OWN = document("effect: allow, operations: [basic.publish], exchange: {literal: '{user}'}", subjects="{}")
AUDIT = """
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: audit}
spec:
  subjects: [{user: bob}]
  rules: [{id: own, operations: [basic.publish], exchange: {literal: "{user}-{vhost}"}, level: body}]
"""
TRACE = """
apiVersion: amqpgate.io/v1alpha1
kind: TracePolicy
metadata: {name: trace}
spec:
  subjects: [{user: bob}, {user: al}]
  rules: [{id: own, operations: [basic.publish], exchange: {literal: "{user}"}, ratio: 1}]
"""


RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: rates}
spec:
  subjects: [{user: bob}]
  limits: [{id: all, per: [user], messages: 10/s}]
"""


class TestPreparing:
    def test_what_is_prepared_is_not_made_again(self) -> None:
        policy_set = build([Source(f"{n}.yaml", text.encode()) for n, text in enumerate((OWN, AUDIT, TRACE))])
        assert not policy_set.is_prepared(BOB, "one")
        access = policy_set.prepare(BOB, "one")
        assert policy_set.is_prepared(BOB, "two")
        assert policy_set.access_of(BOB, "two") is access
        assert policy_set.audit_of(BOB) is policy_set.audit_of(BOB)
        assert policy_set.traces_of(BOB) is policy_set.traces_of(BOB)

    def test_for_others_it_is_not_prepared(self) -> None:
        policy_set = build([Source(f"{n}.yaml", text.encode()) for n, text in enumerate((OWN, AUDIT, TRACE))])
        policy_set.prepare(BOB, "one")
        for other in (Principal("al", BOB.vhost), Principal("bob", "other"), Principal(None, BOB.vhost)):
            assert not policy_set.is_prepared(other, "one")
            policy_set.prepare(other, "one")
            assert policy_set.is_prepared(other, "one")
            publish = Operation(other, "basic.publish", exchange="bob-" + BOB.vhost, routing_key="k")
            assert (policy_set.audit_of(other).decide(publish).level == "body") is (other.user is None)

    def test_a_session_that_begins_asks_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        policy_set = build([Source(f"{n}.yaml", text.encode()) for n, text in enumerate((OWN, AUDIT, TRACE))])
        asked: list[str] = []
        compiled = PolicySet.compiled

        def noted(self: PolicySet, kind: PolicyKind[Any, Any], *of: Any) -> object:
            asked.append(kind.name)
            return compiled(self, kind, *of)

        monkeypatch.setattr(PolicySet, "compiled", noted)
        selected = SelectedPolicies(policy_set, BOB, "one")
        for _ in range(2):
            assert selected.access is policy_set.prepare(BOB, "one")
            assert (selected.limits, selected.transform) == ((), None)
        assert sorted(asked) == ["AccessPolicy", *["AccessPolicy"] * 2, "RatePolicy", "TransformPolicy"]

    def test_what_they_mean_is_kept_for_the_principals_next_session(self) -> None:
        policy_set = build([Source("own.yaml", OWN.encode())])
        assert policy_set.known(BOB, "one") is None
        first = SelectedPolicies(policy_set, BOB, "one")
        policy_set.keep(first)
        second = policy_set.known(attrs.evolve(BOB, upstream_user="shared"), "two")
        assert second is not None
        assert (second.connection, second.principal.upstream_user) == ("two", "shared")
        assert (second.access, second.limits, second.transform) == (first.access, (), None)
        assert policy_set.known(Principal("al", BOB.vhost), "three") is None
        # What is not kept yet has to be asked.
        assert (first.opens_freely, second.opens_freely) == (False, True)

    def test_who_may_not_open_every_host_does_not_open_freely(self) -> None:
        rule = document("effect: allow, operations: [connection.open]")
        policy_set = build([Source("open.yaml", rule.encode())])
        policy_set.keep(SelectedPolicies(policy_set, BOB, "one"))
        known = policy_set.known(BOB, "two")
        assert known is not None
        assert not known.opens_freely

    @pytest.mark.parametrize(
        "text",
        [
            OWN.replace("spec:", "spec:\n  mode: shadow\n  enforcePercent: 50"),
            RATES.replace("[user]", "[connection]"),
        ],
        ids=["a document chooses sessions", "a limit of each connection"],
    )
    def test_what_differs_between_its_sessions_is_not(self, text: str) -> None:
        policy_set = build([Source("some.yaml", text.encode())])
        policy_set.keep(SelectedPolicies(policy_set, BOB, "one"))
        assert policy_set.known(BOB, "two") is None

    def test_who_is_kept_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "KEPT_KEYS", 2)
        policy_set = build([Source("own.yaml", OWN.encode())])
        users = [Principal(user, "/") for user in ("a", "b", "c")]
        for user in users:
            policy_set.keep(SelectedPolicies(policy_set, user, "one"))
        assert [policy_set.known(user, "two") is None for user in users] == [True, True, False]

    def test_without_policies_it_is_prepared_at_once(self) -> None:
        policy_set = PolicySet.empty()
        policy_set.prepare(BOB, "one")
        assert policy_set.is_prepared(Principal("al", "other"), "two")

    def test_the_oldest_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "KEPT_SETS", 2)
        policy_set = build([Source("own.yaml", OWN.encode())])
        for user in ("a", "b", "c"):
            policy_set.prepare(Principal(user, "/"), "one")
        assert [policy_set.is_prepared(Principal(user, "/"), "one") for user in "abc"] == [False, True, True]

    def test_who_says_something_else_of_itself_is_somebody_else(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "KEPT_KEYS", 2)
        rule = "effect: allow, operations: [basic.publish]"
        text = document(rule, subjects="{user: bob, client: {product: app}}")
        policy_set = build([Source("own.yaml", text.encode())])
        for product, selected in (("app", True), ("other", False), ("app", True), ("third", False)):
            principal = attrs.evolve(BOB, client={"product": product})
            assert policy_set.for_principal(principal, "one").unrestricted is not selected

    def test_a_denial_makes_no_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        policy_set = build([Source("own.yaml", OWN.encode())])
        session = policy_set.prepare(BOB, "one").enforced
        monkeypatch.setattr(verdicts, "RuleIndex", None)
        verdict = session.decide(Operation(BOB, "basic.publish", exchange="x", routing_key="k"))
        assert (verdict.effect, verdict.attribute) == ("deny", "exchange")
