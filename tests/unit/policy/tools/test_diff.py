"""Each change of a policy is seen in an example, and what changes nothing is not."""

from __future__ import annotations

import pytest

from amqpgate.policy import PolicySet
from amqpgate.policy.tools.diff import Comparison, compare
from tests.unit.policy.build_set import document, policies, rules

PUBLISH = "effect: allow, operations: [basic.publish], "
DECLARE = "effect: allow, operations: [queue.declare], "
BIND = "effect: allow, operations: [queue.bind], "


def changed(before: PolicySet, after: PolicySet) -> Comparison:
    """The comparison; each example was asked of both sets."""
    comparison = compare(before, after)
    for difference in comparison.differences:
        assert difference.examples
        for operation in difference.examples:
            assert before.decide(operation).effect == difference.before.effect
            assert after.decide(operation).effect == difference.after.effect
    return comparison


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PUBLISH + "exchange: a", PUBLISH + "exchange: b"),
        (PUBLISH + "exchange: {prefix: a}", PUBLISH + "exchange: {prefix: ab}"),
        (PUBLISH + "exchange: {prefix: a}", PUBLISH + "exchange: a"),
        (
            PUBLISH + "exchange: a, routingKey: {topic: 'k.*'}",
            PUBLISH + "exchange: a, routingKey: {topic: 'k.#'}",
        ),
        (PUBLISH + "exchange: {regex: 'a[0-9]+'}", PUBLISH + "exchange: {regex: 'a[0-9]'}"),
        (PUBLISH + "exchange: {regex: '(red|green)'}", PUBLISH + "exchange: {regex: '(red|blue)'}"),
        (PUBLISH + "exchange: {search: '^a'}", PUBLISH + "exchange: {regex: 'a'}"),
        (PUBLISH + "exchange: {prefix: a}", PUBLISH + "exchange: {prefix: a, unless: ab}"),
        (PUBLISH + "exchange: {prefix: '{user}.'}", PUBLISH + "exchange: {prefix: 'bob'}"),
        (PUBLISH + "exchange: a", PUBLISH.replace("allow", "deny") + "exchange: a"),
        (DECLARE + "queue: a", DECLARE + "queue: a, arguments: {deny: [x-a]}"),
        (DECLARE + "queue: a, arguments: {deny: [x-a]}", DECLARE + "queue: a, arguments: {deny: ['x-*']}"),
        (DECLARE + "queue: a", DECLARE + "queue: a, arguments: {require: [x-a]}"),
        (
            DECLARE + "queue: a, arguments: {values: {x-max: {max: 10}}}",
            DECLARE + "queue: a, arguments: {values: {x-max: {max: 11}}}",
        ),
        (
            DECLARE + "queue: a, arguments: {values: {x-type: quorum}}",
            DECLARE + "queue: a, arguments: {values: {x-type: classic}}",
        ),
        (DECLARE + "queue: a", DECLARE + "queue: a, passive: true"),
        (PUBLISH + "exchange: a", PUBLISH + "exchange: a, properties: {maxBodyBytes: 10}"),
        (PUBLISH + "exchange: a", PUBLISH + "exchange: a, properties: {deliveryMode: 2}"),
        (PUBLISH + "exchange: a", PUBLISH + "exchange: a, properties: {appId: x}"),
        (PUBLISH + "exchange: a", PUBLISH + "exchange: a, properties: {headers: {deny: [h]}}"),
        (PUBLISH + "exchange: a", PUBLISH + "exchange: a, properties: {headers: {require: [h]}}"),
        (BIND + "queue: q, exchange: a", BIND + "queue: q, bindTo: [{exchange: a}, {exchange: b}]"),
        (BIND + "routingKey: {topic: 'a.#'}", BIND + "routingKey: {topic: 'a.*'}"),
        (BIND + "exchange: x, routingKey: {search: '#'}", BIND + "exchange: x, routingKey: {prefix: 'a'}"),
        (
            "effect: allow, operations: [exchange.bind], exchange: a",
            "effect: allow, operations: [exchange.bind], exchange: a, destination: b",
        ),
        ("effect: deny, operations: [connection.open]", "effect: deny, operations: [channel.open]"),
    ],
)
def test_a_changed_rule_is_seen_both_ways(before: str, after: str) -> None:
    assert changed(rules(before), rules(after)).differences
    assert changed(rules(after), rules(before)).differences


ALLOW = "effect: allow, operations: ['*']"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{user: bob}", "{user: alice}"),
        ("{user: bob}", "{user: 'bob*'}"),
        ("{user: bob}", "{user: bob, vhosts: [prod]}"),
        ("{user: bob, vhosts: [prod]}", "{user: bob, vhosts: ['prod*']}"),
        ("{user: bob}", "{user: bob, sourceCIDR: [10.0.0.0/8]}"),
        ("{user: bob}", "{user: bob, listeners: [inside]}"),
        ("{user: bob}", "{user: bob, tls: {spiffe: 'spiffe://corp/bob'}}"),
        ("{user: bob}", "{user: bob, client: {product: 'pika*'}}"),
        ("{user: bob, client: {product: 'pika'}}", "{user: bob, client: {product: 'pika*'}}"),
    ],
)
def test_a_changed_subject_is_seen(before: str, after: str) -> None:
    one, two = policies(document(subjects=before)), policies(document(subjects=after))
    assert changed(one, two).differences


def test_users_who_are_not_known_are_asked_for_too() -> None:
    one = policies(document(ALLOW, subjects="{user: '*'}"))
    two = policies(document(ALLOW, subjects="{user: '*', vhosts: ['*']}, {user: bob}"))
    three = policies(
        document(ALLOW, subjects="{user: 'b*'}"),
        document(ALLOW, name="q", subjects="{user: '*', vhosts: [x]}"),
    )
    assert not changed(one, two).differences
    assert changed(one, three).differences


def test_what_changes_no_verdict_is_no_difference() -> None:
    one = document(PUBLISH + "exchange: a", DECLARE + "queue: q")
    two = document("id: x, " + DECLARE + "queue: q", "id: y, " + PUBLISH + "exchange: a")
    split = document(PUBLISH + "exchange: a"), document(DECLARE + "queue: q", name="q")
    assert changed(policies(one), policies(two)).differences == ()
    assert changed(policies(one), policies(*split)).differences == ()
    assert changed(policies(one), policies(one)).tried == 0


def test_policies_in_shadow_count_only_when_asked() -> None:
    one = policies(document(PUBLISH + "exchange: a"))
    two = policies(document(PUBLISH + "exchange: b").replace("  rules", "  mode: shadow\n  rules"))
    off = compare(PolicySet.empty(), two)
    assert off.differences == ()
    (difference,) = {(d.before.by, d.after.by) for d in compare(one, two, shadow=True).differences if
                     d.before.effect == "allow"}  # fmt: skip
    assert difference == ("p/r0", "default")


def test_examples_are_kept_few_and_counted_all() -> None:
    after = rules("effect: allow, operations: [queue.delete], queue: {prefix: a}")
    (difference,) = compare(rules(), after, examples=2).differences
    assert len(difference.examples) == 2 < difference.found
