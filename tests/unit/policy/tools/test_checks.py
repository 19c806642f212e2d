"""What is found in a policy set: all kinds together, in the order of files and lines."""

from __future__ import annotations

from amqpgate.policy import Source
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from tests.unit.policy.build_set import document

RATE = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: r}
spec:
  mode: "off"
  subjects: [{user: x}]
  limits: [{id: a, messages: 1/s}]
"""
RULE = "effect: allow, operations: [queue.delete], queue: a"


def test_findings_of_all_kinds_come_by_file_and_line() -> None:
    sources = [
        Source("b.yaml", RATE.encode()),
        Source("a.yaml", "---\n".join((RATE.replace("name: r", "name: s"), document(RULE, RULE))).encode()),
    ]
    found = findings(documents_of(sources))
    assert [(one.mark.file, one.mark.line, one.level) for one in found] == [
        ("a.yaml", 6, "note"),
        ("a.yaml", 17, "problem"),
        ("b.yaml", 6, "note"),
    ]
