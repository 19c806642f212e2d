"""Requests as people write them, in policy tests and on the command line, to operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import attrs

from amqpgate.policy.engine.conditions import PropertyName, property_of
from amqpgate.policy.engine.operations import (
    OPERATIONS,
    MessageContent,
    Operation,
    Principal,
    TlsIdentity,
    TokenIdentity,
)
from amqpgate.values import frozen
from amqpgate.yamldoc import AnyValue, Invalid, Plain, Size, doc, nearest, not_empty

#: Properties that are numbers on the wire.
_NUMBERS = ("deliveryMode", "priority", "timestamp")

#: The keys of attributes.
_KEYS = {"exchange": "exchange", "queue": "queue", "destination": "destination", "routing_key": "routingKey"}


@frozen(kw_only=True)
class Certificate:
    """A client's verified certificate."""

    subject: str = attrs.field(default="", metadata=doc("its subject as RFC 4514 writes it"))
    common_name: str = attrs.field(default="", metadata=doc("its common name"))
    names: tuple[str, ...] = attrs.field(
        default=(), metadata=doc("its alternative names: `DNS:orders.corp`, `URI:spiffe://corp/orders`")
    )


@frozen(kw_only=True)
class Who:
    """Who asks."""

    user: str | None = attrs.field(
        metadata=doc("user name; null where only the broker would know it", default="required")
    )
    vhost: str = attrs.field(default="/", metadata=doc("virtual host"))
    source: str | None = attrs.field(default=None, metadata=doc("the client's IP address"))
    listener: str | None = attrs.field(default=None, metadata=doc("the listener that it came by"))
    tls: Certificate | None = attrs.field(
        default=None, metadata=doc("the client's verified certificate", default="none")
    )
    client: Mapping[str, str] = attrs.field(
        factory=dict, metadata=doc("client properties such as `product`", default="none")
    )

    groups: tuple[str, ...] = attrs.field(
        default=(),
        metadata=doc(
            "groups that a verified token names; those of `UserGroups` need not be said", default="none"
        ),
    )
    scopes: tuple[str, ...] = attrs.field(
        default=(), metadata=doc("scopes of a verified token", default="none")
    )
    claims: Mapping[str, AnyValue] = attrs.field(
        factory=dict, metadata=doc("claims of a verified token: text, or a list of texts", default="none")
    )

    def __attrs_post_init__(self) -> None:
        for name, value in self.claims.items():
            if not all(isinstance(one, str) for one in (value if isinstance(value, list) else [value])):
                raise Invalid("a claim is text, or a list of texts: put numbers in quotes", "claims", name)

    def principal(self) -> Principal:
        """As the policies see it."""
        tls = self.tls
        token = TokenIdentity(
            frozenset(self.scopes),
            tuple([(name, _values(value)) for name, value in sorted(self.claims.items())]),
        )
        return Principal(
            self.user,
            self.vhost,
            self.source,
            self.listener,
            TlsIdentity(tls.subject, tls.common_name, tls.names) if tls is not None else None,
            dict(self.client),
            groups=frozenset(self.groups),
            token=token if self.scopes or self.claims else None,
        )


def _values(claim: AnyValue) -> tuple[str, ...]:
    return tuple([str(one) for one in claim]) if isinstance(claim, list) else (str(claim),)


def who_asks(principal: Principal) -> dict[str, Plain]:
    """The principal as people write one, all of it: the other way round than `Who.principal`."""
    tls, token = principal.tls, principal.token or TokenIdentity()
    said: dict[str, Plain] = {
        "user": principal.user,
        "vhost": principal.vhost,
        "source": principal.source,
        "listener": principal.listener,
        "tls": None
        if tls is None
        else {"subject": tls.subject, "commonName": tls.common_name, "names": list(tls.names)},
        "client": dict(principal.client),
        "groups": sorted(principal.groups),
        "scopes": sorted(token.scopes),
        "claims": {name: list(values) for name, values in token.claims},
    }
    return {key: value for key, value in said.items() if value or key == "user"}


