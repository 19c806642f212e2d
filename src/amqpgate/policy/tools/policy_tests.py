"""What a policy set is expected to answer, written down beside it, and whether it does.

`PolicyTest` documents are loaded with the set and never enforced. A case is judged as the gateway would
judge it, by the policies of the folder that are enforced, or, where the document says so, by those in
mode shadow as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import attrs

from amqpgate.policy.engine.conditions import Effect
from amqpgate.policy.kinds.access import Metadata
from amqpgate.policy.tools.requests import Request, words_for
from amqpgate.yamldoc import Mark, Node, doc, locate, not_empty

if TYPE_CHECKING:
    from amqpgate.policy.policy_set import PolicySet
    from amqpgate.policy.tools.explain import Explanation


@attrs.frozen(kw_only=True)
class Case(Request):
    """A request, and the answer to it."""

    expect: Effect = attrs.field(metadata=doc("the answer"))
    by: str | None = attrs.field(
        default=None,
        metadata=doc("what decides: a rule's id, `policy/rule`, or `default`", default="not asked"),
    )
    name: str | None = attrs.field(
        default=None, metadata=doc("what the case is called in reports", default="the request")
    )

    @property
    def title(self) -> str:
        """What the case is called."""
        return self.name or f"{self.who.user}: {words_for(self.operation())}"


@attrs.frozen(kw_only=True)
class TestSpec:
    """What is expected."""

    __test__ = False

    cases: tuple[Case, ...] = attrs.field(validator=not_empty(), metadata=doc("requests and their answers"))
    judge: Literal["enforced", "all"] = attrs.field(
        default="enforced",
        metadata=doc("`all`: policies in mode shadow count as if they were enforced"),
    )


@attrs.frozen(kw_only=True)
class PolicyTest:
    """What a policy set is expected to answer. Loaded with the set, never enforced."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["PolicyTest"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: TestSpec = attrs.field(metadata=doc("what the document says"))


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


def run(policy_set: PolicySet, documents: Iterable[tuple[Node, object]]) -> Iterator[Result]:
    """The results of all cases, in the order in which they are written."""
    from amqpgate.policy.tools.explain import explain

    for node, document in documents:
        if isinstance(document, PolicyTest):
            for index, case in enumerate(document.spec.cases):
                mark = locate(node, PolicyTest, ("spec", "cases", index))
                said = explain(policy_set, case.operation(), shadow=document.spec.judge == "all")
                yield Result(document.metadata.name, case, mark, said)
