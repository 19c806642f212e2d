"""Queues that the broker names: what is allowed for them is allowed to the connection that declared them."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.policy import Operation
from tests.unit.policy.build_set import BOB, rules


@pytest.mark.parametrize(
    ("queue", "name", "own", "others"),
    [
        ("{prefix: amq.gen-}", "amq.gen-x", True, False),
        ("{prefix: amq.g}", "amq.gen-x", True, False),
        ("{regex: 'amq[.]gen-.*'}", "amq.gen-x", True, False),
        ("{topic: 'amq.*'}", "amq.gen-x", True, True),
        ("{prefix: ''}", "amq.gen-x", True, True),
        ("{literal: amq.gen-x}", "amq.gen-x", True, True),
        ("{literal: amq.gen-y}", "amq.gen-x", False, False),
    ],
)
def test_server_named_queues_of_others(queue: str, name: str, own: bool, others: bool) -> None:
    found = rules(f"effect: allow, operations: [basic.consume], queue: {queue}")
    for foreign, allowed in ((False, own), (True, others)):
        operation = Operation(BOB, "basic.consume", queue=name, foreign=foreign)
        assert found.decide(operation).allowed == allowed
    # What is denied is denied, whosever it is.
    everything = rules(
        "effect: allow, operations: ['*']",
        f"id: no, effect: deny, operations: [basic.consume], queue: {queue}",
    )
    assert everything.decide(Operation(BOB, "basic.consume", queue=name, foreign=True)).allowed != own
    free = rules("effect: allow, operations: ['*']")
    assert free.decide(Operation(BOB, "basic.consume", queue=name, foreign=True)).allowed


@pytest.mark.parametrize("unless", ["", ", unless: secret"])
@pytest.mark.parametrize(
    ("said", "means_others"),
    [
        ('prefix: "amq.gen-"', False),
        ('topic: "amq.gen-x"', False),
        ('within: "amq.gen-x"', False),
        ('regex: "amq[.]gen.+"', False),
        ('literal: "amq.gen-x"', True),
        # As RabbitMQ's permissions mean it.
        ('search: "amq[.]gen.+"', True),
    ],
)
def test_an_exception_does_not_make_a_pattern_mean_the_queues_of_others(
    said: str, means_others: bool, unless: str
) -> None:
    found = rules(f"effect: allow, operations: [basic.consume], queue: {{{said}{unless}}}")
    policy = found.for_principal(BOB)
    own = Operation(BOB, "basic.consume", queue="amq.gen-x")
    assert policy.decide(own).allowed
    assert policy.decide(attrs.evolve(own, foreign=True)).allowed is means_others
