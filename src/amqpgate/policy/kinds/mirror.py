"""Mirrors: a share of what is published, sent to another cluster as well."""

from __future__ import annotations

from typing import ClassVar, Protocol

import attrs

from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Percent, Size, between, doc, not_empty

SECRET = "would be a secret in a policy; name passwordFile or passwordEnv"  # noqa: S105 - says so itself


class MirrorLogin(Protocol):
    """Where a document names a user and says where the password is."""

    @property
    def user(self) -> str | None: ...
    @property
    def password_file(self) -> FilePath | None: ...
    @property
    def password_env(self) -> str | None: ...


def check_login(login: MirrorLogin) -> None:
    """Both or neither, and the password from one place."""
    if login.password_file is not None and login.password_env is not None:
        raise Invalid("passwordFile and passwordEnv exclude each other", "password_env")
    has_password = login.password_file is not None or login.password_env is not None
    if login.user is not None and not has_password:
        raise Invalid("a user needs passwordFile or passwordEnv", "user")
    if login.user is None and has_password:
        raise Invalid("a password needs a user", "password_file" if login.password_file else "password_env")


@frozen(kw_only=True)
class Mirror:
    """Where a copy of some messages goes. What becomes of it there concerns nobody here."""

    cluster: str = attrs.field(validator=not_empty(), metadata=doc("name of an upstream in the settings"))
    percent: Percent = attrs.field(
        default=Percent(100.0),
        validator=between(0, 100),
        metadata=doc("of the messages published, so many in a hundred; 0 is none"),
    )
    exchanges: tuple[NamePattern, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("only what is published to these, by the client's names", default="any"),
    )
    vhost: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc(
            "virtual host to open there", default="the upstream's, or the one that the session is in"
        ),
    )
    user: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("user to log in as there", default="the upstream's; it must have one"),
    )
    password_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file that holds the password of `user`, read at every login")
    )
    password_env: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("environment variable that holds the password of `user`"),
    )
    buffer: Size = attrs.field(
        default=Size(8 << 20),
        validator=between(64 << 10, 1 << 30),
        metadata=doc(
            "bytes that wait for it in each worker and virtual host; beyond that copies are dropped"
        ),
    )
    max_body_bytes: Size = attrs.field(
        default=Size(1 << 20),
        validator=between(0, 64 << 20),
        metadata=doc("messages with larger bodies are not copied"),
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = {"password": SECRET}

    def __attrs_post_init__(self) -> None:
        check_login(self)
        if self.max_body_bytes > self.buffer:
            raise Invalid("what is larger than the buffer is never copied", "max_body_bytes")

    def wants(self, exchange: str) -> bool:
        """Whether what is published to an exchange is copied; some of it."""
        if not self.percent:
            return False
        return self.exchanges is None or any(pattern.matches(exchange) for pattern in self.exchanges)

    @property
    def shown(self) -> str:
        """For people: where it goes, and how much."""
        where = self.cluster if self.vhost is None else f"{self.cluster} (vhost {self.vhost})"
        names = [str(pattern) or "the default exchange" for pattern in self.exchanges or ()]
        what = f" of {', '.join(names)}" if names else ""
        return f"{self.percent:g} %{what} to {where}"
