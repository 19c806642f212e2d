"""Policy tests: what is not as expected, and why."""

from __future__ import annotations

from amqpgate.policy import Source, build
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.policy_tests import run
from tests.unit.policy.build_set import document

TEST = """
apiVersion: amqpgate.io/v1alpha1
kind: PolicyTest
metadata: {name: t}
spec:
  cases:
  - {as: {user: bob}, op: queue.delete, queue: a, expect: allow}
  - {as: {user: bob}, op: queue.delete, queue: a, expect: deny}
  - {as: {user: bob}, op: queue.delete, queue: a, expect: allow, by: p/r0}
  - {as: {user: bob}, op: queue.delete, queue: a, expect: allow, by: other, name: named}
"""
RULE = "effect: allow, operations: [queue.delete], queue: a"


def test_each_case_is_decided_as_the_gateway_would() -> None:
    sources = [Source("p.yaml", document(RULE).encode()), Source("t.yaml", TEST.encode())]
    results = list(run(build(sources), documents_of(sources)))
    by = results[0].explanation.by
    assert [result.failure for result in results] == [
        None,
        f"expected deny, got allow by {by}",
        None,
        f"allow as expected, but by {by}, not by other",
    ]
    assert [result.mark.line for result in results] == [7, 8, 9, 10]
    assert results[0].case.title == "bob: queue.delete queue 'a'"
    assert results[3].case.title == "named"


def test_policies_in_shadow_count_where_the_document_says_so() -> None:
    shadow = document("effect: deny, operations: ['*']").replace("spec:", "spec:\n  mode: shadow")
    for judge, failures in (("enforced", 1), ("all", 3)):
        test = (
            TEST.replace("spec:", f"spec:\n  judge: {judge}")
            .replace(", by: p/r0", "")
            .replace(", by: other", "")
        )
        sources = [
            Source("p.yaml", shadow.encode()),
            Source("t.yaml", test.encode()),
        ]
        results = list(run(build(sources), documents_of(sources)))
        assert sum(result.failure is not None for result in results) == failures
