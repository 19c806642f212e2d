"""Rate policies: how much may pass or be opened, and whose counts together.

The types of the document, and which limits hold for one session. The buckets themselves are the data
path's; what is here says how large they are, and which sessions share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Final, Literal, Self, TypeAlias

import attrs

from amqpgate.policy.engine.operations import Principal
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.common import Metadata, Mode, check_ids, check_mode
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck, PolicyKind, Row, SessionSelection, by_subjects
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, Percent, Seconds, TextValue, between, doc, not_empty
from amqpgate.yamldoc.values import parse_size

#: What sessions must have in common to share a bucket.
Per: TypeAlias = Literal[
    "user", "vhost", "listener", "sourceIP", "connection", "tlsSubject", "spiffe", "clientProduct"
]

#: What happens over a limit.
Action: TypeAlias = Literal["delay", "reject", "close"]

#: What a bucket can count, by attribute of `Limit`.
Quantity: TypeAlias = Literal[
    "messages",
    "bytes",
    "deliver_messages",
    "deliver_bytes",
    "connections",
    "logins",
    "channels",
    "consumers",
    "queue_declares",
]

#: Counted where a message passes.
PUBLISHED: Final[tuple[Quantity, Quantity]] = ("messages", "bytes")
DELIVERED: Final[tuple[Quantity, Quantity]] = ("deliver_messages", "deliver_bytes")
#: Counted before there is a session.
_AT_THE_DOOR: Final[tuple[Quantity, ...]] = ("connections", "logins")
_QUANTITIES: Final[tuple[Quantity, ...]] = (
    *PUBLISHED,
    *DELIVERED,
    *_AT_THE_DOOR,
    "channels",
    "consumers",
    "queue_declares",
)
#: What nobody knows before the client has logged in, and before it has named its virtual host.
_BY_LOGIN: Final = frozenset({"user", "vhost", "clientProduct"})
_BY_OPEN: Final = frozenset({"vhost", "connection"})

_PER_SECOND = {"s": 1.0, "m": 1 / 60, "h": 1 / 3600}


@frozen
class Rate(TextValue):
    """So much per second, minute or hour: `5000/s`, `20Mi/s`, `100k/m`."""

    text: str
    per_second: float

    FORM: ClassVar[str] = "rate"
    PATTERN: ClassVar[str | None] = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?/[smh]$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError names the forms."""
        match = re.match(r"([0-9]+[A-Za-z]*)/([smh])\Z", text)
        try:
            if match is None:
                raise ValueError
            amount = parse_size(match[1])
        except ValueError:
            raise ValueError("expected a rate: a number per s, m or h, such as 5000/s or 20Mi/s") from None
        if amount == 0:
            raise ValueError("nothing would ever pass; to forbid it, deny it in an AccessPolicy")
        return cls(text, amount * _PER_SECOND[match[2]])

    def __str__(self) -> str:
        return self.text


