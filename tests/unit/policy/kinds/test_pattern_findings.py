"""What policy check says of patterns that do not mean what they seem to."""

from __future__ import annotations

import pytest

from tests.unit.policy.build_set import document, found


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
