"""Trace policies: which requests and messages make spans.

The types of the document, and what one operation of one session gets. Whether a message is traced is decided
by its share (`ratio`) or by the trace context that it carries (`parent`); this only says which holds. Nothing
is measured or sent here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import attrs

from amqpgate.policy.engine.conditions import Peek
from amqpgate.policy.engine.first_match import FirstMatch, FirstMatchRule
from amqpgate.policy.engine.operations import OPERATIONS, Operation
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.common import Metadata, check_ids
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import (
    FolderCheck,
    PolicyKind,
    Row,
    SessionSelection,
    by_subjects,
    rule_variables,
)
from amqpgate.policy.kinds.pattern_findings import about_wildcards
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Ratio, between, doc, not_empty

#: Operations without spans: what answers them goes by without being looked at, or need not come.
UNTRACED: Final = frozenset({"basic.get", "channel.flow", "access.request"})
TRACED: Final = frozenset(OPERATIONS) - UNTRACED

_WITH_CONTEXT: Final = Peek(contexts=True)


@frozen(kw_only=True)
class TraceRule(FirstMatchRule):
    """Which operations are traced, and how many of them: all that is given must hold. `basic.consume` means
    what is delivered to the consumer as well, and `connection.open` the whole set-up; `basic.get`,
    `channel.flow` and `access.request` have no spans."""

    ratio: Ratio = attrs.field(
        validator=between(0, 1), metadata=doc("the share that is traced: 1 is all, 0.01 one in a hundred")
    )
    parent: Literal["respect", "ignore"] = attrs.field(
        default="respect",
        metadata=doc(
            "`respect`: a message that carries a trace context (`traceparent`) is traced if its publisher's "
            "span is, and `ratio` is for the others. `ignore`: `ratio` is for all, in traces of their own "
            "that link to the publisher's"
        ),
    )

    KNOWN = TRACED

    def __attrs_post_init__(self) -> None:
        for index, pattern in enumerate(self.operations):
            if UNTRACED.issuperset(pattern.names):
                raise Invalid(f"'{pattern}' has no spans", "operations", index)
        FirstMatchRule.__attrs_post_init__(self)


@frozen(kw_only=True)
class TraceSpec:
    """What is traced of whose requests."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    rules: tuple[TraceRule, ...] = attrs.field(
        validator=not_empty(), metadata=doc("in this order: the first that matches decides")
    )

    def __attrs_post_init__(self) -> None:
        check_ids([rule.id for rule in self.rules], "rule")


@frozen(kw_only=True)
class TracePolicy:
    """What is traced of whose requests. Of several, those whose names sort first come first; what no rule
    matches is not traced. Spans go where the configuration's `tracing` says; without it there are none."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["TracePolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: TraceSpec = attrs.field(metadata=doc("what the document says"))


@frozen
class TraceDecision:
    """Which share of operations like one is traced."""

    #: The policy and rule that decided.
    policy: str
    rule: str
    ratio: float
    #: Whether a trace context that a message carries decides for it.
    respects_parent: bool

    @property
    def peek(self) -> Peek:
        """Which messages must be looked at whatever the share."""
        return _WITH_CONTEXT if self.respects_parent else Peek()

    @property
    def is_nothing(self) -> bool:
        """Whether no message or request is ever traced by it."""
        return not self.ratio and not self.respects_parent


@frozen(eq=False)
class SessionTraces:
    """The trace rules of one session; make it once, when the session opens."""

    _rules: FirstMatch[TraceDecision]

    @property
    def operations(self) -> frozenset[str]:
        """Those that some rule is about."""
        return self._rules.operations

    def decide(self, operation: Operation) -> TraceDecision | None:
        """Which share is traced; None: nothing."""
        decision = self._rules.decide(operation)
        return None if decision is None or decision.is_nothing else decision


def session_traces(session: SessionSelection[TracePolicy]) -> SessionTraces | None:
    """The trace rules of the policies that surely select a session, in order; None where there are none.

    Where something is not known (the value of a variable, which keys a binding catches), a rule matches.
    """
    rules = [
        (rule, TraceDecision(one.policy.metadata.name, rule.id, rule.ratio, rule.parent == "respect"), False)
        for one in session.policies
        for rule in one.policy.spec.rules
        if one.is_sure
    ]
    return SessionTraces(FirstMatch.of(rules, session.values)) if rules else None


def _row(policy: TracePolicy) -> Row:
    return {
        "rules": [
            {"id": rule.id, "effect": "trace", "operations": [str(one) for one in rule.operations]}
            for rule in policy.spec.rules
        ]
    }


def _findings(folder: FolderCheck[TracePolicy]) -> Iterator[Finding]:
    """Wildcards that mean themselves."""
    for placed in folder.documents:
        for index, rule in enumerate(placed.document.spec.rules):
            mark = placed.mark("spec", "rules", index)
            yield from about_wildcards(f"rule '{placed.name}/{rule.id}'", mark, rule)


TRACE: Final = PolicyKind(
    document=TracePolicy,
    subjects=by_subjects,
    compile=session_traces,
    variables=rule_variables,
    row=_row,
    findings=_findings,
)
