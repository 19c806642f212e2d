"""What a client can ask for that a policy judges, and which attributes each request has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.values import frozen

#: The attributes that rules can name. ``exchange`` is where messages come from or are published to;
#: ``destination`` is the exchange that an exchange binding feeds.
Attribute: TypeAlias = Literal["exchange", "queue", "destination", "routing_key"]

#: What a server-named queue is judged as when it is declared: the start of every name that RabbitMQ gives.
SERVER_NAMED = "amq.gen-"

#: How the names of all exchanges and queues begin by which gateways delay messages. They lead to each
#: exchange that delays.
DELAY_LADDER: Final = "amqpgate.delay."

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@frozen
class TlsIdentity:
    """The client's verified certificate."""

    #: Its subject as RFC 4514 writes it: `CN=orders,O=Corp`.
    subject: str
    common_name: str = ""
    #: Its alternative names (RFC 5280, section 4.2.1.6) with their kinds: `DNS:orders.corp`, `URI:...`.
    names: tuple[str, ...] = ()

    @property
    def spiffe(self) -> str | None:
        """Its SPIFFE id: the one alternative name that is a URI of that scheme."""
        uris = [name[4:] for name in self.names if name.startswith("URI:spiffe://")]
        return uris[0] if len(uris) == 1 else None


@frozen
class TokenIdentity:
    """What a token says of its bearer that the gateway has verified."""

    scopes: frozenset[str] = frozenset()
    #: The claims that the settings name, sorted by name, each with its values as text.
    claims: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def values_of(self, claim: str) -> tuple[str, ...]:
        """The values of a claim; none where the token does not have it, or the settings do not name it."""
        return dict(self.claims).get(claim, ())


_NO_GROUPS: Final[frozenset[str]] = frozenset()


@frozen(cache_hash=True)
class Principal:
    """Who asks: fixed for the life of one client connection."""

    #: None where the gateway cannot tell (a SASL mechanism whose answers only the broker understands).
    user: str | None
    vhost: str
    #: The client's IP address as text.
    source: str | None = None
    #: The listener's name.
    listener: str | None = None
    tls: TlsIdentity | None = None
    #: Client properties (connection.start-ok) that are text.
    client: Mapping[str, str] = attrs.field(default=_NOTHING, hash=False)
    #: The user that the broker knows it by: another one where the upstream or a route logs in itself. For
    #: operators; no policy looks at it. None where the gateway cannot tell.
    upstream_user: str | None = attrs.field(default=None, eq=False)
    #: Those that its token names. Policies add those of `UserGroups`.
    groups: frozenset[str] = _NO_GROUPS
    #: None: it has not logged in by a token that the gateway has verified.
    token: TokenIdentity | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """What variables in policies stand for."""
        return {
            "user": self.user,
            "vhost": self.vhost,
            "listener": self.listener,
            "sourceIP": self.source,
        }


#: Of each property that rules can name, its bit in the property flags (AMQP 0-9-1, section 4.2.6.1).
PROPERTY_FLAGS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "content_type": 1 << 15,
        "content_encoding": 1 << 14,
        "headers": 1 << 13,
        "delivery_mode": 1 << 12,
        "priority": 1 << 11,
        "correlation_id": 1 << 10,
        "reply_to": 1 << 9,
        "expiration": 1 << 8,
        "message_id": 1 << 7,
        "timestamp": 1 << 6,
        "type": 1 << 5,
        "user_id": 1 << 4,
        "app_id": 1 << 3,
    }
)

#: Headers whose values RabbitMQ takes for more routing keys.
SENDER_SELECTED: Final = ("CC", "BCC")


def text_of(value: object) -> str | None:
    """A value of a peer's as it is judged: text, and bytes as text with lone surrogates for what is not UTF-8
    (PEP 383), as names and routing keys are; None for anything else.

    A broker takes any bytes for a routing key or a name, whatever type the client gave them.
    """
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else None


class Entries(dict[str, object]):
    """A field table's entries by name; of several with one name the first.

    RabbitMQ takes the first, most client libraries the last, and what a broker strips uncovers the next one;
    so a rule is asked about each (`every`).
    """

    __slots__ = ("more",)

    #: The others, in the order of the table.
    more: tuple[tuple[str, object], ...]

    def __init__(self, entries: Iterable[tuple[str, object]] = ()) -> None:
        super().__init__()
        more = []
        for name, value in entries:
            if name in self:
                more.append((name, value))
            else:
                self[name] = value
        self.more = tuple(more)


def every(table: Mapping[str, object], name: str) -> Iterator[object]:
    """All values that a table has under one name."""
    if name in table:
        yield table[name]
        if isinstance(table, Entries):
            yield from (value for other, value in table.more if other == name)


