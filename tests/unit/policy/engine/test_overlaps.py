"""Requests that two rules mean."""

from __future__ import annotations

import pytest

from amqpgate.policy.engine.overlaps import common_request
from tests.unit.policy.build_set import document, policies


@pytest.mark.parametrize(
    ("allow", "deny", "queue"),
    [
        ("queue: {prefix: a}", "queue: {prefix: ab}", "ab"),
        ("queue: {prefix: a}", "queue: abc", "abc"),
        ("queue: {prefix: a, unless: abc}", "queue: abc", None),
        ("queue: {prefix: a}", "queue: {prefix: b}", None),
    ],
)
def test_a_request_that_both_rules_mean(allow: str, deny: str, queue: str | None) -> None:
    found = policies(
        document(
            f"effect: allow, operations: [queue.delete], {allow}",
            f"effect: deny, operations: [queue.delete], {deny}",
        )
    )
    one, other = found.access[0].spec.rules
    request = common_request(one, other, "queue.delete")
    if queue is None:
        assert request is None
    else:
        assert request is not None
        assert (request.queue or "").startswith(queue)
