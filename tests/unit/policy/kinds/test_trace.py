"""Which share of what is traced, by which rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import Operation, PolicySet, Principal, Source, TraceDecision, build, load_folder

BOB = Principal("bob", "prod")
NOBODY_KNOWS = Principal(None, "prod")

HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: TracePolicy\nmetadata: {name: %s}\nspec:\n"


def policy(*rules: str, name: str = "p", subjects: str = "{user: bob}") -> str:
    lines = [f"  - {{id: r{number}, {rule}}}" for number, rule in enumerate(rules)]
    return HEAD % name + f"  subjects: [{subjects}]\n  rules:\n" + "\n".join(lines) + "\n"


def policies(*documents: str) -> PolicySet:
    return build([Source("p.yaml", "---\n".join(documents).encode())])


def decide(
    found: PolicySet, name: str, principal: Principal = BOB, **attributes: str
) -> TraceDecision | None:
    rules = found.traces_of(principal)
    return None if rules is None else rules.decide(Operation(principal, name, **attributes))  # type: ignore[arg-type]


def test_the_first_rule_that_matches_decides() -> None:
    found = policies(
        policy(
            "operations: [basic.publish], exchange: quiet, ratio: 0, parent: ignore",
            "operations: [basic.publish], routingKey: {topic: 'order.#'}, ratio: 0.25, parent: ignore",
            "operations: ['basic.*', 'queue.*'], ratio: 0",
        )
    )
    assert decide(found, "basic.publish", exchange="quiet", routing_key="order.1") is None
    assert decide(found, "basic.publish", exchange="loud", routing_key="order.1") == TraceDecision(
        "p", "r1", 0.25, respects_parent=False
    )
    expected = TraceDecision("p", "r2", 0, respects_parent=True)
    assert decide(found, "basic.publish", exchange="loud", routing_key="other") == expected
    assert decide(found, "queue.declare", queue="q") == expected
    assert decide(found, "exchange.declare", exchange="e") is None
    assert decide(found, "queue.declare", Principal("eve", "prod"), queue="q") is None
    rules = found.traces_of(BOB)
    assert rules is not None
    assert {"basic.publish", "basic.consume", "queue.bind"} < rules.operations
    assert not {"basic.get", "connection.open"} & rules.operations


def test_policies_come_in_the_order_of_their_names() -> None:
    one = policy("operations: ['*'], ratio: 1", name="b")
    other = policy("operations: ['*'], ratio: 0.5", name="a")
    decision = decide(policies(one, other), "queue.purge", queue="q")
    assert decision is not None
    assert (decision.policy, decision.ratio) == ("a", 0.5)


def test_a_policy_that_may_not_be_about_the_session_is_not() -> None:
    assert policies(policy("operations: ['*'], ratio: 1")).traces_of(NOBODY_KNOWS) is None
    anybody = policies(policy("operations: ['*'], queue: 'of.{user}', ratio: 1", subjects="{user: '*'}"))
    assert decide(anybody, "queue.purge", NOBODY_KNOWS, queue="of.bob") is not None
    assert decide(anybody, "queue.purge", queue="of.eve") is None


def test_the_example_does_what_its_comments_say() -> None:
    found = load_folder(Path(__file__).parents[4] / "policies")
    assert decide(found, "basic.publish", exchange="monitoring", routing_key="") is None
    messages = decide(found, "basic.publish", exchange="orders", routing_key="")
    assert messages is not None
    assert (messages.rule, messages.ratio, messages.respects_parent) == ("messages", 0.01, True)
    topology = decide(found, "queue.declare", queue="q")
    assert topology is not None
    assert topology.ratio == 1
    assert found.traces_of(Principal("bob", "elsewhere")) is None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("operations: [basic.get], ratio: 1", "'basic.get' has no spans"),
        ("operations: [queue.declare], exchange: e, ratio: 1", "does not have all that this rule names"),
        ("operations: ['*']", "key 'ratio' is missing"),
        ("operations: ['*'], ratio: 1.5", "must be between 0 and 1"),
        ("operations: ['*'], ratio: half", "expected a number between 0 and 1, not 'half'"),
        ("operations: ['*'], ratio: '1'", "expected a number between 0 and 1, not '1'"),
        ("operations: ['*'], ratio: .nan", "expected a number between 0 and 1"),
        ("operations: ['*'], ratio: 1, parent: obey", "expected one of respect, ignore"),
    ],
)
def test_what_means_nothing_is_an_error(rule: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policies(policy(rule))
    assert message in str(caught.value)
