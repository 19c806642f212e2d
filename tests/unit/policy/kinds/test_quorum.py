"""Rules on quorum queues: which means a queue, and what policy check says of them."""

from __future__ import annotations

from amqpgate.policy.kinds.quorum import quorum_for
from tests.unit.policy.build_set import found
from tests.unit.policy.kinds.test_compatibility import document, profile


def test_the_first_that_means_a_queue_holds() -> None:
    rules = profile(
        "quorumQueues:\n- {queue: {prefix: a.b}, become: classic}\n"
        "- {queue: {prefix: a}, autoDeleteAfter: 2s}"
    ).quorum_queues
    assert quorum_for(rules, "b") is None
    said = {queue: quorum_for(rules, queue) for queue in ("a.b", "a.c")}
    assert {queue: one and (one.is_quorum, one.auto_delete_after) for queue, one in said.items()} == {
        "a.b": (False, None),
        "a.c": (True, 2000),
    }


def test_a_variable_is_the_sessions() -> None:
    rules = profile("quorumQueues: [{queue: {prefix: '{user}.'}}]").quorum_queues
    assert quorum_for(rules, "bob.q") is not None
    assert quorum_for(rules, "al.q") is None


def test_check_finds_rules_that_do_nothing() -> None:
    (one,) = found(document("p", "quorumQueues: [{}, {queue: {prefix: a}}]"))
    assert "the rule on quorum queues before this one is for every queue" in one
    (one,) = found(document("p", "quorumQueues: [{become: classic, maxPriority: 3}]"))
    assert "what stays classic needs no autoDeleteAfter" in one
