"""Rate policies: how much may pass, and whose messages count together.

The types of the document, and which limits hold for one session. The buckets themselves are the data
path's; what is here says how large they are, and which sessions share one.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal, Self, TypeAlias

import attrs

from amqpgate.policy.documents import Metadata, check_ids
from amqpgate.policy.operations import Principal
from amqpgate.policy.subjects import Subject
from amqpgate.yamldoc import Invalid, Seconds, TextValue, between, doc, not_empty
from amqpgate.yamldoc.values import parse_size

#: What sessions must have in common to share a bucket.
Per: TypeAlias = Literal["user", "vhost", "listener", "sourceIP", "connection"]

_LATER = "is not enforced by this version; remove it"

_PER_SECOND = {"s": 1.0, "m": 1 / 60, "h": 1 / 3600}


@attrs.frozen
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


@attrs.frozen(kw_only=True)
class Limit:
    """So much per second for those who share it."""

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
    burst: Seconds = attrs.field(
        default=Seconds(1.0),
        validator=between(0.001, 3600),
        metadata=doc("how long one may have saved up: a rate times this may pass at once"),
    )
    action: Literal["delay"] = attrs.field(
        default="delay",
        metadata=doc("`delay`: the client is not read until the next message may pass"),
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = dict.fromkeys(
        ("connections", "concurrent", "channels", "consumers", "logins", "queueDeclares", "deliver"), _LATER
    )

    def __attrs_post_init__(self) -> None:
        if self.messages is None and self.bytes is None:
            raise Invalid("say messages, bytes, or both")


@attrs.frozen(kw_only=True)
class RateSpec:
    """Who may send how much."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    limits: tuple[Limit, ...] = attrs.field(
        validator=not_empty(), metadata=doc("all of them hold, whatever their order")
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = dict.fromkeys(("mode", "enforcePercent"), _LATER)

    def __attrs_post_init__(self) -> None:
        check_ids([limit.id for limit in self.limits], "limit")


@attrs.frozen(kw_only=True)
class RatePolicy:
    """Who may send how much. A session is held to the limits of every rate policy that selects it."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["RatePolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: RateSpec = attrs.field(metadata=doc("what the document says"))


@attrs.frozen
class SharedLimit:
    """One limit as it holds for one session. Sessions for which it is equal share its buckets."""

    policy: str
    limit: str
    #: What they have in common, in the order of ``per``.
    key: tuple[str, ...]
    #: Per second; None: not limited.
    messages: float | None
    octets: float | None
    #: Seconds.
    burst: float


def shared_limit(policy: RatePolicy, limit: Limit, principal: Principal, connection: str) -> SharedLimit:
    """The limit for the session ``connection`` of ``principal``. Users who are not known share a bucket."""
    values: dict[Per, str | None] = {
        "user": principal.user,
        "vhost": principal.vhost,
        "listener": principal.listener,
        "sourceIP": principal.source,
        "connection": connection,
    }
    return SharedLimit(
        policy.metadata.name,
        limit.id,
        tuple(values[name] or "" for name in limit.per),
        None if limit.messages is None else limit.messages.per_second,
        None if limit.bytes is None else limit.bytes.per_second,
        float(limit.burst),
    )
