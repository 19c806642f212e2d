"""What is found in a policy set, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from amqpgate.policy import Operation, Source
from amqpgate.policy.engine.inclusion import rule_within
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from tests.unit.policy.build_set import document, policies
from tests.unit.policy.tools.test_explain import OPERATIONS, RULES


def found(*documents: str) -> list[str]:
    """Line, level and sentence of each finding."""
    sources = [Source("p.yaml", "---\n".join(documents).encode())]
    return [f"{one.mark.line} {one.level} {one.text}" for one in findings(documents_of(sources))]


DENY_ALL = "id: no, effect: deny, operations: [queue.delete], queue: {prefix: a}"


@pytest.mark.parametrize(
    "covered",
    [
        "operations: [queue.delete], queue: abc",
        "operations: [queue.delete], queue: {prefix: ab}",
        "operations: [queue.delete], queue: {prefix: a}",
        "operations: [queue.delete], queue: {prefix: a, unless: ab}",
        "operations: [queue.delete], queue: a",
    ],
)
def test_an_allow_that_a_deny_takes_whole(covered: str) -> None:
    assert found(document(f"effect: allow, {covered}", DENY_ALL)) == [
        "7 problem rule 'p/r0' can never decide: 'p/no' (p.yaml:8) denies all that it allows"
    ]


@pytest.mark.parametrize(
    "free",
    [
        "operations: [queue.delete], queue: b",
        "operations: [queue.delete]",
        "operations: [queue.delete], queue: {prefix: ''}",
        "operations: [queue.delete], queue: {regex: 'a.*'}",
        "operations: [queue.purge], queue: abc",
    ],
)
def test_an_allow_of_which_something_is_left(free: str) -> None:
    assert found(document(f"effect: allow, {free}", DENY_ALL)) == []


def test_an_allow_that_a_deny_takes_for_some_of_its_operations() -> None:
    rule = "effect: allow, operations: [queue.delete, queue.purge], queue: abc"
    (one,) = found(document(rule, DENY_ALL))
    assert one == "7 note rule 'p/r0' can never decide for queue.delete: 'p/no' (p.yaml:8) denies that"


@pytest.mark.parametrize(
    ("deny", "covers"),
    [
        ("arguments: {require: [x-a]}", False),
        ("passive: true", False),
        ("queue: {prefix: '', unless: b}", False),
        ("queue: {prefix: ''}", True),
    ],
)
def test_a_deny_with_conditions_takes_not_all(deny: str, covers: bool) -> None:
    allow = "effect: allow, operations: [queue.declare], queue: a"
    assert (
        bool(found(document(allow, f"id: no, effect: deny, operations: [queue.declare], {deny}"))) is covers
    )


@pytest.mark.parametrize(
    ("narrow", "wide", "covers"),
    [
        ("{user: bob, vhosts: [prod]}", "{user: 'b*'}", True),
        ("{user: bob}", "{user: bob, vhosts: [prod]}", False),
        ("{user: 'b*'}", "{user: bob}", False),
        ("{user: bob, sourceCIDR: [10.1.0.0/16]}", "{user: bob, sourceCIDR: [10.0.0.0/8]}", True),
        ("{user: bob, sourceCIDR: [10.0.0.0/8]}", "{user: bob, sourceCIDR: [10.1.0.0/16]}", False),
        ("{user: bob, client: {product: pika}}", "{user: bob, client: {product: 'p*'}}", True),
        ("{user: bob}", "{user: bob, listeners: [a]}", False),
        ("{user: bob}, {user: alice}", "{user: bob}", False),
    ],
)
def test_a_deny_of_another_policy_counts_if_it_is_about_the_same(
    narrow: str, wide: str, covers: bool
) -> None:
    allow = "effect: allow, operations: [queue.delete], queue: abc"
    one = document(allow, name="one", subjects=narrow)
    two = document(DENY_ALL, name="two", subjects=wide)
    assert any("can never decide" in text for text in found(one, two)) is covers
    shadowing = two.replace("  rules", "  mode: shadow\n  rules")
    assert not any("can never decide" in text for text in found(one, shadowing))


def test_rules_that_say_the_same() -> None:
    rule = "effect: allow, operations: [queue.delete], queue: a"
    assert found(document(rule, rule)) == ["8 problem rule 'p/r1' says the same as 'p/r0' (p.yaml:7)"]


def test_a_rule_that_adds_nothing() -> None:
    wide, narrow = (
        "effect: allow, operations: ['queue.*']",
        "effect: allow, operations: [queue.delete], queue: a",
    )
    assert found(document(narrow, wide)) == ["7 note rule 'p/r0' adds nothing to 'p/r1' (p.yaml:8)"]


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


@pytest.mark.parametrize(
    ("rule", "open_door"),
    [
        ("operations: [basic.publish]", True),
        ("operations: ['basic.*'], exchange: {prefix: ''}", True),
        ("operations: [basic.publish], exchange: ''", True),
        ("operations: [basic.publish], exchange: {topic: '#'}", True),
        ("operations: [basic.publish], exchange: '', routingKey: {prefix: a}", False),
        ("operations: [basic.publish], exchange: x", False),
        ("operations: [basic.publish], exchange: {prefix: '', unless: ''}", False),
    ],
)
def test_the_default_exchange_left_open(rule: str, open_door: bool) -> None:
    said = [
        text for text in found(document(f"effect: allow, {rule}")) if "lets publish to every queue" in text
    ]
    assert bool(said) is open_door
    closed = "id: closed, effect: deny, operations: [basic.publish], exchange: ''"
    left = found(document(f"effect: allow, {rule}", closed))
    assert not any("lets publish to every queue" in text for text in left)


def test_modes_and_empty_policies_are_noted() -> None:
    off = document(name="a").replace("  rules", "  mode: off\n  rules")
    assert found(off) == [
        "6 note policy 'a' is off",
        "7 note policy 'a' has no rules: whom it selects may do only what other policies allow",
    ]


def test_a_rule_about_passive_declares_has_no_arguments() -> None:
    rule = "effect: deny, operations: [queue.declare], passive: true, arguments: {require: [x-a]}"
    assert found(document(rule)) == [
        "7 problem rule 'p/r0' never matches: a passive declare has no arguments"
    ]


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
    ("allow", "deny", "both"),
    [
        ("queue: {prefix: a}", "queue: ab", "queue 'ab'"),
        ("queue: {prefix: a}", "queue: {prefix: abc}", "queue 'abc'"),
        ("queue: {topic: 'a.*'}", "queue: {topic: '#.b'}", "queue 'a.b'"),
        ("queue: {prefix: a}", "queue: {prefix: b}", None),
        ("queue: {regex: 'a[0-9]'}", "queue: {search: '^a'}", "queue 'a0'"),
        ("queue: a", "queue: {prefix: ''}", None),  # all of it, so that it can never decide
    ],
)
def test_denies_that_take_a_part_are_shown_if_asked_for(allow: str, deny: str, both: str | None) -> None:
    text = document(
        f"effect: allow, operations: [queue.delete], {allow}",
        f"effect: deny, operations: [queue.delete], {deny}",
    )
    said = findings(documents_of([Source("p.yaml", text.encode())]), overlaps=True)
    told = [one.text for one in said if "denies a part" in one.text]
    if both is None:
        assert told == []
    else:
        assert told == [f"rule 'p/r1' denies a part of what 'p/r0' (p.yaml:7) allows: queue.delete {both}"]


ROUTES = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {{name: {name}}}
spec:
  mode: {mode}
  routes:
  - {{id: {name}-1, match: {{{first}}}, upstream: {{cluster: a}}}}
  - {{id: {name}-2, match: {{{second}}}, upstream: {{cluster: b}}}}
"""


