"""The frozen types of audit policies."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.policy.engine.conditions import PropertyName
from amqpgate.policy.engine.first_match import FirstMatchRule
from amqpgate.policy.engine.regular_expressions import RegexError, of_bytes
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.kinds.common import Metadata, check_ids
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Size, between, doc, not_empty

AuditLevel: TypeAlias = Literal["none", "metadata", "headers", "body"]

#: What stands for a header, a property or a body that is not shown.
REDACTED: Final = "[redacted]"


@frozen(kw_only=True)
class BodyPattern:
    """What is replaced in bodies."""

    regex: str = attrs.field(
        validator=not_empty(),
        metadata=doc(
            "regular expression (RE2) for a part of the body, byte by byte; every match is replaced"
        ),
    )
    replacement: str = attrs.field(default=REDACTED, metadata=doc("what stands there instead, as it is"))

    def __attrs_post_init__(self) -> None:
        try:
            is_everywhere = of_bytes(self.regex).search(b"") is not None
        except RegexError as error:
            raise Invalid(str(error), "regex") from None
        if is_everywhere:
            raise Invalid("matches the empty text, and so everywhere; say + where it says *", "regex")


@frozen(kw_only=True)
class Redact:
    """What is never written down."""

    headers: tuple[NamePattern, ...] = attrs.field(
        default=(), metadata=doc("headers by name, at any depth, upper or lower case", default="none")
    )
    properties: tuple[PropertyName, ...] = attrs.field(default=(), metadata=doc("properties", default="none"))
    body_patterns: tuple[BodyPattern, ...] = attrs.field(
        default=(),
        metadata=doc(
            "parts of bodies. A body whose content encoding hides its text, such as gzip, is then left out",
            default="none",
        ),
    )


@frozen(kw_only=True)
class AuditRule(FirstMatchRule):
    """How much is written down of some operations: all that is given must hold."""

    level: AuditLevel = attrs.field(metadata=doc("how much; `body` includes `headers`, and so on"))
    max_body_bytes: Size = attrs.field(
        default=Size(4096), validator=between(1, 1 << 20), metadata=doc("of a body, so much at most")
    )
    redact: Redact = attrs.field(default=Redact(), metadata=doc("what is left out", default="nothing"))

    def __attrs_post_init__(self) -> None:
        FirstMatchRule.__attrs_post_init__(self)
        if self.redact.body_patterns and self.level != "body":
            raise Invalid(f"level {self.level} has no bodies", "redact", "body_patterns")


@frozen(kw_only=True)
class AuditSpec:
    """What is written down of whose requests."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    rules: tuple[AuditRule, ...] = attrs.field(
        validator=not_empty(), metadata=doc("in this order: the first that matches decides")
    )

    def __attrs_post_init__(self) -> None:
        check_ids([rule.id for rule in self.rules], "rule")


@frozen(kw_only=True)
class AuditPolicy:
    """What is written down of whose requests, where the settings have `audit`. Of several, those whose names
    sort first come first; what no rule matches is written down as by level `metadata`."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["AuditPolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: AuditSpec = attrs.field(metadata=doc("what the document says"))
