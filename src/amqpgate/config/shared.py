"""Where several gateways count together."""

from __future__ import annotations

from typing import ClassVar, Literal, Self
from urllib.parse import urlsplit

import attrs

from amqpgate.config.address import is_ipv6, is_name
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Seconds, Secret, TextValue, between, doc, not_empty


@frozen
class RedisUrl(TextValue):
    """``redis[s]://host[:port][/database]``. Secrets have a key of their own."""

    text: str
    host: str
    port: int
    database: int
    is_tls: bool

    FORM: ClassVar[str] = "URL"
    PATTERN: ClassVar[str | None] = r"^rediss?://[^@]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError, which does not repeat it."""
        form = "expected redis://host, redis://host:port/0, or rediss:// for TLS"
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ValueError(form) from None
        if parts.username is not None or parts.password is not None:
            raise ValueError("user and password have keys of their own, beside the URL")
        host, database = parts.hostname or "", parts.path.removeprefix("/") or "0"
        if parts.scheme not in ("redis", "rediss") or not (is_name(host) or is_ipv6(host)):
            raise ValueError(form)
        if not database.isascii() or not database.isdigit() or parts.query or parts.fragment:
            raise ValueError(form)
        return cls(text, host, 6379 if port is None else port, int(database), parts.scheme == "rediss")

    def __str__(self) -> str:
        return self.text


@frozen(kw_only=True)
class SharedLimits:
    """A Redis through which all processes count the limits of rate policies that say `shared`."""

    redis: RedisUrl = attrs.field(metadata=doc("`redis[s]://host[:port][/database]`, version 5 or later"))
    replicas: int = attrs.field(
        validator=between(1, 10_000),
        metadata=doc("processes that count together: gateways times `workers`"),
    )
    user: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("user name", default="Redis' default user"),
    )
    password: Secret | None = attrs.field(default=None, metadata=doc("password; best as `${NAME}`"))
    ca: FilePath | None = attrs.field(
        default=None,
        metadata=doc(
            "authorities that may sign Redis' certificate, PEM; with `rediss://`", default="the system's"
        ),
    )
    when_away: Literal["local", "closed"] = attrs.field(
        default="local",
        metadata=doc(
            "while Redis does not answer: `local`, each process takes the limit divided by `replicas`; "
            "`closed`, nothing that is limited passes"
        ),
    )
    timeout: Seconds = attrs.field(
        default=Seconds(0.5), validator=between(0.01, 10), metadata=doc("time for an answer of Redis")
    )
    prefix: str = attrs.field(default="amqpgate:", metadata=doc("how the names of keys in Redis begin"))

    def __attrs_post_init__(self) -> None:
        if self.user is not None and self.password is None:
            raise Invalid("a user needs a password", "user")
        if self.ca is not None and not self.redis.is_tls:
            raise Invalid("is for rediss:// only", "ca")
