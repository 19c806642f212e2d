"""What policy check says of access rules."""

from __future__ import annotations

import pytest

from amqpgate.policy import Source
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from tests.unit.policy.build_set import document, found

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


def test_a_rule_about_passive_declares_has_no_arguments() -> None:
    rule = "effect: deny, operations: [queue.declare], passive: true, arguments: {require: [x-a]}"
    assert found(document(rule)) == [
        "7 problem rule 'p/r0' never matches: a passive declare has no arguments"
    ]


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
