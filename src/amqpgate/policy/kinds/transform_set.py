"""What the transform policies mean for one session.

Of several policies that select a session, all arguments, properties, headers and ceilings hold, in the order
of the policies' names; but only one may give names. A session whose names cannot be told for sure is denied:
it would see, or be, somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.policy.engine.conditions import Peek, property_of
from amqpgate.policy.engine.matching import MAX_BYTES, Matcher, Values, expand
from amqpgate.policy.engine.naming import RESERVED, Kind, Naming, Renaming
from amqpgate.policy.engine.operations import PROPERTY_FLAGS, SERVER_NAMED, Operation
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.kinds.kind import SessionSelection
from amqpgate.policy.kinds.transform_document import ArgumentRule, Given, RenamingSpec, TransformPolicy
from amqpgate.values import frozen

PlainGiven: TypeAlias = "str | int | bool"

#: Headers of a dead letter that name queues and exchanges, and those that are more routing keys.
DEAD_LETTER_HEADERS: Final = (
    "x-death",
    "x-first-death-queue",
    "x-first-death-exchange",
    "x-last-death-queue",
    "x-last-death-exchange",
)
_NAMING_HEADERS: Final = frozenset({"CC", "BCC", *DEAD_LETTER_HEADERS})
_HEADERS: Final = PROPERTY_FLAGS["headers"]


class SessionDeniedError(AmqpgateError):
    """Nobody can say how this session's names are to be changed; why is in the text."""


@frozen
class CompiledArguments:
    """One rule about arguments, as it holds for one session."""

    #: Of the policy.
    policy: str
    rule: ArgumentRule
    add: Mapping[str, PlainGiven]
    force: Mapping[str, PlainGiven]
    _queue: Matcher | None
    _exchange: Matcher | None

    def matches(self, operation: Operation) -> bool:
        """Whether the operation, in the client's names, is one that the rule means."""
        if operation.name not in self.rule.operations:
            return False
        if self._queue is not None and not self._queue.matches(operation.queue or SERVER_NAMED):
            return False
        return self._exchange is None or self._exchange.matches(operation.exchange or "")


@frozen
class ContentChange:
    """What happens to the content headers of messages that are published."""

    validates_user: bool = False
    strip_properties: frozenset[str] = frozenset()
    set_properties: Mapping[str, str | int] = attrs.field(factory=dict)
    strip_headers: tuple[NamePattern, ...] = ()
    set_headers: Mapping[str, PlainGiven] = attrs.field(factory=dict)
    max_body: int | None = None
    #: Milliseconds.
    max_ttl: int | None = None

    @property
    def peek(self) -> Peek:
        """Messages without any of this stay as they are."""
        flags = reduce(or_, (PROPERTY_FLAGS[name] for name in self.strip_properties), 0)
        if self.validates_user:
            flags |= PROPERTY_FLAGS["user_id"]
        if any(pattern.is_prefix for pattern in self.strip_headers):
            flags |= _HEADERS
        return Peek(
            always=bool(self.set_properties or self.set_headers) or self.max_ttl is not None,
            flags=flags,
            headers=frozenset(pattern.text for pattern in self.strip_headers if not pattern.is_prefix),
            max_body=self.max_body,
        )


@frozen(eq=False)
class Transform:
    """All that is changed for one session."""

    user: str | None
    naming: Naming | None = None
    arguments: tuple[CompiledArguments, ...] = ()
    content: ContentChange = ContentChange()

    def arguments_for(self, operation: Operation) -> Iterator[CompiledArguments]:
        """The rules about the arguments of this operation, which is in the client's names."""
        return (rule for rule in self.arguments if rule.matches(operation))

    @property
    def changes_messages(self) -> bool:
        """Whether any publish may change, or be denied."""
        return self.naming is not None or self.content != ContentChange()

    @property
    def peek_published(self) -> Peek:
        """Which messages must be looked at although their exchange and routing key stay as they are."""
        return self.content.peek if self.naming is None else self.content.peek | self.peek_delivered

    @property
    def peek_delivered(self) -> Peek:
        """Likewise of messages to the client: those with names in their headers."""
        if self.naming is None:
            return Peek()
        if self.naming.queues is None:
            return Peek(headers=frozenset(DEAD_LETTER_HEADERS))
        return Peek(flags=PROPERTY_FLAGS["reply_to"], headers=_NAMING_HEADERS)