def routes(name: str, first: str, second: str, mode: str = "enforce") -> str:
    return ROUTES.format(name=name, first=first, second=second, mode=mode)


def test_a_route_behind_one_that_takes_all_its_connections() -> None:
    assert found(routes("r", "vhosts: ['shop*', a]", "user: bob, vhosts: [shop-1]")) == [
        "9 problem route 'r-2' is never taken: 'r-1' (p.yaml:8) comes first, and takes all its connections"
    ]
    assert found(routes("r", "user: bob, vhosts: [shop-1]", "vhosts: ['shop*']")) == []


@pytest.mark.parametrize(("mode", "count"), [("enforce", 2), ("shadow", 0), ("off", 0)])
def test_a_route_behind_one_of_another_policy(mode: str, count: int) -> None:
    """Policies come in the order of their names, whatever their order in the file."""
    texts = [routes("z", "user: a", "user: b"), routes("b", "user: c", "", mode)]
    assert sum("never taken" in one for one in found(*texts)) == count


AUDIT = """
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {{name: a}}
spec:
  subjects: [{{user: {user}}}]
  rules:
  - {{id: first, operations: [{operations}], {first}}}
  - {{id: second, operations: [basic.publish, queue.delete], {second}}}
"""


@pytest.mark.parametrize(
    ("operations", "user", "first", "second", "reached"),
    [
        ("'*'", "bob", "level: metadata", "level: body", False),
        ("'basic.*'", "bob", "level: metadata", "level: body", True),
        ("basic.publish, 'queue.*'", "bob", "level: metadata", "level: none", False),
        # Of a session whose user is not known yet, a rule that says none says nothing.
        ("'*'", "bob", "level: none", "level: body", True),
        ("'*'", "'*'", "level: none", "level: body", False),
        ("basic.publish", "bob", "exchange: {prefix: o}, level: headers", "level: body", True),
    ],
)
def test_an_audit_rule_behind_one_that_matches_all_that_it_does(
    operations: str, user: str, first: str, second: str, reached: bool
) -> None:
    text = AUDIT.format(operations=operations, user=user, first=first, second=second)
    assert [one for one in found(text) if "never decides" in one] == (
        []
        if reached
        else [
            "9 problem audit rule 'a/second' never decides: 'a/first' (p.yaml:8) comes first, and matches "
            "all that it does"
        ]
    )


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


def test_a_mirror_that_gets_nothing() -> None:
    text = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\nspec:\n  routes:\n"
        "  - {id: r, upstream: {cluster: a, mirror: {cluster: b, percent: %s}}}\n"
    )
    assert found(text % 0) == ["6 note route 'r' mirrors nothing to 'b'"]
    assert found(text % 1) == []


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


@pytest.mark.parametrize(
    ("names", "room"),
    [
        ("both: {prefix: t1.}", "exchanges and queues 252 bytes"),
        ("queues: {prefix: 'é-'}", "queues 252 bytes"),
        ("exchanges: {prefix: '{user}.'}", "exchanges 255 bytes less those of the prefix '{user}.'"),
    ],
)
def test_a_prefix_leaves_less_room(names: str, room: str) -> None:
    transform = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: TransformPolicy\nmetadata: {name: t}\nspec:\n"
        f"  subjects: [{{}}]\n  names: {{{names}}}\n"
    )
    (one,) = found(transform)
    assert one == f"6 note policy 't' leaves names of {room} at most: a longer one is denied with 406"


def test_a_map_of_names_leaves_all_room() -> None:
    transform = (
        "apiVersion: amqpgate.io/v1alpha1\nkind: TransformPolicy\nmetadata: {name: t}\nspec:\n"
        "  subjects: [{}]\n  names: {queues: {map: {a: b}}}\n"
    )
    assert found(transform) == []
