"""Compiled rules, and the index that finds few of many."""

from __future__ import annotations

import pytest

from amqpgate.policy import Operation, Source, build
from tests.unit.policy.build_set import BOB, document


@pytest.mark.parametrize("count", [10, 10_000])
def test_a_decision_looks_at_as_few_rules_of_ten_thousand_as_of_ten(count: int) -> None:
    each = 1000
    policy_set = build(
        Source(
            f"{start}.yaml",
            document(
                *(
                    f"id: r{n}, effect: {'deny' if n % 5 else 'allow'}, operations: [basic.publish], "
                    + (f"exchange: e{n}" if n % 2 else f"exchange: x, routingKey: {{topic: 'a.{n}.#'}}")
                    for n in range(start, min(start + each, count))
                ),
                name=f"p{start}",
            ).encode(),
        )
        for start in range(0, count, each)
    )
    index = policy_set.for_principal(BOB)._rules["basic.publish"]
    for exchange, key in (("e7", "k"), ("x", "a.8.b"), ("x", "a.none"), ("none", "k")):
        operation = Operation(BOB, "basic.publish", exchange=exchange, routing_key=key)
        found = [*index.deny.candidates(operation), *index.allow.candidates(operation)]
        assert len(found) <= 2