@frozen(kw_only=True)
class Limit:
    """So much per second, and so many at once, for those who share it."""

    id: str = attrs.field(validator=not_empty(), metadata=doc("name in metrics and audit records"))
    per: tuple[Per, ...] = attrs.field(
        default=(),
        metadata=doc(
            "what sessions that share the limit have in common; `connection` gives each its own",
            default="all that the policy selects share one",
        ),
    )
    messages: Rate | None = attrs.field(default=None, metadata=doc("messages published"))
    bytes: Rate | None = attrs.field(default=None, metadata=doc("bytes of the bodies of messages published"))
    deliver_messages: Rate | None = attrs.field(
        default=None, metadata=doc("messages delivered, those of basic.get included")
    )
    deliver_bytes: Rate | None = attrs.field(
        default=None,
        metadata=doc("bytes of the bodies of messages delivered; those of basic.get are not counted"),
    )
    connections: Rate | None = attrs.field(
        default=None,
        metadata=doc(
            "connections opened: counted before the broker is dialled, or at connection.open where user, "
            "vhost or client properties must be known"
        ),
    )
    logins: Rate | None = attrs.field(
        default=None, metadata=doc("logins, before the broker hears of them; whether they succeed or not")
    )
    channels: Rate | None = attrs.field(default=None, metadata=doc("channels opened"))
    consumers: Rate | None = attrs.field(default=None, metadata=doc("consumers started (basic.consume)"))
    queue_declares: Rate | None = attrs.field(
        default=None, metadata=doc("queue.declare, passive ones included")
    )
    concurrent: int | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(1)),
        metadata=doc("connections open at once, of all `workers` of a gateway"),
    )
    burst: Seconds = attrs.field(
        default=Seconds(1.0),
        validator=between(0.001, 3600),
        metadata=doc(
            "how long one may have saved up: a rate times this may pass at once, and never less than one"
        ),
    )
    action: Action = attrs.field(
        default="delay",
        metadata=doc(
            "`delay`: the client is not read, or not let in, until it may go on. `reject`: what is over is "
            "rejected. `close`: the connection is closed with 506"
        ),
    )
    notify: bool = attrs.field(
        default=False,
        metadata=doc("tell clients that take it (connection.blocked) when their messages are delayed"),
    )
    shared: bool = attrs.field(
        default=False,
        metadata=doc("one limit for all processes that use the same Redis; the settings need `sharedLimits`"),
    )

    @cached_property
    def rates(self) -> tuple[tuple[Quantity, float], ...]:
        """What is limited, per second."""
        named: Mapping[Quantity, Rate | None] = {
            "messages": self.messages,
            "bytes": self.bytes,
            "deliver_messages": self.deliver_messages,
            "deliver_bytes": self.deliver_bytes,
            "connections": self.connections,
            "logins": self.logins,
            "channels": self.channels,
            "consumers": self.consumers,
            "queue_declares": self.queue_declares,
        }
        return tuple((name, rate.per_second) for name, rate in named.items() if rate is not None)

    def __attrs_post_init__(self) -> None:
        limited = {name for name, _ in self.rates}
        if not limited and self.concurrent is None:
            raise Invalid("say what is limited: messages, bytes, connections, concurrent ...")
        if self.concurrent is not None and self.action == "delay":
            raise Invalid("nobody can be made to leave: say action: reject, or close", "concurrent")
        if self.concurrent is not None and self.shared:
            raise Invalid("is counted in each gateway; give it a limit of its own, not shared", "concurrent")
        if self.action != "delay":
            for name in DELIVERED:
                if name in limited:
                    raise Invalid("what is delivered can only be delayed; say action: delay", name)
        if self.notify and (self.action != "delay" or not limited.intersection(PUBLISHED)):
            raise Invalid("goes with messages or bytes that are delayed", "notify")
        at_the_door = [name for name in _AT_THE_DOOR if name in limited]
        if "connection" in self.per and (at_the_door or self.concurrent is not None):
            raise Invalid("a connection is opened once: this would limit nothing", "per")
        if "logins" in limited and _BY_OPEN.intersection(self.per):
            raise Invalid("the virtual host is not known at the login; leave it out", "per")


@frozen(kw_only=True)
class RateSpec:
    """Who may send how much."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    limits: tuple[Limit, ...] = attrs.field(
        validator=not_empty(), metadata=doc("all of them hold, whatever their order")
    )
    mode: Mode = attrs.field(
        default="enforce",
        metadata=doc(
            "`shadow`: what would be delayed or rejected is counted, and passes; `off`: as if the policy "
            "were not there"
        ),
    )
    enforce_percent: Percent = attrs.field(
        default=Percent(0.0),
        validator=between(0, 100),
        metadata=doc("in mode `shadow`: of so many sessions in a hundred, chosen by hash, it is enforced"),
    )

    def __attrs_post_init__(self) -> None:
        check_ids([limit.id for limit in self.limits], "limit")
        check_mode(self.mode, self.enforce_percent)
        for index, limit in enumerate(self.limits):
            if limit.logins is not None and any(subject.vhosts is not None for subject in self.subjects):
                raise Invalid(
                    "the virtual host is not known at the login: use subjects without vhosts",
                    "limits",
                    index,
                    "logins",
                )

    @property
    def knows_strangers(self) -> bool:
        """Whether it can be told before the login whom this is about."""
        return all(
            subject.user.is_prefix
            and not subject.user.text
            and subject.vhosts is None
            and not subject.client
            and not subject.asks_login
            for subject in self.subjects
        )


@frozen(kw_only=True)
class RatePolicy:
    """Who may send how much. A session is held to the limits of every rate policy that selects it."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["RatePolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: RateSpec = attrs.field(metadata=doc("what the document says"))


