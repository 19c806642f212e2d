"""Runs the cases of policy tests.

A case is decided as the gateway would decide it, by the policies of the folder that are enforced, or, where
the document says so, by those in mode shadow as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from amqpgate.policy.kinds.kind import Document, Placed
from amqpgate.policy.kinds.policy_test import Case, PolicyTest
from amqpgate.policy.policy_set import PolicySet
from amqpgate.policy.tools.explain import Explanation, explain
from amqpgate.yamldoc import Mark


@attrs.frozen
class Result:
    """One case, and what came of it."""

    test: str
    case: Case
    mark: Mark
    explanation: Explanation

    @property
    def failure(self) -> str | None:
        """What is not as expected."""
        verdict, case = self.explanation.verdict, self.case
        if verdict.effect != case.expect:
            return f"expected {case.expect}, got {verdict.effect} by {self.explanation.by}"
        if case.by is not None and case.by not in (verdict.rule, verdict.name):
            return f"{case.expect} as expected, but by {self.explanation.by}, not by {case.by}"
        return None


def run(policy_set: PolicySet, documents: Iterable[Placed[Document]]) -> Iterator[Result]:
    """The results of all cases, in the order in which they are written."""
    for placed in documents:
        if isinstance(test := placed.document, PolicyTest):
            for index, case in enumerate(test.spec.cases):
                said = explain(policy_set, case.operation(), shadow=test.spec.judge == "all")
                yield Result(placed.name, case, placed.mark("spec", "cases", index), said)
