"""The frozen types of policy tests: what a policy set is expected to answer, written down beside it.

They are loaded with the set and never enforced. `tools.policy_tests` runs them.
"""

from __future__ import annotations

from typing import Final, Literal

import attrs

from amqpgate.policy.engine.conditions import Effect
from amqpgate.policy.engine.requests import Request, words_for
from amqpgate.policy.kinds.common import Metadata
from amqpgate.policy.kinds.kind import DocumentKind
from amqpgate.values import frozen
from amqpgate.yamldoc import doc, not_empty


@frozen(kw_only=True)
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
        user = "a user who is not known" if self.who.user is None else self.who.user
        return self.name or f"{user}: {words_for(self.operation())}"


@frozen(kw_only=True)
class TestSpec:
    """What is expected."""

    __test__ = False

    cases: tuple[Case, ...] = attrs.field(validator=not_empty(), metadata=doc("requests and their answers"))
    judge: Literal["enforced", "all"] = attrs.field(
        default="enforced",
        metadata=doc("`all`: policies in mode shadow count as if they were enforced"),
    )


@frozen(kw_only=True)
class PolicyTest:
    """What a policy set is expected to answer. Loaded with the set, never enforced."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["PolicyTest"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: TestSpec = attrs.field(metadata=doc("what the document says"))


POLICY_TEST: Final = DocumentKind(document=PolicyTest)
