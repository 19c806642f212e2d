"""Rows of records are judged as the requests were that they are about."""

from __future__ import annotations

import itertools
import json

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.gateway.observers.audit.columns import keys_of, token_of
from amqpgate.pipeline.jobs.judge import Judge, columns_asked, principal_of
from amqpgate.policy import (
    OPERATIONS,
    MessageContent,
    Operation,
    PolicySet,
    Principal,
    TlsIdentity,
    TokenIdentity,
)
from amqpgate.policy.engine.matching import compile_pattern
from tests.unit.policy.build_set import document, policies

PRINCIPALS = st.builds(
    Principal,
    st.sampled_from(["bob", "eve", None]),
    st.sampled_from(["prod", "test"]),
    st.sampled_from(["10.1.2.3", "192.0.2.1", None]),
    st.sampled_from(["inside", None]),
    st.sampled_from([None, TlsIdentity("CN=a,O=b", "a", ("DNS:a", "URI:spiffe://b/a"))]),
    st.sampled_from([{}, {"product": "pika", "platform": "Python \N{SNOWMAN}"}]),
)
NAMES = st.sampled_from(["", "bob.in", "orders", "amq.gen-x", "a\nb"])
WORDS = ["order", "paid", "refunded", "7"]
KEYS = st.lists(st.sampled_from([*WORDS, "*", "#"]), max_size=3).map(".".join)
CONTENTS = st.builds(
    lambda copies, blind: MessageContent(headers={"CC": copies, "BCC": blind}),
    st.lists(KEYS, max_size=2),
    st.lists(KEYS, max_size=1),
)
ARGUMENTS = st.sampled_from(
    [{}, {"x-dead-letter-exchange": "orders"}, {"x-message-ttl": 60_000, "x-y": True}]
)

POLICIES = policies(
    document(
        "effect: allow, operations: [basic.publish], exchange: orders, routingKey: {topic: 'order.#'}",
        "effect: deny, operations: [basic.publish], routingKey: {topic: 'order.*.refunded'}",
        "effect: allow, operations: ['queue.*', basic.consume], queue: {prefix: '{user}.'}, "
        "arguments: {deny: [x-y]}",
        "effect: allow, operations: ['queue.*', basic.get], queue: {prefix: amq.gen-}",
        "effect: allow, operations: [exchange.declare], passive: true",
    ),
    document(
        "effect: deny, operations: ['exchange.*']", name="safe", subjects="{tls: {spiffe: 'spiffe://b/*'}}"
    ),
    document("effect: deny, operations: [queue.purge]", name="in", subjects="{listeners: [inside]}"),
    document(
        "effect: allow, operations: ['*'], exchange: x", name="net", subjects="{sourceCIDR: [10.0.0.0/8]}"
    ),
    document(
        "effect: allow, operations: [queue.delete]", name="pika", subjects="{client: {platform: 'Py*'}}"
    ),
)


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    kind = OPERATIONS[draw(st.sampled_from(sorted(OPERATIONS)))]
    names = {attribute: draw(KEYS if attribute == "routing_key" else NAMES) for attribute in kind.attributes}
    passive = kind.declares and draw(st.booleans())
    return Operation(
        draw(PRINCIPALS),
        kind.name,
        **names,
        arguments=draw(ARGUMENTS) if kind.arguments and not passive else {},
        passive=passive,
        foreign=names.get("queue") == "amq.gen-x" and draw(st.booleans()),
        content=draw(CONTENTS) if kind.name == "basic.publish" else None,
    )


def row_of(operation: Operation, **columns: object) -> dict[str, object]:
    """As the gateway records it."""
    who, tls = operation.principal, operation.principal.tls
    return {
        "user": who.user,
        "vhost": who.vhost,
        "source": who.source,
        "listener": who.listener,
        "tls": None if tls is None else json.dumps(attrs.asdict(tls)),
        "client": json.dumps(dict(who.client)) if who.client else None,
        "operation": operation.name,
        "exchange": operation.exchange,
        "routing_key": operation.routing_key,
        "routing_key_is_template": False,
        "queue": operation.queue,
        "destination": operation.destination,
        "arguments": json.dumps(operation.arguments) if operation.arguments else None,
        "passive": operation.passive,
        "foreign": operation.foreign,
        "any_key": operation.any_key,
        "more_keys": None if operation.content is None else keys_of(operation.content.more_keys),
        "verdict": "allow",
        "policy": None,
        "rule": None,
        "policy_digest": "",
    } | columns


# Many operations meet no rule.
@settings(max_examples=400)
@given(operations())
def test_the_answer_is_what_the_gateway_decided(operation: Operation) -> None:
    """Of messages with nothing in their header that policies ask for, but further routing keys."""
    verdict = POLICIES.decide(operation)
    answer = Judge(POLICIES).answer(row_of(operation))
    assert (answer.outcome, answer.policy, answer.rule) == (verdict.effect, verdict.policy, verdict.rule)


