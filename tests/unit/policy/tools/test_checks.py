"""What is found in a policy set, and what is not."""

from __future__ import annotations

import pytest

from amqpgate.policy import Source
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from tests.unit.policy.build_set import document


def found(*documents: str) -> list[str]:
    """Line, level and sentence of each finding."""
    sources = [Source("p.yaml", "---\n".join(documents).encode())]
    return [f"{one.mark.line} {one.level} {one.text}" for one in findings(documents_of(sources))]


@pytest.mark.parametrize(
    "subject",
    [
        "{user: ''}",
        "{sourceCIDR: ['::ffff:10.0.0.0/104']}",
        "{tls: {san: orders.corp}}",
        "{tls: {san: 'URI:spiffe://corp/a', spiffe: 'spiffe://corp/b'}}",
        "{tls: {subject: 'CN=a,O=x', commonName: b}}",
    ],
)
def test_subjects_that_nobody_can_be(subject: str) -> None:
    (one,) = found(document("effect: allow, operations: [queue.delete]", subjects=subject))
    assert one.startswith("5 problem nobody can be this subject: ")


def test_subjects_that_somebody_can_be() -> None:
    subjects = (
        "{user: bob}, {user: al, sourceCIDR: ['::/0', '10.0.0.0/8']},"
        " {user: x, tls: {san: 'DNS:a', commonName: b}}, {user: y, tls: {san: 'D*'}},"
        " {user: z, tls: {subject: 'CN=a,O=x', commonName: 'a*', spiffe: 'spiffe://a'}}"
    )
    assert found(document("effect: allow, operations: [queue.delete]", subjects=subjects)) == []


def test_a_subject_within_another_is_noted() -> None:
    text = found(document("effect: allow, operations: [queue.delete]", subjects="{user: 'b*'}, {user: bob}"))
    assert text == ["5 note subject 1 of the policy takes in this one"]


def test_modes_and_empty_policies_are_noted() -> None:
    off = document(name="a").replace("  rules", "  mode: off\n  rules")
    assert found(off) == [
        "6 note policy 'a' is off",
        "7 note policy 'a' has no rules: whom it selects may do only what other policies allow",
    ]


RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: r}
spec:
  mode: off
  subjects: [{user: '*'}, {user: ''}]
  limits: [{id: all, messages: 1/s}]
"""


def test_subjects_and_modes_of_other_kinds() -> None:
    assert found(RATES) == [
        "6 note policy 'r' is off",
        "7 problem nobody can be this subject: no user has an empty name",
        "7 note subject 1 of the policy takes in this one",
    ]


class TestWildcards:
    @pytest.mark.parametrize(
        "key",
        ["'order.*.created'", "'#'", "{literal: 'a.#'}", "{prefix: 'a.*.'}", "{prefix: '', unless: 'a.*'}"],
    )
    def test_in_a_routing_key_that_is_no_pattern(self, key: str) -> None:
        rule = f"effect: allow, operations: [basic.publish], exchange: x, routingKey: {key}"
        (one,) = found(document(rule))
        assert one.startswith("7 problem rule 'p/r0': routingKey ")
        assert one.endswith("means * and # as they stand, not any words")

    @pytest.mark.parametrize(
        "rule",
        [
            "operations: [basic.publish], exchange: x, routingKey: {topic: 'order.*.created'}",
            "operations: [basic.publish], exchange: x, routingKey: 'a*'",
            # A binding key is written with wildcards.
            "operations: [queue.bind], routingKey: 'order.*.created'",
            "operations: [queue.bind], bindTo: [{exchange: x, routingKey: 'order.*.created'}]",
            "operations: [queue.delete], queue: {regex: 'a.*'}",
        ],
    )
    def test_where_they_are_meant(self, rule: str) -> None:
        assert found(document(f"effect: allow, {rule}")) == []

    def test_in_a_name(self) -> None:
        (one,) = found(document("effect: allow, operations: [queue.delete], queue: 'orders-*'"))
        assert one == "7 note rule 'p/r0': queue literal 'orders-*' means * and # as they stand"

    def test_of_audit_rules(self) -> None:
        audit = (
            "apiVersion: amqpgate.io/v1alpha1\nkind: AuditPolicy\nmetadata: {name: a}\nspec:\n"
            "  subjects: [{}]\n  rules:\n"
            "  - {id: one, operations: [basic.publish], routingKey: 'a.*', level: body}\n"
        )
        (one,) = found(audit)
        assert one.startswith("7 problem rule 'a/one': routingKey literal 'a.*' ")


class TestVariables:
    OWN = "effect: allow, operations: [basic.get], queue: {prefix: '{user}.'}"

    @pytest.mark.parametrize(
        ("pattern", "level"),
        [
            ("{prefix: '{user}'}", "problem"),
            ("'{user}{vhost}'", "problem"),
            ("{regex: '{user}.*'}", "note"),
            ("{search: '{user}'}", "note"),
        ],
    )
    def test_one_that_does_not_tell_users_apart(self, pattern: str, level: str) -> None:
        rule = f"effect: allow, operations: [basic.get], queue: {pattern}"
        (one,) = found(document(rule))
        assert one.startswith(f"7 {level} rule 'p/r0': ")
        assert "tell one user from another" in one
        # What a deny rule takes away, it takes from everybody.
        assert found(document(rule.replace("allow", "deny"))) == []
        exception = f"effect: deny, operations: [basic.get], queue: {{prefix: '', unless: {pattern}}}"
        assert len(found(document(exception))) == 1

    @pytest.mark.parametrize(
        "pattern", ["{prefix: '{user}.'}", "'{user}'", "{regex: '{user}-.*'}", "{topic: '{user}.*'}"]
    )
    def test_one_that_does(self, pattern: str) -> None:
        assert found(document(f"effect: allow, operations: [basic.get], queue: {pattern}")) == []

    def test_its_own_subject_has_the_separator_in_the_name(self) -> None:
        for user in ("svc.orders", "svc.*"):
            (one,) = found(document(self.OWN, subjects=f"{{user: '{user}'}}"))
            assert one.startswith(
                f"7 problem rule 'p/r0': prefix '{{user}}.' grants nothing to the user '{user}': "
            )
        assert found(document(self.OWN, subjects="{user: svc-orders}")) == []

    def test_somebody_else_names_such_a_user(self) -> None:
        everybody = document(self.OWN, subjects="{user: '*'}")
        other = document(
            "effect: allow, operations: [basic.get], queue: x", name="q", subjects="{user: svc.orders}"
        )
        (one,) = found(everybody, other)
        assert one.startswith("7 note rule 'p/r0': ")
        assert "the user 'svc.orders' (p.yaml:13)" in one
        assert found(document(self.OWN, subjects="{user: 'x*'}"), other) == []

    def test_a_virtual_host(self) -> None:
        rule = "effect: allow, operations: [basic.get], queue: {prefix: '{vhost}/'}"
        (one,) = found(document(rule, subjects="{vhosts: [/]}"))
        assert "grants nothing to the vhost '/'" in one
