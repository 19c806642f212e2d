"""The brokers behind the gateway, and what both hops have in common."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, TypeAlias

import attrs

from amqpgate.config.address import PORTS, Address, AmqpUrl, Login, is_ipv6, is_name
from amqpgate.config.clusters import (
    UNSHARED,
    AmqpVersion,
    Endpoint,
    HealthCheck,
    Order,
    Outliers,
    Redirects,
    Retries,
)
from amqpgate.config.pooling import Connections, Pooling
from amqpgate.errors import ConfigError
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Seconds, Secret, Size, WholeSeconds, between, doc, not_empty

#: Those of the gateway's own logins (`amqpgate.protocol.login`).
Mechanism: TypeAlias = Literal["EXTERNAL", "SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "AMQPLAIN"]

#: RabbitMQ's own default, and what a hop gets where neither the configuration nor the broker names more.
USUAL_FRAME_MAX = Size(131072)
#: A client sees the broker's own numbers unless the configuration names others.
THE_BROKERS = "what the broker proposes"
#: The least that a peer must accept is 4096 (AMQP 0-9-1, section 4.2.3); above 16 MiB is no frame but a file.
FRAME_MAX_SPAN = between(4096, 1 << 24)


def read_secret(path: FilePath) -> str:
    """The text of a secret file without the newline at its end; `ConfigError` if it cannot be read."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}", file=str(path)
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


@frozen(kw_only=True)
class UpstreamTls:
    """TLS towards the broker."""

    ca: FilePath | None = attrs.field(
        default=None,
        metadata=doc("authorities that may sign the broker's certificate, PEM", default="the system's"),
    )
    cert: FilePath | None = attrs.field(default=None, metadata=doc("certificate to show to the broker, PEM"))
    key: FilePath | None = attrs.field(default=None, metadata=doc("private key of that certificate, PEM"))
    server_name: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("name to ask for (SNI) and to find in the broker's certificate", default="the host"),
    )
    verify: bool = attrs.field(
        default=True, metadata=doc("check the broker's certificate; `false` trusts whoever answers")
    )

    def __attrs_post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise Invalid("cert and key go together", "cert" if self.key is None else "key")