@frozen(kw_only=True)
class Request:
    """One request of a client."""

    who: Who = attrs.field(metadata=doc("who asks", key="as"))
    op: str = attrs.field(validator=not_empty(), metadata=doc("the operation, such as `basic.publish`"))
    exchange: str | None = attrs.field(
        default=None,
        metadata=doc("the exchange; '' is the default exchange. Of an exchange binding, the source"),
    )
    queue: str | None = attrs.field(
        default=None, metadata=doc("the queue; '' in `queue.declare` asks the server for a name")
    )
    routing_key: str | None = attrs.field(default=None, metadata=doc("routing key, or binding key"))
    destination: str | None = attrs.field(
        default=None, metadata=doc("the exchange that an exchange binding feeds")
    )
    passive: bool = attrs.field(default=False, metadata=doc("of declares: only ask whether the name exists"))
    arguments: Mapping[str, AnyValue] = attrs.field(
        factory=dict, metadata=doc("arguments of declares, binds and `basic.consume`", default="none")
    )
    properties: Mapping[str, AnyValue] = attrs.field(
        factory=dict, metadata=doc("of the message: `deliveryMode: 2`", default="none")
    )
    headers: Mapping[str, AnyValue] = attrs.field(
        factory=dict, metadata=doc("of the message: `CC: [other.key]`", default="none")
    )
    body_bytes: Size = attrs.field(default=Size(0), metadata=doc("size of the message's body"))
    flags: tuple[Literal["durable", "exclusive", "auto-delete"], ...] = attrs.field(
        default=(),
        metadata=doc(
            "of `queue.declare`; no rule asks for them, but a compatibility policy does", default="none"
        ),
    )

    def __attrs_post_init__(self) -> None:
        kind = OPERATIONS.get(self.op)
        if kind is None:
            hint = nearest(self.op, OPERATIONS)
            raise Invalid(f"no operation is named '{self.op}'{hint}; there are {', '.join(OPERATIONS)}", "op")
        for attribute, key in _KEYS.items():
            given = getattr(self, attribute) is not None
            if given and attribute not in kind.attributes:
                has = ", ".join(_KEYS[one] for one in kind.attributes) or "nothing"
                raise Invalid(f"{self.op} has no {key}; it has {has}", attribute)
            if not given and attribute in kind.attributes:
                raise Invalid(f"{self.op} needs {key}")
        if self.passive and not kind.declares:
            raise Invalid(f"{self.op} is never passive", "passive")
        if self.flags and self.op != "queue.declare":
            raise Invalid(f"{self.op} has no flags", "flags")
        if self.arguments and not kind.arguments:
            raise Invalid(f"{self.op} has no arguments", "arguments")
        if self.op != "basic.publish":
            for key, table in (("properties", self.properties), ("headers", self.headers)):
                if table:
                    raise Invalid(f"{self.op} carries no message", key)
            if self.body_bytes:
                raise Invalid(f"{self.op} carries no message", "body_bytes")
        for name, value in self.properties.items():
            if name not in get_args(PropertyName):
                known = get_args(PropertyName)
                raise Invalid(
                    f"unknown property '{name}'{nearest(name, known)}; known are {', '.join(known)}",
                    "properties",
                    name,
                )
            wanted: type[object] = int if name in _NUMBERS else str
            if type(value) is not wanted:
                what = "a number" if name in _NUMBERS else "text: put it in quotes"
                raise Invalid(f"{name} is {what}", "properties", name)

    def operation(self) -> Operation:
        """As the policies see it."""
        content = None
        if self.op == "basic.publish":
            properties = {
                property_of(name): value
                for name, value in self.properties.items()
                if isinstance(value, str | int)
            }
            content = MessageContent(self.body_bytes, properties, dict(self.headers))
        return Operation(
            self.who.principal(),
            self.op,
            exchange=self.exchange,
            routing_key=self.routing_key,
            queue=self.queue,
            destination=self.destination,
            # RabbitMQ takes no notice of the arguments of a passive declare.
            arguments={} if self.passive else dict(self.arguments),
            passive=self.passive,
            content=content,
        )


def words_for(operation: Operation) -> str:
    """The operation in one line, without who asks."""
    kind = OPERATIONS.get(operation.name)
    words = [operation.name]
    for attribute in kind.attributes if kind is not None else ():
        words.append(f"{attribute.replace('_', ' ')} '{getattr(operation, attribute) or ''}'")
    if operation.passive:
        words.insert(1, "(passive)")
    if operation.arguments:
        words.append("arguments " + ", ".join(f"{key}={value}" for key, value in operation.arguments.items()))
    content = operation.content
    if content is not None:
        said = {**content.properties, **content.headers}
        words += [f"{key}={value}" for key, value in said.items()]
        if content.body_size:
            words.append(f"body of {content.body_size} bytes")
    return " ".join(words)
