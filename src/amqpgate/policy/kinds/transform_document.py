"""Transform policies: names, arguments and content headers that are changed on the way.

The types of the document. What they mean for one session is made of them in `transform_set`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import attrs

from amqpgate.policy.engine.conditions import Match, PropertyName
from amqpgate.policy.engine.matching import MAX_BYTES, VARIABLES, variables_in
from amqpgate.policy.engine.naming import RESERVED
from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.kinds.common import Metadata, check_ids
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Seconds, Size, between, doc, not_empty

#: Operations whose arguments can be changed.
ArgumentOperation: TypeAlias = Literal["queue.declare", "exchange.declare", "basic.consume"]

_NO_SHADOW = "is not for transform policies: a message cannot be changed for show; take mode enforce or off"


@frozen(kw_only=True)
class RenamingSpec:
    """How names are changed: a prefix, names of their own, or both."""

    prefix: str = attrs.field(
        default="",
        metadata=doc(
            "put before every name that the map does not have; `{user}` and `{vhost}` stand for themselves "
            "and need a separator behind them that is not in the value, such as `{user}.`",
            default="none",
        ),
    )
    map: Mapping[str, str] = attrs.field(
        factory=dict, metadata=doc("the client's name to the broker's", default="none")
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    def __attrs_post_init__(self) -> None:
        if not self.prefix and not self.map:
            raise Invalid("say prefix, map, or both")
        _check_prefix(self.prefix)
        targets: dict[str, str] = {}
        for ours, theirs in self.map.items():
            for name in (ours, theirs):
                _check_name(name)
            if theirs in targets:
                raise Invalid(
                    f"'{targets[theirs]}' and '{ours}' would be the same to the broker", "map", ours
                )
            targets[theirs] = ours


def _check_prefix(prefix: str) -> None:
    if len(prefix.encode()) > MAX_BYTES // 2:
        raise Invalid(f"longer than {MAX_BYTES // 2} bytes: it would leave no room for names", "prefix")
    if "\r" in prefix or "\n" in prefix or "'" in prefix:
        raise Invalid("line ends and quotes have no place in it", "prefix")
    if prefix.startswith(RESERVED):
        raise Invalid(f"RabbitMQ keeps names that start with {RESERVED} for itself", "prefix")
    for name in re.findall(r"\{([^{}]*)\}", prefix):
        if name not in VARIABLES:
            known = ", ".join(f"{{{variable}}}" for variable in VARIABLES)
            raise Invalid(f"unknown variable {{{name}}}; known are {known}", "prefix")
    if re.search(r"\}(\{|\Z)", prefix):
        raise Invalid(
            "a variable needs a separator behind it: without one, the users 'a' and 'ab' would share names",
            "prefix",
        )


def _check_name(name: str) -> None:
    if not name:
        raise Invalid("the default exchange and server-named queues keep their names", "map", name)
    if len(name.encode()) > MAX_BYTES:
        raise Invalid(f"longer than {MAX_BYTES} bytes: no name is", "map", name)
    if "\r" in name or "\n" in name:
        raise Invalid("line ends have no place in names", "map", name)
    if variables_in(name):
        raise Invalid("variables are not expanded here; take the prefix", "map", name)


@frozen(kw_only=True)
class NamesSpec:
    """Which names are changed, and how."""

    exchanges: RenamingSpec | None = attrs.field(
        default=None, metadata=doc("names of exchanges", default="unchanged")
    )
    queues: RenamingSpec | None = attrs.field(
        default=None,
        metadata=doc("names of queues, routing keys of the default exchange included", default="unchanged"),
    )
    both: RenamingSpec | None = attrs.field(default=None, metadata=doc("the same for exchanges and queues"))

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    def __attrs_post_init__(self) -> None:
        if self.both is not None and (self.exchanges is not None or self.queues is not None):
            raise Invalid("give both, or exchanges and queues", "both")
        if self.both is self.exchanges is self.queues is None:
            raise Invalid("say exchanges, queues, or both")


@frozen(kw_only=True)
class Given:
    """A value: one of text, a whole number, or true or false. Plain text is short for `text`."""

    text: str | None = attrs.field(default=None, metadata=doc("text; `{user}` and the like are filled in"))
    number: int | None = attrs.field(default=None, metadata=doc("a whole number"))
    flag: bool | None = attrs.field(default=None, metadata=doc("true or false"))

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1, "maxProperties": 1}
    SHORTHAND: ClassVar[str] = "text"

    def __attrs_post_init__(self) -> None:
        if sum(value is not None for value in (self.text, self.number, self.flag)) != 1:
            raise Invalid("give exactly one of text, number and flag")
        if self.number is not None and not -(2**63) <= self.number < 2**63:
            raise Invalid("no argument holds more than 64 bits", "number")

    @property
    def value(self) -> str | int | bool:
        """What was given."""
        if self.text is not None:
            return self.text
        if self.flag is not None:
            return self.flag
        assert self.number is not None
        return self.number


@frozen(kw_only=True)
class ArgumentRule:
    """What happens to the arguments of a declare or consume; in the order strip, add, force, ceilings."""

    id: str = attrs.field(validator=not_empty(), metadata=doc("name in audit records"))
    operations: tuple[ArgumentOperation, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whose arguments")
    )
    queue: Match | None = attrs.field(
        default=None,
        metadata=doc(
            "the queue, as the client calls it; server-named ones have the prefix `amq.gen-`", default="any"
        ),
    )
    exchange: Match | None = attrs.field(
        default=None, metadata=doc("the exchange, as the client calls it", default="any")
    )
    strip: tuple[NamePattern, ...] = attrs.field(
        default=(), metadata=doc("arguments that are left out", default="none")
    )
    add: Mapping[str, Given] = attrs.field(
        factory=dict, metadata=doc("arguments that are added where they are not there", default="none")
    )
    force: Mapping[str, Given] = attrs.field(
        factory=dict, metadata=doc("arguments that have this value whatever the client says", default="none")
    )
    ceilings: Mapping[str, int] = attrs.field(
        factory=dict,
        metadata=doc("numbers that are this at most, and are this where they are not there", default="none"),
    )

    def __attrs_post_init__(self) -> None:
        if not (self.strip or self.add or self.force or self.ceilings):
            raise Invalid("changes nothing; give strip, add, force or ceilings")
        for index, operation in enumerate(self.operations):
            other = "queue" if operation == "exchange.declare" else "exchange"
            if (self.queue if other == "queue" else self.exchange) is not None:
                raise Invalid(f"'{operation}' has no {other}; give it a rule of its own", "operations", index)
        for key, names in (("add", self.add), ("force", self.force), ("ceilings", self.ceilings)):
            for name in names:
                if not 0 < len(name.encode()) <= MAX_BYTES:
                    raise Invalid(f"no argument has a name of {len(name.encode())} bytes", key, name)
        for name, ceiling in self.ceilings.items():
            if not 0 <= ceiling < 2**63:
                raise Invalid("must be 0 or more, and fit 64 bits", "ceilings", name)
            if name in self.force:
                raise Invalid("is forced already", "ceilings", name)


@frozen(kw_only=True)
class SetProperties:
    """Properties that every message gets. In text, `{user}` and the like are filled in."""

    content_type: str | None = attrs.field(default=None, metadata=doc("MIME type", default="the client's"))
    content_encoding: str | None = attrs.field(
        default=None, metadata=doc("MIME encoding", default="the client's")
    )
    delivery_mode: Literal["1", "2"] | None = attrs.field(
        default=None, metadata=doc("2 is persistent", default="the client's")
    )
    priority: int | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(0, 255)),
        metadata=doc("priority", default="the client's"),
    )
    type: str | None = attrs.field(default=None, metadata=doc("message type", default="the client's"))
    user_id: str | None = attrs.field(
        default=None, metadata=doc("who sent it: `{user}`; the broker checks it, too", default="the client's")
    )
    app_id: str | None = attrs.field(default=None, metadata=doc("application id", default="the client's"))

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}


@frozen(kw_only=True)
class PropertiesSpec:
    """What happens to the properties of messages that are published."""

    user_id: Literal["validate"] | None = attrs.field(
        default=None,
        metadata=doc(
            "`validate`: a message that names its user must name the login, else it is denied with 406",
            default="left to the broker",
        ),
    )
    strip: tuple[PropertyName, ...] = attrs.field(
        default=(), metadata=doc("properties that are left out", default="none")
    )
    set: SetProperties = attrs.field(
        default=SetProperties(), metadata=doc("properties that every message gets", default="none")
    )


@frozen(kw_only=True)
class HeadersSpec:
    """What happens to the headers of messages that are published."""

    strip: tuple[NamePattern, ...] = attrs.field(
        default=(), metadata=doc("headers that are left out", default="none")
    )
    set: Mapping[str, Given] = attrs.field(
        factory=dict, metadata=doc("headers that every message gets", default="none")
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    def __attrs_post_init__(self) -> None:
        for name in self.set:
            if not 0 < len(name.encode()) <= MAX_BYTES:
                raise Invalid(f"no header has a name of {len(name.encode())} bytes", "set", name)


@frozen(kw_only=True)
class CeilingsSpec:
    """How large, and how long-lived, messages may be."""

    max_body_bytes: Size | None = attrs.field(
        default=None, metadata=doc("a message with a larger body is denied with 406", default="any")
    )
    max_ttl: Seconds | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(0.001, 10 * 365 * 86400)),
        metadata=doc(
            "longest time to live: a longer `expiration`, or none, becomes this", default="for ever"
        ),
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}


@frozen(kw_only=True)
class TransformSpec:
    """Whose names, arguments and messages are changed, and how."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    mode: Literal["enforce", "off"] = attrs.field(
        default="enforce", metadata=doc("`off`: as if the policy were not there")
    )
    names: NamesSpec | None = attrs.field(
        default=None, metadata=doc("names of exchanges and queues, there and back", default="unchanged")
    )
    arguments: tuple[ArgumentRule, ...] = attrs.field(
        default=(),
        metadata=doc("arguments of declares and consumes, one rule after the other", default="unchanged"),
    )
    properties: PropertiesSpec = attrs.field(
        default=PropertiesSpec(), metadata=doc("properties of messages", default="unchanged")
    )
    headers: HeadersSpec = attrs.field(
        default=HeadersSpec(), metadata=doc("headers of messages", default="unchanged")
    )
    ceilings: CeilingsSpec = attrs.field(
        default=CeilingsSpec(), metadata=doc("sizes and times to live of messages", default="none")
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = {"enforcePercent": _NO_SHADOW}

    def __attrs_post_init__(self) -> None:
        if not self.says_something:
            raise Invalid("changes nothing; give names, arguments, properties, headers or ceilings")
        check_ids([rule.id for rule in self.arguments], "argument")

    @property
    def says_something(self) -> bool:
        """Whether anything is changed at all."""
        return (
            self.names is not None
            or bool(self.arguments)
            or self.properties != PropertiesSpec()
            or self.headers != HeadersSpec()
            or self.ceilings != CeilingsSpec()
        )


@frozen(kw_only=True)
class TransformPolicy:
    """Names, arguments and content headers that are changed on the way."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["TransformPolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: TransformSpec = attrs.field(metadata=doc("what the document says"))