@frozen(kw_only=True)
class Upstream:
    """A broker or a cluster. Given by `url`, by keys of its own, or by a URL and keys for what it lacks."""

    name: str = attrs.field(validator=not_empty(), metadata=doc("name in listeners, logs and metrics"))
    url: AmqpUrl | None = attrs.field(
        default=None,
        metadata=doc(
            "`amqp[s]://[user[:password]@]host[:port][/vhost]`, percent-encoded; "
            "`amqp://host` and `amqp://host/` keep the client's virtual host, `/%2f` is the one named `/`"
        ),
    )
    tls: UpstreamTls | None = attrs.field(
        metadata=doc("TLS towards the broker", default="on for `amqps://`"),
    )
    endpoints: tuple[Endpoint, ...] = attrs.field(
        default=(),
        metadata=doc("several brokers of one cluster, in the place of `url` and `host`", default="one"),
    )
    order: Order = attrs.field(
        default="listed",
        metadata=doc("endpoint to try first: the first that is up, or `weighted`, by a hash of the session"),
    )
    host: str = attrs.field(
        metadata=doc("name or address", default="the URL's"),
    )
    port: int = attrs.field(
        validator=between(1, 65535),
        metadata=doc("TCP port", default="the URL's, or `5672` (`5671` with TLS)"),
    )
    vhost: str | None = attrs.field(
        metadata=doc("virtual host for every client", default="the client's own"),
    )
    user: str | None = attrs.field(
        validator=attrs.validators.optional(not_empty()),
        metadata=doc(
            "log in as this user whatever the client's own login is; such an upstream needs listeners that "
            "are loopback-only, require client certificates, or `allowAnonymous`",
            default="the client's own",
        ),
    )
    password: Secret | None = attrs.field(
        metadata=doc("password of `user`; best as `${NAME}`"),
    )
    password_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc("file that holds the password, read at every login; one newline at its end is cut"),
    )
    mechanisms: tuple[Mechanism, ...] = attrs.field(
        default=("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "AMQPLAIN"),
        validator=not_empty(),
        metadata=doc(
            "mechanisms that `user` may log in with: the strongest that the broker offers is used. PLAIN and "
            "AMQPLAIN show it the password. `EXTERNAL` logs in as whom `tls.cert` names; alone, it needs no "
            "password"
        ),
    )
    connect_timeout: Seconds = attrs.field(
        default=Seconds(5.0), validator=between(0.001, 3600), metadata=doc("time to connect, TLS included")
    )
    handshake_timeout: Seconds | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(0.001, 3600)),
        metadata=doc(
            "time for the broker's connection.start; where a route is chosen by what the client says, for "
            "each of its answers until the connection is open",
            default="as `connectTimeout`",
        ),
    )
    version: AmqpVersion = attrs.field(
        default="auto",
        metadata=doc(
            "version of AMQP to speak with the broker, whatever clients speak; `auto`: 0-9-1, or what the "
            "broker answers to that"
        ),
    )
    redirects: Redirects = attrs.field(
        default="cluster",
        metadata=doc(
            "follow a broker's connection.redirect (AMQP 0-8, 0-9, 0-10): to the cluster's own endpoints; "
            "`any`: wherever it points, which lets the broker choose whom the gateway connects to; or `never`"
        ),
    )
    connections: Connections = attrs.field(
        default="own",
        metadata=doc(
            "`own`: each client has a connection to the broker of its own; `pooled`: clients with the same "
            "virtual host and login share a few, which is not for brokers of AMQP 0-10"
        ),
    )
    pool: Pooling = attrs.field(
        factory=Pooling,
        metadata=doc("how they share them: each virtual host and login has a pool, in each process"),
    )
    health: HealthCheck | None = attrs.field(
        default=None, metadata=doc("checks of the endpoints; `{}` for the defaults", default="off")
    )
    outliers: Outliers = attrs.field(factory=Outliers, metadata=doc("when endpoints are left out"))
    retries: Retries = attrs.field(factory=Retries, metadata=doc("when another endpoint is tried"))
    frame_max: Size | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(FRAME_MAX_SPAN),
        metadata=doc(
            "largest frame agreed to with the broker, in bytes",
            default="what the client agreed to, but at least `8192` and at most `131072`",
        ),
    )
    channel_max: int | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(1, 65535)),
        metadata=doc("most channels per connection agreed to", default="what the client agreed to"),
    )
    heartbeat: WholeSeconds | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(0, 65535)),
        metadata=doc("heartbeat agreed to with the broker; 0 for none", default=THE_BROKERS),
    )

    # What the URL says is the default of what the keys say. The order counts: port looks at tls.

    @tls.default
    def _tls_default(self) -> UpstreamTls | None:
        return UpstreamTls() if self.url and self.url.scheme == "amqps" else None

    @host.default
    def _host_default(self) -> str:
        if self.endpoints:
            return self.endpoints[0].address.host
        return self.url.host if self.url else ""

    @port.default
    def _port_default(self) -> int:
        if self.endpoints:
            return self.endpoints[0].address.port
        return self.url.port if self.url else PORTS["amqp" if self.tls is None else "amqps"]

    @vhost.default
    def _vhost_default(self) -> str | None:
        return self.url.vhost if self.url else None

    @user.default
    def _user_default(self) -> str | None:
        return self.url.user if self.url else None

    @password.default
    def _password_default(self) -> Secret | None:
        return self.url.password if self.url else None

    def __attrs_post_init__(self) -> None:
        if not self.host:
            raise Invalid("an upstream needs url or host, or endpoints", "host")
        self._check_endpoints()
        if not is_name(self.host) and not is_ipv6(self.host):
            raise Invalid("the host is neither a name nor an address", "host")
        if self.url is not None:
            self._check_against(self.url)
        if self.password is not None and self.password_file is not None:
            raise Invalid("password and passwordFile exclude each other", "password_file")
        has_password = self.password is not None or self.password_file is not None
        if "EXTERNAL" in self.mechanisms and (self.tls is None or self.tls.cert is None):
            raise Invalid("EXTERNAL needs a certificate to show: tls.cert and tls.key", "mechanisms")
        if self.user is not None and not has_password and self.mechanisms != ("EXTERNAL",):
            raise Invalid("a user needs password or passwordFile", "user")
        if self.user is None and has_password:
            raise Invalid("a password needs a user", "password" if self.password else "password_file")
        if self.connections == "pooled" and self.version in UNSHARED:
            raise Invalid(
                f"clients cannot share connections of AMQP {self.version}: leave out 'connections: pooled'",
                "connections",
            )

    def _check_endpoints(self) -> None:
        if not self.endpoints:
            return
        if self.url is not None:
            raise Invalid("endpoints say where the brokers are: write vhost, user and tls as keys", "url")
        if self.address != self.endpoints[0].address:
            raise Invalid("endpoints say where the brokers are; leave out host and port", "host")
        addresses = [endpoint.address for endpoint in self.endpoints]
        for index, address in enumerate(addresses):
            if address in addresses[:index]:
                raise Invalid(f"{address} is listed already", "endpoints", index, "address")

    def _check_against(self, url: AmqpUrl) -> None:
        """What the URL says must not be said again, differently."""
        if url.scheme == "amqp" and self.tls is not None:
            raise Invalid("the url says amqp://, which is without TLS: write amqps://", "tls")
        if url.scheme == "amqps" and self.tls is None:
            raise Invalid("the url says amqps://, which needs TLS: write amqp:// to do without", "tls")
        said = {
            "host": url.host,
            "port": url.port,
            "vhost": url.vhost,
            "user": url.user,
            "password": url.password,
        }
        for name, value in said.items():
            if value is not None and getattr(self, name) != value:
                raise Invalid(f"{name} is in the url already", name)

    @property
    def address(self) -> Address:
        """Where the broker listens; the first of several."""
        return Address(self.host, self.port)

    @property
    def places(self) -> tuple[Endpoint, ...]:
        """All brokers of the cluster."""
        return self.endpoints or (Endpoint(address=self.address),)

    @cached_property
    def has_login(self) -> bool:
        """Whether the gateway logs in as itself, in the place of its clients."""
        return self.user is not None

    @cached_property
    def answer_timeout(self) -> float:
        """Seconds that a broker may take for an answer while a connection is set up."""
        return self.handshake_timeout or self.connect_timeout

    def login(self) -> Login | None:
        """The gateway's own login, or None to pass the client's through.

        Reads ``passwordFile`` each time, so that a new password needs no restart; `ConfigError` if it
        cannot be read.
        """
        if self.user is None:
            return None
        if self.password_file is None:
            # There is none where the certificate is what is shown.
            return Login(self.user, self.password or Secret(""))
        return Login(self.user, Secret(read_secret(self.password_file)))

    @property
    def shown(self) -> str:
        """For logs: the broker's URL without secrets."""
        password = None if self.user is None else Secret("")
        vhost, user, address = self.vhost, self.user, self.address
        return str(
            AmqpUrl(
                "amqp" if self.tls is None else "amqps", address.host, address.port, vhost, user, password
            )
        )