def every_value(table: Mapping[str, object]) -> Iterator[object]:
    """All values of a table."""
    yield from table.values()
    if isinstance(table, Entries):
        yield from (value for _, value in table.more)


@frozen
class MessageContent:
    """A message's content header."""

    body_size: int = 0
    #: Those that the message has, but for ``headers``: text, or whole numbers.
    properties: Mapping[str, str | int] = attrs.field(factory=dict)
    headers: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def more_keys(self) -> list[str]:
        """The routing keys that the broker uses besides the one of the method.

        RabbitMQ 3.10 takes the texts of an array, ignores what else is in it, and rejects a message with
        anything but an array (406).
        """
        keys = (
            text_of(key)
            for name in SENDER_SELECTED
            for value in every(self.headers, name)
            if isinstance(value, list | tuple)
            for key in value
        )
        return [key for key in keys if key is not None]


@frozen
class Operation:
    """One request of a client, in the names of AMQP 0-9-1.

    Every attribute that `OPERATIONS` lists for ``name`` must be given, the others stay None. ``queue`` is
    the name that the broker will use: the empty name, but for queue.declare, has been replaced by
    the queue declared last on the channel, and so has the empty routing key that goes with it (queue.bind).
    """

    principal: Principal
    #: Such as ``basic.publish``.
    name: str
    exchange: str | None = None
    routing_key: str | None = None
    queue: str | None = None
    #: exchange.bind and exchange.unbind: the exchange that receives; ``exchange`` is the source.
    destination: str | None = None
    #: Of declares, binds and basic.consume: what counts, which is nothing of a passive declare.
    arguments: Mapping[str, object] = attrs.field(default=_NOTHING, hash=False)
    #: basic.publish: None while only the method has come.
    content: MessageContent | None = None
    #: The queue was named by the broker (`SERVER_NAMED`), and not for this connection.
    foreign: bool = False
    #: The routing key stands for many: every key that it catches as a binding key.
    any_key: bool = False
    #: basic.publish: it stands for messages that are still to come, whatever is in them.
    any_content: bool = False
    #: A declare that only asks whether the name exists.
    passive: bool = False


@frozen
class OperationType:
    """One row of the table below."""

    name: str
    #: In the order in which RabbitMQ checks its permissions: the first that fails is named in the denial.
    attributes: tuple[Attribute, ...] = ()
    #: Whether the routing key is a binding key, whose ``*`` and ``#`` may catch many routing keys.
    binds: bool = False
    #: Whether it has a table of arguments.
    arguments: bool = False
    #: Allowed unless a rule denies it: it touches no resource, and RabbitMQ has no permission for it.
    free: bool = False

    @property
    def declares(self) -> bool:
        """Whether it may be passive."""
        return self.name in ("exchange.declare", "queue.declare")


#: The operations that exist for policies. Order of attributes: rabbit_channel.erl of RabbitMQ 3.10.
#: Passive declares are judged as declares: they tell whether a name exists. What is not here answers
#: something that the broker asked, or ends something: close, flow-ok, ack, nack, reject.
OPERATIONS: dict[str, OperationType] = {
    kind.name: kind
    for kind in (
        OperationType("exchange.declare", ("exchange",), arguments=True),
        OperationType("exchange.delete", ("exchange",)),
        OperationType(
            "exchange.bind", ("destination", "exchange", "routing_key"), binds=True, arguments=True
        ),
        OperationType(
            "exchange.unbind", ("destination", "exchange", "routing_key"), binds=True, arguments=True
        ),
        OperationType("queue.declare", ("queue",), arguments=True),
        OperationType("queue.bind", ("queue", "exchange", "routing_key"), binds=True, arguments=True),
        OperationType("queue.unbind", ("queue", "exchange", "routing_key"), binds=True, arguments=True),
        OperationType("queue.purge", ("queue",)),
        OperationType("queue.delete", ("queue",)),
        OperationType("basic.publish", ("exchange", "routing_key")),
        OperationType("basic.consume", ("queue",), arguments=True),
        OperationType("basic.get", ("queue",)),
        OperationType("connection.open", free=True),
        OperationType("connection.update-secret", free=True),
        OperationType("channel.open", free=True),
        OperationType("channel.flow", free=True),
        OperationType("access.request", free=True),
        OperationType("basic.qos", free=True),
        OperationType("basic.cancel", free=True),
        OperationType("basic.recover", free=True),
        OperationType("confirm.select", free=True),
        OperationType("tx.select", free=True),
        OperationType("tx.commit", free=True),
        OperationType("tx.rollback", free=True),
    )
}
