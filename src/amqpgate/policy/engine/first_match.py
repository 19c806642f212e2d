"""Rules of which the first that matches decides: what audit and trace policies have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

import attrs

from amqpgate.policy.engine.access_rule import Named, OperationPattern
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.matching import Values
from amqpgate.policy.engine.operations import OPERATIONS, Operation
from amqpgate.policy.engine.rules import Check
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, doc, not_empty

_D = TypeVar("_D")


@frozen(kw_only=True)
class FirstMatchRule(Named):
    """Which operations a rule is about: all that is given must hold."""

    id: str = attrs.field(validator=not_empty(), metadata=doc("name in audit records and spans"))
    operations: tuple[OperationPattern, ...] = attrs.field(
        validator=not_empty(), metadata=doc("`basic.publish`, `queue.*`, ...")
    )
    exchange: Match | None = attrs.field(default=None, metadata=doc("the exchange", default="any"))
    queue: Match | None = attrs.field(default=None, metadata=doc("the queue", default="any"))
    routing_key: Match | None = attrs.field(
        default=None, metadata=doc("the routing key; of a binding, any that it can catch", default="any")
    )
    destination: Match | None = attrs.field(
        default=None, metadata=doc("the exchange that an exchange binding feeds", default="any")
    )

    #: The operations that such rules can be about.
    KNOWN: ClassVar[frozenset[str]] = frozenset(OPERATIONS)

    @property
    def variables(self) -> frozenset[str]:
        """The variables that its patterns hold."""
        return frozenset().union(*[match.variables for match in self.matches.values()])

    def applies_to(self, name: str) -> bool:
        """Whether the operation is one of those named, and has all that the rule asks for."""
        named = name in self.KNOWN and any(name in pattern.names for pattern in self.operations)
        return named and self.matches.keys() <= set(OPERATIONS[name].attributes)

    def __attrs_post_init__(self) -> None:
        for index, pattern in enumerate(self.operations):
            if not any(self.applies_to(name) for name in pattern.names):
                raise Invalid(
                    f"'{pattern}' does not have all that this rule names, so it would never match; "
                    "give it a rule of its own",
                    "operations",
                    index,
                )


@frozen(eq=False)
class FirstMatch(Generic[_D]):
    """The rules of one session, in order, each with what it decides; make it once, when the session opens."""

    _rules: Mapping[str, tuple[tuple[tuple[Check, ...], _D], ...]]

    @classmethod
    def of(cls, rules: Iterable[tuple[FirstMatchRule, _D, bool]], values: Values) -> FirstMatch[_D]:
        """Each rule with what it decides, and whether it must match for sure.

        Where something is not known (the value of a variable, which keys a binding catches), a rule that must
        does not match, and another does.
        """
        found: dict[str, list[tuple[tuple[Check, ...], _D]]] = {name: [] for name in OPERATIONS}
        for rule, decision, is_sure in rules:
            checks = tuple(
                [
                    Check(attribute, match.compile(values), is_sure, match)
                    for attribute, match in rule.matches.items()
                ]
            )
            for name in OPERATIONS:
                if rule.applies_to(name):
                    found[name].append((checks, decision))
        return cls({name: tuple(of_one) for name, of_one in found.items() if of_one})

    @property
    def operations(self) -> frozenset[str]:
        """Those that some rule is about."""
        return frozenset(self._rules)

    def decide(self, operation: Operation) -> _D | None:
        """What the first rule says that matches; None: none does."""
        binds = OPERATIONS[operation.name].binds
        for checks, decision in self._rules.get(operation.name, ()):
            if all(check.accepts(operation, binds) for check in checks):
                return decision
        return None
