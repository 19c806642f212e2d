"""What a rule asks beyond names: patterns, arguments, and what is in a message's content header.

Every condition is read for the effect of its rule. In an allow rule it says what is acceptable: what is
absent is, unless it is required. In a deny rule it says what is not: only what is there can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import attrs

from amqpgate.policy.engine.exempting import ExceptMatcher
from amqpgate.policy.engine.matching import (
    Form,
    Matcher,
    Values,
    check_pattern,
    compile_pattern,
    variables_in,
)
from amqpgate.policy.engine.operations import PROPERTY_FLAGS, SENDER_SELECTED, MessageContent, every
from amqpgate.policy.engine.scalars import ValueMatch
from amqpgate.policy.engine.separators import shared_by
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Size, doc

Effect: TypeAlias = Literal["allow", "deny"]

_HEADERS: Final = PROPERTY_FLAGS["headers"]
#: The header that carries a message's trace context (W3C Trace Context).
TRACEPARENT: Final = "traceparent"


@frozen(kw_only=True)
class Pattern:
    """Which names or keys are meant: exactly one of its keys. Plain text is short for `literal`."""

    literal: str | None = attrs.field(
        default=None, metadata=doc("this text exactly; '' is the default exchange")
    )
    prefix: str | None = attrs.field(default=None, metadata=doc("every text that starts so"))
    topic: str | None = attrs.field(
        default=None, metadata=doc("topic pattern: words between dots, * is one word, # any number of words")
    )
    within: str | None = attrs.field(
        default=None,
        metadata=doc("topic pattern; of a binding key, all that it can catch must lie within it"),
    )
    regex: str | None = attrs.field(
        default=None, metadata=doc("regular expression (RE2) for the whole text, in time linear in it")
    )
    search: str | None = attrs.field(
        default=None,
        metadata=doc(
            "regular expression (RE2) that is found anywhere in the text; a binding key counts as it is "
            "written, as in RabbitMQ's permissions, whatever it can catch"
        ),
    )

    SCHEMA: ClassVar[Mapping[str, object]] = {"minProperties": 1, "maxProperties": 1}
    SHORTHAND: ClassVar[str] = "literal"

    def __attrs_post_init__(self) -> None:
        given = self._given()
        if len(given) != 1:
            raise Invalid("give exactly one of literal, prefix, topic, within, regex and search")
        check_pattern(*given[0])

    def _given(self) -> list[tuple[Form, str]]:
        forms: tuple[Form, ...] = get_args(Form)
        return [(form, text) for form in forms if (text := getattr(self, form)) is not None]

    @property
    def given(self) -> tuple[Form, str]:
        """Its form and its text."""
        return self._given()[0]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the pattern holds."""
        return variables_in(self._given()[0][1])

    def compile(self, values: Values, *, grants: bool | None = None) -> Matcher | None:
        """The matcher of this pattern; None where it holds a variable whose value is not known.

        ``grants``: whether it gives something, or takes it away; what gives is None also where the session
        would share with others what it means (`separators`). None: neither.
        """
        given = self._given()[0]
        return None if grants and shared_by(*given, values) is not None else compile_pattern(*given, values)

    def __str__(self) -> str:
        form, text = self._given()[0]
        return f"{form} '{text}'"


@frozen(kw_only=True)
class Match(Pattern):
    """Which names or keys are meant: exactly one pattern, and at most one exception to it.

    Plain text is short for `literal`.
    """

    unless: Pattern | None = attrs.field(
        default=None, metadata=doc("but not those that this pattern means", default="no exception")
    )

    SCHEMA: ClassVar[Mapping[str, object]] = {
        "oneOf": [
            {"required": [form]} for form in ("literal", "prefix", "topic", "within", "regex", "search")
        ]
    }

    @property
    def variables(self) -> frozenset[str]:
        own = variables_in(self._given()[0][1])
        return own if self.unless is None else own | self.unless.variables

    def compile(self, values: Values, *, grants: bool | None = None) -> Matcher | None:
        base = super().compile(values, grants=grants)
        if self.unless is None or base is None:
            return base
        # An exception to what is taken away is given; where there is none, all is taken away.
        exception = self.unless.compile(values, grants=None if grants is None else not grants)
        if exception is None:
            return base if grants is False else None
        return ExceptMatcher(base, exception)

    def __str__(self) -> str:
        form, text = self._given()[0]
        return f"{form} '{text}'" + (f" unless {self.unless}" if self.unless is not None else "")