def session_transform(session: SessionSelection[TransformPolicy]) -> Transform | None:
    """What is changed for a session; None where nothing is. Raises `SessionDeniedError`."""
    policies, values = [one.policy for one in session.policies], session.values
    if not policies:
        return None
    for one in session.policies:
        if not one.is_sure:
            raise SessionDeniedError(
                f"transform policy '{one.policy.metadata.name}' may concern this user, "
                "whose name is not known"
            )
    return Transform(
        session.principal.user,
        _naming(policies, values),
        tuple(
            CompiledArguments(
                policy.metadata.name,
                rule,
                _plain(policy, rule.add, values),
                _plain(policy, rule.force, values),
                None if rule.queue is None else _known(policy, rule.queue.compile(values)),
                None if rule.exchange is None else _known(policy, rule.exchange.compile(values)),
            )
            for policy in policies
            for rule in policy.spec.arguments
        ),
        _content(policies, values),
    )


def _known(policy: TransformPolicy, matcher: Matcher | None) -> Matcher:
    if matcher is None:
        raise _unknown(policy)
    return matcher


def _unknown(policy: TransformPolicy) -> SessionDeniedError:
    return SessionDeniedError(
        f"transform policy '{policy.metadata.name}' holds a variable whose value is not known here"
    )


def _plain(policy: TransformPolicy, given: Mapping[str, Given], values: Values) -> dict[str, PlainGiven]:
    return {name: _filled(policy, one.value, values) for name, one in given.items()}


def _filled(policy: TransformPolicy, value: PlainGiven, values: Values) -> PlainGiven:
    if not isinstance(value, str):
        return value
    text = expand(value, values)
    if text is None:
        raise _unknown(policy)
    return text


def _naming(policies: Sequence[TransformPolicy], values: Values) -> Naming | None:
    naming = [policy for policy in policies if policy.spec.names is not None]
    if not naming:
        return None
    if len(naming) > 1:
        names = " and ".join(f"'{policy.metadata.name}'" for policy in naming)
        raise SessionDeniedError(f"transform policies {names} both change the names of this session")
    (policy,) = naming
    spec = policy.spec.names
    assert spec is not None
    return Naming(
        _renaming(policy, "exchange", spec.both or spec.exchanges, values),
        _renaming(policy, "queue", spec.both or spec.queues, values),
    )


def _renaming(
    policy: TransformPolicy, kind: Kind, spec: RenamingSpec | None, values: Values
) -> Renaming | None:
    if spec is None:
        return None
    for variable, separator in re.findall(r"\{([^{}]*)\}(.)", spec.prefix):
        # Or the user 'a' could have names that start like those of the user 'a.b'.
        if separator in (values.get(variable) or ""):
            raise SessionDeniedError(
                f"transform policy '{policy.metadata.name}' separates names by '{separator}', "
                f"which the {variable} has in it"
            )
    prefix = expand(spec.prefix, values)
    if prefix is None:
        raise _unknown(policy)
    if prefix.startswith(RESERVED) or len(prefix.encode()) > MAX_BYTES // 2 or re.search(r"[\r\n']", prefix):
        raise SessionDeniedError(
            f"transform policy '{policy.metadata.name}' gives this session a prefix that names cannot have"
        )
    return Renaming(kind, prefix, dict(spec.map))


def _content(policies: Sequence[TransformPolicy], values: Values) -> ContentChange:
    properties: dict[str, str | int] = {}
    headers: dict[str, PlainGiven] = {}
    for policy in policies:
        wanted = policy.spec.properties.set
        for field in attrs.fields(type(wanted)):
            value = getattr(wanted, field.name)
            if value is not None:
                properties[field.name] = _property_value(policy, field.name, value, values)
        headers |= _plain(policy, policy.spec.headers.set, values)
    ceilings = [policy.spec.ceilings for policy in policies]
    bodies = [int(one.max_body_bytes) for one in ceilings if one.max_body_bytes is not None]
    lives = [round(one.max_ttl * 1000) for one in ceilings if one.max_ttl is not None]
    return ContentChange(
        any(policy.spec.properties.user_id == "validate" for policy in policies),
        frozenset(property_of(name) for policy in policies for name in policy.spec.properties.strip),
        properties,
        tuple(pattern for policy in policies for pattern in policy.spec.headers.strip),
        headers,
        min(bodies, default=None),
        min(lives, default=None),
    )


def _property_value(policy: TransformPolicy, name: str, value: str | int, values: Values) -> str | int:
    if name == "delivery_mode":
        return int(value)
    filled = _filled(policy, value, values)
    if isinstance(filled, str) and len(filled.encode()) > MAX_BYTES:
        raise SessionDeniedError(
            f"transform policy '{policy.metadata.name}' sets a property to more than {MAX_BYTES} bytes"
        )
    return filled
