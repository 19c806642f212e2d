"""What operators see of policies beside their hits."""

from __future__ import annotations

from typing import Any, cast

from amqpgate.operator.policies import placed
from amqpgate.policy import Source, build


def test_operators_see_where_each_document_and_each_rule_is_written() -> None:
    text = """# A comment.
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: one}
spec:
  subjects: [{user: a}]
  rules:
  - {id: first, effect: allow, operations: ["*"]}

  - id: second
    effect: deny
    operations: [basic.publish]
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: two}
spec: {subjects: [{user: a}], limits: [{id: each, messages: 1/s}]}
"""
    found = build([Source("shop.yaml", text.encode())])
    access, rate = (cast("dict[str, Any]", placed(row, found.written)) for row in found.rows())
    assert (access["file"], access["line"]) == ("shop.yaml", 2)
    assert [(rule["id"], rule["line"]) for rule in access["rules"]] == [("first", 8), ("second", 10)]
    assert (rate["file"], rate["line"]) == ("shop.yaml", 14)
    assert rate["rules"] == [{"id": "each", "effect": "delay", "operations": ["messages"], "line": 17}]
    unknown = cast("dict[str, Any]", placed(next(iter(found.rows())), {}))
    assert (unknown["file"], unknown["line"], unknown["rules"][1]["line"]) == (None, None, None)
