"""Queues and exchanges by which gateways delay messages lead everywhere, so not every rule allows them."""

from __future__ import annotations

import pytest

from amqpgate.policy import MessageContent, Operation
from tests.unit.policy.build_set import BOB, rules

#: What people write who deny some things.
WIDE = (
    "effect: allow, operations: ['*']",
    "id: no, effect: deny, operations: [basic.publish, exchange.bind], exchange: {prefix: secret}",
)

WAYS = {
    "a rung": Operation(BOB, "basic.publish", exchange="amqpgate.delay.06", routing_key="k"),
    "a queue of it": Operation(BOB, "basic.publish", exchange="", routing_key="amqpgate.delay.to.secret"),
    "the key of a dead letter": Operation(
        BOB, "basic.publish", exchange="mine", routing_key="amqpgate.delay.to.secret"
    ),
    "another key": Operation(
        BOB,
        "basic.publish",
        exchange="",
        routing_key="mine",
        content=MessageContent(headers={"BCC": ["x", "amqpgate.delay.to.secret"]}),
    ),
    "dead letters": Operation(
        BOB, "queue.declare", queue="mine", arguments={"x-dead-letter-exchange": "amqpgate.delay.due"}
    ),
    "dead letters with a key": Operation(
        BOB,
        "queue.declare",
        queue="mine",
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "amqpgate.delay.to.secret"},
    ),
    "an alternate exchange": Operation(
        BOB, "exchange.declare", exchange="mine", arguments={"alternate-exchange": "amqpgate.delay.31"}
    ),
    "an exchange behind": Operation(
        BOB, "exchange.bind", destination="amqpgate.delay.06", exchange="mine", routing_key=""
    ),
    "a copy of all": Operation(
        BOB, "queue.bind", queue="mine", exchange="amqpgate.delay.done", routing_key=""
    ),
    "what waits": Operation(BOB, "basic.get", queue="amqpgate.delay.to.secret"),
    "its end": Operation(BOB, "queue.delete", queue="amqpgate.delay.12"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_for_all_names_does_not_mean_the_ladder(way: str) -> None:
    verdict = rules(*WIDE).decide(WAYS[way])
    assert not verdict.allowed
    assert verdict.rule == "default"
    assert rules(*WIDE).for_principal(BOB).decide(WAYS[way]) == verdict


def test_nor_when_only_the_method_has_come() -> None:
    policy = rules(*WIDE).for_principal(BOB)
    for way in ("a rung", "a queue of it", "the key of a dead letter"):
        assert not policy.admit(WAYS[way]).verdict.allowed
    assert policy.admit(Operation(BOB, "basic.publish", exchange="mine", routing_key="k")).verdict.allowed


@pytest.mark.parametrize(
    ("queue", "is_meant"),
    [
        ("{prefix: amqpgate.delay.}", True),
        ("amqpgate.delay.12", True),
        ("{topic: 'amqpgate.delay.#'}", True),
        ("{prefix: ''}", False),
        ("{prefix: amqpgate.}", False),
        ("{topic: '#'}", False),
        ("{regex: '.*'}", False),
        ("{search: ''}", False),
    ],
)
def test_a_rule_that_names_it_does(queue: str, is_meant: bool) -> None:
    found = rules(f"effect: allow, operations: [queue.delete], queue: {queue}")
    assert found.decide(WAYS["its end"]).allowed is is_meant


def test_each_name_of_it_is_to_be_named() -> None:
    both = Operation(
        BOB, "exchange.bind", destination="amqpgate.delay.06", exchange="amqpgate.delay.07", routing_key=""
    )
    one = "effect: allow, operations: [exchange.bind], destination: {prefix: amqpgate.delay.}"
    assert not rules(one).decide(both).allowed
    assert rules(one + ", exchange: {prefix: amqpgate.delay.}").decide(both).allowed
    # Both exchanges are meant by one that says no destination.
    assert (
        rules("effect: allow, operations: [exchange.bind], exchange: {prefix: amqpgate.delay.}")
        .decide(both)
        .allowed
    )


def test_binding_keys_are_no_names() -> None:
    bind = Operation(BOB, "queue.bind", queue="mine", exchange="mine", routing_key="amqpgate.delay.to.x")
    assert rules(*WIDE).decide(bind).allowed
