"""The file that describes a move, as frozen types."""

from __future__ import annotations

import re
from typing import ClassVar, Literal, Self, TypeAlias

import attrs

from amqpgate.config.address import AmqpUrl, parse_host, parse_port
from amqpgate.yamldoc import FilePath, FolderPath, Invalid, Seconds, TextValue, between, doc, not_empty

#: What becomes of messages that nobody consumes.
Leftovers: TypeAlias = Literal["refuse", "move", "leave"]

_URL = re.compile(r"(https?)://([^/?#@]+?)/?\Z")
_PORTS = {"http": 15672, "https": 15671}


@attrs.frozen
class ManagementUrl(TextValue):
    """Where a broker's management interface is."""

    scheme: str
    host: str
    port: int

    FORM: ClassVar[str] = "http[s]://host[:port]"

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _URL.match(text)
        if match is None:
            raise ValueError("expected http://host:port or https://host:port, without a user or a path")
        host, colon, port = match[2].rpartition(":")
        if not colon or match[2].endswith("]"):
            return cls(match[1], parse_host(match[2]), _PORTS[match[1]])
        return cls(match[1], parse_host(host), parse_port(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@attrs.frozen(kw_only=True)
class MoveEnd:
    """A broker, or a cluster of brokers, from or to which clients move."""

    upstream: str = attrs.field(
        validator=not_empty(), metadata=doc("name of the upstream in the gateways' settings")
    )
    management: ManagementUrl = attrs.field(metadata=doc("its management interface"))
    amqp: AmqpUrl = attrs.field(metadata=doc("one of its nodes, past the gateway"))
    user: str = attrs.field(
        validator=not_empty(), metadata=doc("an administrator with all permissions in the virtual hosts")
    )
    password_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file that holds the user's password")
    )
    password_env: str | None = attrs.field(
        default=None, metadata=doc("environment variable that holds the user's password")
    )

    def __attrs_post_init__(self) -> None:
        if (self.password_file is None) == (self.password_env is None):
            raise Invalid("say passwordFile or passwordEnv", "user")
        if self.amqp.user is not None or self.amqp.vhost is not None:
            raise Invalid("no user and no virtual host here: amqp://host:port", "amqp")


@attrs.frozen(kw_only=True)
class MoveGateway:
    """A gateway that takes part."""

    admin: str = attrs.field(
        validator=not_empty(), metadata=doc("its admin interface, host:port or https://host:port")
    )
    token_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file with its bearer token; to pause a route takes one")
    )


@attrs.frozen(kw_only=True)
class MoveDocument:
    """Who moves, from where to where."""

    source: MoveEnd = attrs.field(metadata=doc("where the clients are", key="from"))
    target: MoveEnd = attrs.field(metadata=doc("where they are to go", key="to"))
    routes: tuple[str, ...] = attrs.field(
        validator=not_empty(), metadata=doc("ids of the routes whose clients move")
    )
    vhosts: tuple[str, ...] = attrs.field(
        validator=not_empty(), metadata=doc("virtual hosts of the brokers that these routes lead to")
    )
    gateways: tuple[MoveGateway, ...] = attrs.field(
        validator=not_empty(), metadata=doc("all gateways that have these routes")
    )
    policies: FolderPath | None = attrs.field(
        default=None,
        metadata=doc("the gateways' policies: those of compatibility say how queues are copied"),
    )
    switch: Literal["edit", "wait"] = attrs.field(
        default="edit",
        metadata=doc(
            "`edit`: the routes are changed in the files of `policies`; `wait`: somebody else changes them"
        ),
    )
    leftovers: Leftovers = attrs.field(
        default="refuse",
        metadata=doc(
            "messages that nobody consumes: `refuse` to begin, `move` them by publishing them anew, or "
            "`leave` them behind"
        ),
    )
    drain_for: Seconds = attrs.field(
        default=Seconds(30.0),
        validator=between(0, 86400),
        metadata=doc(
            "with `leftovers: move`, how long queues are waited for that do not get empty, because those who "
            "consume publish as well",
            default="30s",
        ),
    )
    allow: tuple[str, ...] = attrs.field(
        default=(), metadata=doc("names of refusals that are accepted", default="none")
    )

    def __attrs_post_init__(self) -> None:
        if self.source.upstream == self.target.upstream:
            raise Invalid("is where they come from", "target")

    @property
    def edits(self) -> bool:
        """Whether the command changes the routes itself."""
        return self.switch == "edit" and self.policies is not None
