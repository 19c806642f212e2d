"""The rules of access policies as documents write them. `rules` compiles them."""

from __future__ import annotations

import re
from typing import ClassVar, Literal, Self, TypeAlias

import attrs

from amqpgate.policy.engine.conditions import Effect, Match, PropertyConditions, TableConditions
from amqpgate.policy.engine.operations import OPERATIONS, Attribute, OperationType
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, TextValue, doc, nearest, not_empty

#: The rule that verdicts name when no rule matched.
DEFAULT_RULE = "default"
#: The rule that verdicts name when no access policy selects a session and ``defaultAccess`` is ``deny``.
DEFAULT_ACCESS = "defaultAccess"

#: What happens to a publish that is denied.
OnDenied: TypeAlias = Literal["channel-close", "nack", "return", "drop"]


@frozen
class OperationPattern(TextValue):
    """An operation such as `basic.publish`, or several: `exchange.*`, `*`."""

    text: str
    names: tuple[str, ...]

    FORM: ClassVar[str] = "operation"
    PATTERN: ClassVar[str | None] = r"^[a-z.*-]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError, with the nearest, where no operation is meant."""
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(r"\*+", text)) + r"\Z")
        names = tuple([name for name in OPERATIONS if pattern.match(name)])
        if not names:
            hint = nearest(text, OPERATIONS)
            raise ValueError(f"no operation is named '{text}'{hint}; there are {', '.join(OPERATIONS)}")
        return cls(text, names)

    def __str__(self) -> str:
        return self.text


@frozen(kw_only=True)
class BindTarget:
    """What a queue may be bound to, or an exchange may be fed from: all that is given must hold."""

    exchange: Match | None = attrs.field(default=None, metadata=doc("the exchange", default="any"))
    routing_key: Match | None = attrs.field(
        default=None, metadata=doc("the binding key; `within` is what it may catch at most", default="any")
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    def __attrs_post_init__(self) -> None:
        if self.exchange is None and self.routing_key is None:
            raise Invalid("say exchange, routingKey, or both")


class Named:
    """What may say of which exchange, queue and so on it speaks."""

    __slots__ = ()

    exchange: Match | None
    queue: Match | None
    routing_key: Match | None
    destination: Match | None

    @property
    def matches(self) -> dict[Attribute, Match]:
        """The attributes that it names."""
        named: list[tuple[Attribute, Match | None]] = [
            ("exchange", self.exchange),
            ("queue", self.queue),
            ("routing_key", self.routing_key),
            ("destination", self.destination),
        ]
        return {attribute: match for attribute, match in named if match is not None}


@frozen(kw_only=True)
class Rule(Named):
    """What is allowed or denied: all that is given must hold."""

    id: str = attrs.field(validator=not_empty(), metadata=doc("name in verdicts and audit records"))
    effect: Effect = attrs.field(metadata=doc("a deny wins over every allow"))
    operations: tuple[OperationPattern, ...] = attrs.field(
        validator=not_empty(), metadata=doc("`basic.publish`, `queue.*`, ...")
    )
    exchange: Match | None = attrs.field(
        default=None,
        metadata=doc(
            "the exchange published to, bound from, declared or deleted; of an exchange binding, "
            "both exchanges unless `destination` is given",
            default="any",
        ),
    )
    queue: Match | None = attrs.field(
        default=None, metadata=doc("the queue; server-named ones have the prefix `amq.gen-`", default="any")
    )
    routing_key: Match | None = attrs.field(
        default=None,
        metadata=doc(
            "the routing key; of a binding, every key that it can catch (allow), or any of them (deny)",
            default="any",
        ),
    )
    destination: Match | None = attrs.field(
        default=None, metadata=doc("the exchange that an exchange binding feeds", default="any")
    )
    bind_to: tuple[BindTarget, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("of its bindings: to any of these; other operations do not mind", default="anything"),
    )
    passive: bool | None = attrs.field(
        default=None,
        metadata=doc(
            "declares that only ask whether the name exists, or only those that do not", default="both"
        ),
    )
    arguments: TableConditions | None = attrs.field(
        default=None,
        metadata=doc(
            "arguments of declares, binds and basic.consume, by name; other operations have none",
            default="any",
        ),
    )
    properties: PropertyConditions | None = attrs.field(
        default=None, metadata=doc("what is in the message's content header", default="any")
    )

    @property
    def variables(self) -> frozenset[str]:
        """The variables that its patterns hold."""
        found = set().union(*[match.variables for match in self.matches.values()])
        for target in self.bind_to or ():
            for match in (target.exchange, target.routing_key):
                found |= match.variables if match is not None else set()
        if self.properties is not None:
            found = found.union(*[match.variables for match in self.properties.texts.values()])
        return frozenset(found)

    def applies_to(self, operation: str) -> bool:
        """Whether ``operation`` has every attribute that this rule names; else the rule is not about it."""
        return self._lacking(OPERATIONS[operation]) is None

    def lacks_of(self, operation: str) -> str | None:
        """The first key of the rule that ``operation`` has nothing for; None where it has them all."""
        return self._lacking(OPERATIONS[operation])

    def _lacking(self, kind: OperationType) -> str | None:
        """The first key of the rule that the operation has nothing for."""
        for attribute in self.matches:
            if attribute not in kind.attributes:
                return "routingKey" if attribute == "routing_key" else attribute
        if self.passive is not None and not kind.declares:
            return "passive"
        if self.properties is not None and kind.name != "basic.publish":
            return "properties"
        return None

    def __attrs_post_init__(self) -> None:
        if self.id in (DEFAULT_RULE, DEFAULT_ACCESS):
            raise Invalid(f"'{self.id}' is what verdicts say when no rule matched", "id")
        if self.exchange is not None and self.exchange.literal == "amq.default":
            raise Invalid("the default exchange is named '' in rules", "exchange", "literal")
        conditions = (("arguments", self.arguments), ("properties", self.properties))
        for key, condition in conditions:
            if condition is not None:
                try:
                    condition.check(self.effect)
                except Invalid as error:
                    raise Invalid(str(error), key, *error.path) from None
        names = [name for pattern in self.operations for name in pattern.names]
        if self.arguments is not None and not any(OPERATIONS[name].arguments for name in names):
            raise Invalid("none of the operations has arguments", "arguments")
        if self.bind_to is not None:
            self._check_bindings()
        for index, pattern in enumerate(self.operations):
            if not any(self.applies_to(name) for name in pattern.names):
                lacking = next(filter(None, (self._lacking(OPERATIONS[name]) for name in pattern.names)))
                raise Invalid(
                    f"'{pattern}' has no {lacking}, so this rule would never match it; "
                    "give it a rule of its own",
                    "operations",
                    index,
                )

    def _check_bindings(self) -> None:
        assert self.bind_to is not None
        if not any(OPERATIONS[name].binds for pattern in self.operations for name in pattern.names):
            raise Invalid("none of the operations binds anything", "bind_to")
        for index, target in enumerate(self.bind_to):
            if target.exchange is not None and self.exchange is not None:
                raise Invalid("exchange is given already, for the whole rule", "bind_to", index, "exchange")
            if target.routing_key is not None and self.routing_key is not None:
                raise Invalid(
                    "routingKey is given already, for the whole rule", "bind_to", index, "routing_key"
                )
