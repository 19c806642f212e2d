"""The reasons agree with the verdict."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.policy import MessageContent, Operation, PolicySet, Principal, Source, build
from amqpgate.policy.tools.explain import Explanation, RuleReport, explain
from tests.unit.policy.build_set import BOB, document, policies, rules


def publish(exchange: str = "x", key: str = "k", content: MessageContent | None = None) -> Operation:
    return Operation(
        BOB, "basic.publish", exchange=exchange, routing_key=key, content=content or MessageContent()
    )


def report(said: Explanation, rule: str) -> RuleReport:
    (found,) = [one for one in said.steps[-1].rules if one.rule == rule]
    return found


@pytest.mark.parametrize(
    ("rule", "operation", "why"),
    [
        ("effect: allow, operations: ['queue.*']", publish(), "it is about queue.*"),
        (
            "effect: deny, operations: ['*'], queue: a",
            publish(),
            "basic.publish has no queue",
        ),
        ("effect: allow, operations: ['*'], exchange: a", publish(), "exchange 'x' is not literal 'a'"),
        (
            "effect: allow, operations: ['*'], exchange: x, routingKey: {topic: 'a.*'}",
            publish(),
            "routing key 'k' is not topic 'a.*'",
        ),
        (
            "effect: allow, operations: [queue.bind], routingKey: {topic: 'a.*'}",
            Operation(BOB, "queue.bind", queue="q", exchange="x", routing_key="a.#"),
            "binding key 'a.#' can catch more than topic 'a.*'",
        ),
        (
            "effect: allow, operations: [queue.bind], routingKey: {prefix: 'a'}",
            Operation(BOB, "queue.bind", queue="q", exchange="x", routing_key="#.a"),
            "routing key '#.a' is not prefix 'a'",
        ),
        (
            "effect: deny, operations: [queue.bind], routingKey: {topic: 'a.*'}",
            Operation(BOB, "queue.bind", queue="q", exchange="x", routing_key="b.#"),
            "binding key 'b.#' catches nothing that it means by topic 'a.*'",
        ),
        (
            "effect: allow, operations: [queue.declare], arguments: {deny: [x-a]}",
            Operation(BOB, "queue.declare", queue="q", arguments={"x-a": 1}),
            "argument x-a is not acceptable to it",
        ),
        (
            "effect: deny, operations: [queue.declare], arguments: {require: [x-a, x-b]}",
            Operation(BOB, "queue.declare", queue="q", arguments={"x-a": 1}),
            "argument x-b is not there",
        ),
        (
            "effect: allow, operations: [basic.publish], properties: {maxBodyBytes: 10}",
            publish(content=MessageContent(11)),
            "the body has 11 bytes, more than 10",
        ),
        (
            "effect: allow, operations: [basic.publish], properties: {appId: a}",
            publish(content=MessageContent(properties={"app_id": "b"})),
            "property app_id is 'b', not literal 'a'",
        ),
        (
            "effect: deny, operations: [basic.publish], properties: {deliveryMode: 2}",
            publish(),
            "delivery mode is not 2",
        ),
        (
            "effect: allow, operations: [basic.publish], properties: {headers: {deny: [CC]}}",
            publish(content=MessageContent(headers={"CC": ["k"]})),
            "header CC is not acceptable to it",
        ),
        (
            "effect: allow, operations: [queue.bind], queue: q, bindTo: [{exchange: a}, {exchange: b}]",
            Operation(BOB, "queue.bind", queue="q", exchange="x", routing_key="k"),
            "exchange 'x' is not literal 'a'; exchange 'x' is not literal 'b'",
        ),
    ],
)
def test_each_rule_says_what_does_not_match(rule: str, operation: Operation, why: str) -> None:
    said = explain(rules(rule), operation)
    assert said.steps[0].rules[0].mismatch == why
    assert not said.steps[0].rules[0].matches


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("{user: alice}", "user 'bob' is not alice"),
        ("{vhosts: [test, 'dev*']}", "vhost 'prod' is not test or dev*"),
        ("{sourceCIDR: [10.0.0.0/8]}", "source 192.0.2.1 is not in 10.0.0.0/8"),
        ("{listeners: [inside]}", "listener clients is not inside"),
        ("{tls: {commonName: bob}}", "the client's certificate does not fit"),
        ("{client: {product: 'pika*'}}", "client property product is Bunny, not pika*"),
        ("{user: alice}, {user: eve}", "user 'bob' is not alice; user 'bob' is not eve"),
    ],
)
def test_each_policy_says_why_it_does_not_select(subject: str, why: str) -> None:
    who = Principal("bob", "prod", "192.0.2.1", "clients", client={"product": "Bunny"})
    said = explain(policies(document(subjects=subject)), Operation(who, "queue.delete", queue="q"))
    (policy,) = said.policies
    assert (policy.counts, policy.why) == (False, why)
    assert said.by == "defaultAccess: no policy selects"


def test_policies_in_shadow_count_only_when_asked() -> None:
    shadowed = policies(document().replace("  rules", "  mode: shadow\n  enforcePercent: 25\n  rules"))
    said = explain(shadowed, publish())
    assert said.verdict.allowed
    assert said.policies[0].why == "its mode is shadow, enforced for 25 % of sessions"
    assert not explain(shadowed, publish(), shadow=True).verdict.allowed


def test_where_the_user_is_not_known_allow_rules_say_so() -> None:
    who = Principal(None, "prod")
    said = explain(rules("effect: allow, operations: ['*']"), Operation(who, "basic.get", queue="q"))
    assert not said.verdict.allowed
    assert report(said, "r0").mismatch == "the user is not known, so that allow rules do not count"


def test_a_request_that_leads_to_a_denied_one_shows_both() -> None:
    said = explain(
        rules("effect: allow, operations: [queue.declare]"),
        Operation(BOB, "queue.declare", queue="q", arguments={"x-dead-letter-exchange": "theirs"}),
    )
    assert [step.verdict.allowed for step in said.steps] == [True, False]
    assert said.steps[1].operation.exchange == "theirs"
    assert not said.verdict.allowed


NAMES = st.sampled_from(["a", "b", "a.b", "a.c", ""])
KEYS = st.sampled_from(["a", "a.b", "a.*", "#", "*.b", ""])
PATTERNS = st.one_of(
    NAMES.map(lambda name: f"{{literal: '{name}'}}"),
    st.sampled_from(["a", "a.", "b"]).map(lambda text: f"{{prefix: '{text}'}}"),
    KEYS.map(lambda text: f"{{topic: '{text}'}}"),
    st.sampled_from(["{regex: 'a.*'}", "{within: 'a.#'}", "{prefix: '{user}'}"]),
)
RULES = st.builds(
    lambda effect, operations, parts: ", ".join(
        [
            f"effect: {effect}",
            f"operations: ['*', {operations}]",
            *(f"{key}: {text}" for key, text in parts.items()),
        ]
    ),
    st.sampled_from(["allow", "deny"]),
    st.sampled_from(["basic.publish", "queue.bind", "queue.declare"]),
    st.dictionaries(st.sampled_from(["exchange", "queue", "routingKey"]), PATTERNS, max_size=2),
).filter(lambda text: _loads(text))
OPERATIONS = st.one_of(
    st.builds(
        lambda exchange, key, more, size: publish(
            exchange, key, MessageContent(size, {}, {"CC": more} if more else {})
        ),
        NAMES,
        KEYS,
        st.lists(KEYS, max_size=2),
        st.integers(0, 3),
    ),
    st.builds(
        lambda queue, exchange, key: Operation(
            BOB, "queue.bind", queue=queue, exchange=exchange, routing_key=key
        ),
        NAMES,
        NAMES,
        KEYS,
    ),
    st.builds(
        lambda queue, arguments: Operation(BOB, "queue.declare", queue=queue, arguments=arguments),
        NAMES,
        st.dictionaries(st.sampled_from(["x-dead-letter-exchange", "x-a"]), NAMES),
    ),
)


def _loads(rule: str) -> bool:
    try:
        rules(rule)
    except Exception:
        return False
    return True


# Many examples meet the default alone.
@settings(max_examples=400)
@given(
    st.lists(st.lists(RULES, max_size=4), min_size=1, max_size=3),
    st.lists(st.sampled_from(["{user: bob}", "{user: '*'}", "{user: alice}"]), min_size=3, max_size=3),
    OPERATIONS,
)
def test_the_explanation_agrees_with_the_engine(
    sets: list[list[str]], subjects: list[str], operation: Operation
) -> None:
    policy_set = policies(
        *(document(*rules, name=f"p{i}", subjects=subjects[i]) for i, rules in enumerate(sets))
    )
    said = explain(policy_set, operation)
    assert said.verdict == policy_set.decide(operation)
    assert said.steps[-1].verdict.allowed is said.verdict.allowed
    for step in said.steps:
        matching = [rule for rule in step.rules if rule.matches]
        assert all(rule.mismatch for rule in step.rules if not rule.matches)
        denying = [rule for rule in matching if rule.effect == "deny"]
        selected = any(policy.counts for policy in said.policies)
        assert step.verdict.allowed is (not selected or (bool(matching) and not denying))
        decisive = [rule for rule in step.rules if rule.decides]
        assert all(rule.matches and rule.effect == step.verdict.effect for rule in decisive)
        assert bool(decisive) is bool(matching)


def test_an_empty_set_explains_itself() -> None:
    assert explain(PolicySet.empty(), publish()).by == "defaultAccess: no policy selects"


# -- mirrors


ROUTES = """apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: routes}
spec:
  routes:
  - {id: bobs, match: {user: bob}, upstream: {cluster: a, mirror: {cluster: b, percent: 5, exchanges: [x]}}}
"""


def test_where_a_copy_of_a_publish_goes_is_told() -> None:
    held = build([Source("p.yaml", ROUTES.encode())])
    assert explain(held, publish()).mirror == "route bobs: 5 % of x to b"
    assert explain(held, publish("y")).mirror is None
    assert explain(held, Operation(BOB, "queue.declare", queue="x")).mirror is None
    assert explain(held, Operation(Principal("eve", "/"), "basic.publish", exchange="x")).mirror is None
    denied = build(
        [Source("p.yaml", (ROUTES + "---\n" + document("effect: deny, operations: ['*']")).encode())]
    )
    assert explain(denied, publish()).mirror is None