@frozen(cache_hash=True)
class SharedLimit:
    """One limit as it holds for one session. Sessions for which it is equal share its buckets."""

    policy: str
    limit: str
    #: What they have in common, in the order of ``per``.
    key: tuple[str, ...]
    #: Per second.
    rates: tuple[tuple[Quantity, float], ...]
    #: Seconds.
    burst: float
    action: Action = "delay"
    #: Connections open at once.
    concurrent: int | None = None
    notify: bool = False
    #: With other processes.
    shared: bool = False
    #: Or only for show. Sessions for which it is enforced do not share with those for which it is not.
    enforced: bool = True
    #: Connections are counted before the login.
    is_early: bool = False
    #: Of one connection: nobody else has the same.
    is_own: bool = False

    @property
    def name(self) -> str:
        """``policy/limit``."""
        return f"{self.policy}/{self.limit}"

    def rate(self, quantity: Quantity) -> float | None:
        """Per second; None: not limited."""
        return next((rate for name, rate in self.rates if name == quantity), None)


def shared_limit(
    policy: RatePolicy, limit: Limit, principal: Principal, connection: str, *, enforced: bool = True
) -> SharedLimit:
    """The limit for the session ``connection`` of ``principal``. Users who are not known share a bucket."""
    tls = principal.tls
    values: dict[Per, str | None] = {
        "user": principal.user,
        "vhost": principal.vhost,
        "listener": principal.listener,
        "sourceIP": principal.source,
        "connection": connection,
        "tlsSubject": tls.subject if tls is not None else None,
        "spiffe": tls.spiffe if tls is not None else None,
        "clientProduct": principal.client.get("product"),
    }
    return SharedLimit(
        policy.metadata.name,
        limit.id,
        tuple(values[name] or "" for name in limit.per),
        limit.rates,
        float(limit.burst),
        limit.action,
        limit.concurrent,
        limit.notify,
        limit.shared,
        enforced,
        limit.connections is not None
        and policy.spec.knows_strangers
        and not _BY_LOGIN.intersection(limit.per),
        "connection" in limit.per,
    )


def limits_strangers(policies: Iterable[RatePolicy]) -> bool:
    """Whether a limit holds for connections that are not open yet."""
    limits = (limit for policy in policies for limit in policy.spec.limits)
    return any(limit.connections is not None or limit.logins is not None for limit in limits)


def session_limits(session: SessionSelection[RatePolicy]) -> tuple[SharedLimit, ...]:
    """The limits of the policies that select a session.

    Those that might hold for a user whom the gateway does not know do.
    """
    return tuple(
        shared_limit(one.policy, limit, session.principal, session.connection, enforced=one.is_enforced)
        for one in session.policies
        for limit in one.policy.spec.limits
    )


def _row(policy: RatePolicy) -> Row:
    return {
        "enforce_percent": policy.spec.enforce_percent,
        "limits": [limit.id for limit in policy.spec.limits],
        "rules": [
            {
                "id": limit.id,
                "effect": limit.action,
                "operations": [name for name, _ in limit.rates]
                + ["concurrent"] * (limit.concurrent is not None),
            }
            for limit in policy.spec.limits
        ],
    }


def _findings(_folder: FolderCheck[RatePolicy]) -> Iterator[Finding]:
    """A limit that makes no sense is rejected when it is read."""
    return iter(())


RATE: Final = PolicyKind(
    document=RatePolicy,
    subjects=by_subjects,
    compile=session_limits,
    row=_row,
    findings=_findings,
)