@frozen(kw_only=True)
class TableConditions:
    """Conditions on the entries of a table, by name."""

    deny: tuple[NamePattern, ...] = attrs.field(
        default=(), metadata=doc("none of these may be there (in allow rules)")
    )
    allow: tuple[NamePattern, ...] | None = attrs.field(
        default=None, metadata=doc("only these may be there (in allow rules)", default="any")
    )
    require: tuple[str, ...] = attrs.field(default=(), metadata=doc("all of these must be there"))
    values: Mapping[str, ValueMatch] = attrs.field(
        factory=dict,
        metadata=doc(
            "what a value must be, if it is there; in a deny rule, what is denied", default="anything"
        ),
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    def check(self, effect: Effect) -> None:
        """Raise `Invalid` for what means nothing in a rule of this effect."""
        if not (self.deny or self.allow is not None or self.require or self.values):
            raise Invalid("says nothing; give deny, allow, require or values")
        if effect == "deny" and (self.deny or self.allow is not None):
            raise Invalid(
                "a deny rule denies what is there: say require (the names) or values",
                "deny" if self.deny else "allow",
            )

    def hold(self, table: Mapping[str, object], effect: Effect) -> bool:
        """Whether the entries are what a rule of this effect means."""
        if any(name not in table for name in self.require):
            return False
        if any(pattern.matches(name) for pattern in self.deny for name in table):
            return False
        if self.allow is not None and not all(any(p.matches(name) for p in self.allow) for name in table):
            return False
        if effect == "allow":
            return all(
                match.matches(one) for name, match in self.values.items() for one in every(table, name)
            )
        return all(
            any(match.matches_within(one) for one in every(table, name))
            for name, match in self.values.items()
        )


@frozen
class Peek:
    """Which messages of a flow must be judged one by one: those whose content header has any of this."""

    #: Any message at all.
    always: bool = False
    #: One of these property flags.
    flags: int = 0
    #: Of a header, the name.
    headers: frozenset[str] = frozenset()
    #: More bytes of body than this.
    max_body: int | None = None
    #: A delivery-mode of 0.
    mode_0: bool = False
    #: A trace context whose trace may be sampled, in the header `TRACEPARENT`.
    contexts: bool = False

    def __or__(self, other: Peek) -> Peek:
        limits = [limit for limit in (self.max_body, other.max_body) if limit is not None]
        return Peek(
            self.always or other.always,
            self.flags | other.flags,
            self.headers | other.headers,
            min(limits, default=None),
            self.mode_0 or other.mode_0,
            self.contexts or other.contexts,
        )

    def catches(self, content: MessageContent) -> bool:
        """Whether this message must be judged: what the data path finds out from the bytes."""
        flags = reduce(or_, (PROPERTY_FLAGS.get(name, 0) for name in content.properties), 0)
        return (
            self.always
            or bool(self.flags & (flags | (_HEADERS if content.headers else 0)))
            or not self.headers.isdisjoint(content.headers)
            or (self.max_body is not None and content.body_size > self.max_body)
            or (self.contexts and TRACEPARENT in content.headers)
            or (self.mode_0 and content.properties.get("delivery_mode") == 0)
        )


#: Every message of a session whose publishes are restricted: these headers are routing keys, too.
ALWAYS_PEEKED: Final = Peek(headers=frozenset(SENDER_SELECTED))

PropertyName: TypeAlias = Literal[
    "contentType",
    "contentEncoding",
    "deliveryMode",
    "priority",
    "correlationId",
    "replyTo",
    "expiration",
    "messageId",
    "timestamp",
    "type",
    "userId",
    "appId",
]


def property_of(name: str) -> str:
    """``contentType`` to ``content_type``."""
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


@frozen(kw_only=True)
class PropertyConditions:
    """Conditions on a message's content header (AMQP 0-9-1, section 1.8.1)."""

    content_type: Match | None = attrs.field(default=None, metadata=doc("MIME type", default="any"))
    content_encoding: Match | None = attrs.field(default=None, metadata=doc("MIME encoding", default="any"))
    delivery_mode: Literal["1", "2"] | None = attrs.field(
        default=None, metadata=doc("2 is persistent; a message that does not say is 1", default="any")
    )
    correlation_id: Match | None = attrs.field(default=None, metadata=doc("correlation id", default="any"))
    reply_to: Match | None = attrs.field(
        default=None, metadata=doc("the queue that answers shall go to", default="any")
    )
    expiration: Match | None = attrs.field(default=None, metadata=doc("time to live, as text", default="any"))
    message_id: Match | None = attrs.field(default=None, metadata=doc("message id", default="any"))
    type: Match | None = attrs.field(default=None, metadata=doc("message type", default="any"))
    user_id: Match | None = attrs.field(default=None, metadata=doc("who claims to send it", default="any"))
    app_id: Match | None = attrs.field(default=None, metadata=doc("application id", default="any"))
    headers: TableConditions | None = attrs.field(
        default=None, metadata=doc("the headers, by name", default="any")
    )
    max_body_bytes: Size | None = attrs.field(
        default=None, metadata=doc("largest body (in allow rules)", default="any")
    )
    require: tuple[PropertyName, ...] = attrs.field(default=(), metadata=doc("properties that must be there"))

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    @property
    def texts(self) -> dict[str, Match]:
        """The conditions on properties that are text, by the property's name."""
        named = {
            "content_type": self.content_type,
            "content_encoding": self.content_encoding,
            "correlation_id": self.correlation_id,
            "reply_to": self.reply_to,
            "expiration": self.expiration,
            "message_id": self.message_id,
            "type": self.type,
            "user_id": self.user_id,
            "app_id": self.app_id,
        }
        return {name: match for name, match in named.items() if match is not None}

    def check(self, effect: Effect) -> None:
        """Raise `Invalid` for what means nothing in a rule of this effect."""
        if self == PropertyConditions():
            raise Invalid("says nothing")
        if self.headers is not None:
            try:
                self.headers.check(effect)
            except Invalid as error:
                raise Invalid(str(error), "headers", *error.path) from None
        if effect == "deny" and self.max_body_bytes is not None:
            raise Invalid(
                "a ceiling belongs in the allow rules: what exceeds it is not allowed", "max_body_bytes"
            )

    def compile(self, effect: Effect, values: Values) -> CompiledConditions:
        """As it is asked of messages."""
        allows = effect == "allow"
        texts = tuple([(name, match.compile(values, grants=allows)) for name, match in self.texts.items()])
        return CompiledConditions(self, effect, texts, self._peek(effect))

    def _peek(self, effect: Effect) -> Peek:
        """What a message must have for these conditions to come out otherwise than they usually do:
        an allow rule's hold, a deny rule's do not."""
        peek = Peek(
            always=self.delivery_mode is not None or (effect == "allow" and bool(self.require)),
            flags=reduce(or_, (PROPERTY_FLAGS[name] for name in self.texts), 0),
            max_body=self.max_body_bytes,
        )
        if effect == "deny":
            peek |= Peek(flags=reduce(or_, (PROPERTY_FLAGS[property_of(name)] for name in self.require), 0))
        if self.headers is not None:
            peek |= _peek_of(self.headers, effect)
        return peek


def _peek_of(headers: TableConditions, effect: Effect) -> Peek:
    names = frozenset(headers.values) | {pattern.text for pattern in headers.deny if not pattern.is_prefix}
    wide = headers.allow is not None or any(pattern.is_prefix for pattern in headers.deny)
    if effect == "deny":
        names |= frozenset(headers.require)
    return Peek(
        always=effect == "allow" and bool(headers.require),
        flags=_HEADERS if wide else 0,
        headers=names,
    )


@frozen(eq=False)
class CompiledConditions:
    """Conditions on a content header, with their patterns compiled for one session."""

    said: PropertyConditions
    effect: Effect
    #: Of each property that is a text, its name and its pattern; None: that has a variable that is not known.
    texts: tuple[tuple[str, Matcher | None], ...]
    #: Messages without any of this hold (allow), or do not hold (deny).
    peek: Peek

    def hold(self, content: MessageContent) -> bool:
        """Whether the message is one that the rule means."""
        said, allows = self.said, self.effect == "allow"
        have = content.properties
        for name, matcher in self.texts:
            value = have.get(name)
            if value is None:
                if not allows:
                    return False
            elif matcher is None:
                # The pattern holds a variable that is not known: no allow, but every deny.
                if allows:
                    return False
            elif not matcher.matches(str(value)):
                return False
        if said.delivery_mode is not None and str(have.get("delivery_mode", 1)) != said.delivery_mode:
            return False
        if any(property_of(name) not in have for name in said.require):
            return False
        if said.max_body_bytes is not None and content.body_size > said.max_body_bytes:
            return False
        return said.headers is None or said.headers.hold(content.headers, self.effect)


@frozen(eq=False)
class ContentRules:
    """What decides by its header about a publish whose names are allowed: none of ``denies`` may hold, and it
    passes by the first of ``allows`` that does."""

    denies: tuple[CompiledConditions, ...]
    #: None holds whatever there is.
    allows: tuple[CompiledConditions | None, ...]
    #: The place among ``allows`` of the rule by which messages pass that have nothing of the peek.
    admitted: int