@pytest.mark.parametrize(
    ("more_keys", "outcome"),
    [
        ('["order.paid"]', "allow"),
        ('["order.1.refunded"]', "deny"),
        ('["order.paid","z"]', "deny"),
        ("[null]", "depends"),
        ('["order.paid",null]', "depends"),
        ('["z",null]', "deny"),
    ],
)
def test_further_keys_need_to_be_allowed_as_well(more_keys: str, outcome: str) -> None:
    publish = Operation(Principal("bob", "prod"), "basic.publish", exchange="orders", routing_key="order.x")
    assert Judge(POLICIES).answer(row_of(publish, more_keys=more_keys)).outcome == outcome


def test_whether_a_rule_about_headers_allows_further_keys_depends() -> None:
    held = policies(document(
        "effect: allow, operations: [basic.publish]",
        "effect: deny, operations: [basic.publish], properties: {headers: {require: [BCC]}}",
    ))  # fmt: skip
    publish = row_of(Operation(Principal("bob", "prod"), "basic.publish", exchange="x", routing_key="a"))
    assert Judge(held).answer(publish).outcome == "allow"
    assert Judge(held).answer(publish | {"more_keys": '["b"]'}).outcome == "depends"


def test_further_keys_that_are_no_list_are_not_known() -> None:
    publish = row_of(Operation(Principal("bob", "prod"), "basic.publish", exchange="x", routing_key="a"))
    held = Judge(policies(document("effect: allow, operations: [basic.publish]")))
    for text in ('{"a": 1}', "[1]", '"a"', "{cut"):
        assert held.answer(publish | {"more_keys": text}).outcome == "depends"


EFFECT = st.sampled_from(["allow", "deny"])
PATTERN = st.lists(st.sampled_from(["order", "paid", "*", "#"]), min_size=1, max_size=3).map(".".join)


@st.composite
def about_keys(draw: st.DrawFn) -> PolicySet:
    """Rules for publishing, by topic, prefix and expression."""
    rules = [
        f"effect: {draw(EFFECT)}, operations: [basic.publish], routingKey: {match}"
        for match in draw(
            st.lists(
                PATTERN.map(lambda text: f"{{topic: '{text}'}}")
                | st.sampled_from(
                    ["{prefix: order.}", "{regex: 'order|paid'}", "{prefix: '', unless: paid}"]
                ),
                min_size=1,
                max_size=3,
            )
        )
    ]
    return policies(document(*rules))


#: Words that patterns name, and one that they do not.
EVERY_KEY = [
    ".".join(words) for size in range(4) for words in itertools.product(["order", "paid", "z"], repeat=size)
]


@given(about_keys(), PATTERN)
def test_what_is_said_of_a_template_holds_for_every_key(held: PolicySet, pattern: str) -> None:
    bob = Principal("bob", "prod")
    publish = Operation(bob, "basic.publish", exchange="x", routing_key=pattern)
    outcome = Judge(held).answer(row_of(publish, routing_key_is_template=True)).outcome
    matcher = compile_pattern("topic", pattern, {})
    assert matcher is not None
    effects = {
        held.decide(
            Operation(bob, "basic.publish", exchange="x", routing_key=key, content=MessageContent())
        ).effect
        for key in EVERY_KEY
        if matcher.matches(key)
    }
    assert outcome == "depends" or effects <= {outcome}


def test_what_a_token_said_is_judged_as_it_was() -> None:
    """The column is what the gateway has written of the principal, and answers depend on it."""
    held = policies(
        document(
            "effect: deny, operations: [basic.get]",
            subjects="{scopes: [write], claims: {unit: books}, groups: [staff]}",
        )
    )
    token = TokenIdentity(frozenset({"write", "read"}), (("unit", ("x", "books")),))
    principal = Principal("bob", "/", groups=frozenset({"staff"}), token=token)
    row = {"user": "bob", "vhost": "/", "token": token_of(principal)}
    assert principal_of(row) == principal
    assert principal_of({"user": "bob", "vhost": "/", "token": None}) == Principal("bob", "/")
    assert "token" in columns_asked(held)
    operation = Operation(principal, "basic.get", queue="q")
    asked = row_of(operation, token=token_of(principal))
    assert Judge(held).answer(asked).outcome == "deny"
    assert Judge(held).answer(asked | {"token": None}).outcome == "allow"


@pytest.mark.parametrize("column", ["arguments", "client", "tls", "token"])
@pytest.mark.parametrize("text", ["[1]", "{cut", "[" * 100_000])
def test_of_json_that_is_none_nobody_knows(column: str, text: str) -> None:
    """No gateway writes such, and one record of somebody else's keeps no other from its answer."""
    held = policies(document("effect: allow, operations: [basic.get]"))
    asked = row_of(Operation(Principal("bob", "/"), "basic.get", queue="q"))
    found = Judge(held).answer(asked | {column: text})
    assert (found.outcome, found.rule) == ("depends", "unreadable")
