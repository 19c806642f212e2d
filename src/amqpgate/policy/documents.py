"""The frozen types of the policy documents, in the manner of Kubernetes.

Whatever a document says that this version would not enforce is refused when it is loaded.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal, Self, TypeAlias

import attrs

from amqpgate.policy.matching import Form, Matcher, check_pattern, compile_pattern
from amqpgate.policy.operations import OPERATIONS, Attribute
from amqpgate.yamldoc import Invalid, TextValue, doc, nearest, not_empty

Effect: TypeAlias = Literal["allow", "deny"]

API_VERSION = "amqpgate.io/v1alpha1"

#: The rule that verdicts name when no rule matched.
DEFAULT_RULE = "default"

_LATER = "is not enforced by this version; remove it"


@attrs.frozen
class NamePattern(TextValue):
    """A name, `prefix*`, or `*` for any."""

    text: str
    is_prefix: bool

    FORM: ClassVar[str] = "name, `prefix*` or `*`"
    PATTERN: ClassVar[str | None] = r"^[^*]*\*?$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError where the asterisk is not last."""
        stem = text.removesuffix("*")
        if "*" in stem:
            raise ValueError("an asterisk stands only at the end: name, prefix* or *")
        if re.search(r"\{[A-Za-z_]", stem):
            raise ValueError("variables such as {user} or ${NAME} are not expanded here")
        return cls(stem, stem != text)

    def matches(self, name: str) -> bool:
        """Whether ``name`` is meant."""
        return name.startswith(self.text) if self.is_prefix else name == self.text

    def __str__(self) -> str:
        return self.text + "*" * self.is_prefix


@attrs.frozen
class OperationPattern(TextValue):
    """An operation such as `basic.publish`, or several: `exchange.*`, `*`."""

    text: str
    names: tuple[str, ...]

    FORM: ClassVar[str] = "operation"
    PATTERN: ClassVar[str | None] = r"^[a-z.*]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError, with the nearest, where no operation is meant."""
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(r"\*+", text)) + r"\Z")
        names = tuple(name for name in OPERATIONS if pattern.match(name))
        if not names:
            hint = nearest(text, OPERATIONS)
            raise ValueError(f"no operation is named '{text}'{hint}; there are {', '.join(OPERATIONS)}")
        return cls(text, names)

    @property
    def is_glob(self) -> bool:
        """Whether it is written with an asterisk."""
        return "*" in self.text

    def __str__(self) -> str:
        return self.text


@attrs.frozen(kw_only=True)
class Match:
    """Which names or keys are meant: exactly one of its keys."""

    literal: str | None = attrs.field(
        default=None, metadata=doc("this text exactly; '' is the default exchange")
    )
    prefix: str | None = attrs.field(default=None, metadata=doc("every text that starts so"))
    topic: str | None = attrs.field(
        default=None, metadata=doc("topic pattern: words between dots, * is one word, # any number of words")
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1, "maxProperties": 1}
    RESERVED_KEYS: ClassVar[dict[str, str]] = {"regex": _LATER, "within": _LATER}

    def __attrs_post_init__(self) -> None:
        given = self._given()
        if len(given) != 1:
            raise Invalid("give exactly one of literal, prefix and topic")
        check_pattern(*given[0])

    def _given(self) -> list[tuple[Form, str]]:
        forms: list[tuple[Form, str | None]] = [
            ("literal", self.literal),
            ("prefix", self.prefix),
            ("topic", self.topic),
        ]
        return [(form, text) for form, text in forms if text is not None]

    def compile(self) -> Matcher:
        """The matcher of this pattern."""
        return compile_pattern(*self._given()[0])


@attrs.frozen(kw_only=True)
class Subject:
    """Whom a policy is about: all that is given must hold."""

    user: NamePattern = attrs.field(default=NamePattern("", True), metadata=doc("user name"))
    vhosts: tuple[NamePattern, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("virtual hosts, any of them", default="any"),
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = dict.fromkeys(
        ("sourceCIDR", "listeners", "tls", "client"), _LATER
    )


@attrs.frozen(kw_only=True)
class Rule:
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

    RESERVED_KEYS: ClassVar[dict[str, str]] = dict.fromkeys(("properties", "bindTo", "arguments"), _LATER)

    @property
    def matches(self) -> dict[Attribute, Match]:
        """The attributes that this rule names."""
        named: list[tuple[Attribute, Match | None]] = [
            ("exchange", self.exchange),
            ("queue", self.queue),
            ("routing_key", self.routing_key),
            ("destination", self.destination),
        ]
        return {attribute: match for attribute, match in named if match is not None}

    def applies_to(self, operation: str) -> bool:
        """Whether ``operation`` has every attribute that this rule names; else the rule is not about it."""
        return set(self.matches) <= set(OPERATIONS[operation].attributes)

    def __attrs_post_init__(self) -> None:
        if self.id == DEFAULT_RULE:
            raise Invalid(f"'{DEFAULT_RULE}' is what verdicts say when no rule matched", "id")
        if self.exchange is not None and self.exchange.literal == "amq.default":
            raise Invalid("the default exchange is named '' in rules", "exchange", "literal")
        for index, pattern in enumerate(self.operations):
            if any(self.applies_to(name) for name in pattern.names):
                continue
            has = [OPERATIONS[name].attributes for name in pattern.names]
            lacking = next(name for name in self.matches if not all(name in attributes for attributes in has))
            key = "routingKey" if lacking == "routing_key" else lacking
            raise Invalid(
                f"'{pattern}' has no {key}, so this rule would never match it; give it a rule of its own",
                "operations",
                index,
            )


@attrs.frozen(kw_only=True)
class AccessSpec:
    """Who may do what."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    rules: tuple[Rule, ...] = attrs.field(
        metadata=doc("in any order: a deny wins, then an allow; what none allows is denied")
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = dict.fromkeys(("mode", "enforcePercent", "onDeny"), _LATER)

    def __attrs_post_init__(self) -> None:
        ids = [rule.id for rule in self.rules]
        for index, name in enumerate(ids):
            if name in ids[:index]:
                raise Invalid(f"two rules of this policy have the id '{name}'", "rules", index, "id")


@attrs.frozen(kw_only=True)
class Metadata:
    """What a document is called."""

    name: str = attrs.field(validator=not_empty(), metadata=doc("unique among documents of its kind"))


@attrs.frozen(kw_only=True)
class AccessPolicy:
    """Who may do what. Sessions that an access policy selects may do only what a rule allows."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["AccessPolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: AccessSpec = attrs.field(metadata=doc("what the document says"))
