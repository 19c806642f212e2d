"""The types of the configuration file.

One attribute, one key, one sentence: ``docs/configuration.md`` and ``spec/schema/config.json`` are made from
them. Values that cannot go together are refused here, at the place where they stand.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, TypeAlias

import attrs

from amqpgate.config.address import Address
from amqpgate.config.audit import Audit
from amqpgate.config.identity import Identity, OAuth
from amqpgate.config.metrics import MetricLabels
from amqpgate.config.otlp import Otlp
from amqpgate.config.shared import SharedLimits
from amqpgate.config.tracing import Tracing
from amqpgate.config.upstream import FRAME_MAX_SPAN, THE_BROKERS, USUAL_FRAME_MAX, Upstream, read_secret
from amqpgate.errors import ConfigError
from amqpgate.values import frozen
from amqpgate.yamldoc import (
    FilePath,
    FolderPath,
    Invalid,
    Seconds,
    Secret,
    Size,
    WholeSeconds,
    between,
    doc,
    nearest,
    not_empty,
)

ProxyProtocol: TypeAlias = Literal["none", "v1", "v2", "any"]
TlsVersion: TypeAlias = Literal["TLSv1.2", "TLSv1.3"]
ChannelFlow: TypeAlias = Literal["broker", "gateway"]
LogFormat: TypeAlias = Literal["console", "json"]
DefaultAccess: TypeAlias = Literal["allow", "deny"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


@frozen(kw_only=True)
class NamedCertificate:
    """A certificate for clients that ask for one of its names (SNI, RFC 6066, section 3)."""

    server_names: tuple[str, ...] = attrs.field(
        validator=not_empty(), metadata=doc("names that clients ask for; `*.example.org` is one label more")
    )
    cert: FilePath = attrs.field(metadata=doc("certificate chain, PEM"))
    key: FilePath = attrs.field(metadata=doc("private key of the certificate, PEM"))

    def __attrs_post_init__(self) -> None:
        for index, name in enumerate(self.server_names):
            if not name.removeprefix("*.") or "*" in name.removeprefix("*."):
                raise Invalid("a host name, or *. and a host name", "server_names", index)


@frozen(kw_only=True)
class ListenerTls:
    """TLS towards clients; the files are read again when they change."""

    cert: FilePath = attrs.field(metadata=doc("certificate chain, PEM"))
    key: FilePath = attrs.field(metadata=doc("private key of the certificate, PEM"))
    client_ca: FilePath | None = attrs.field(
        default=None,
        metadata=doc("authorities that sign client certificates, PEM; without it none is asked for"),
    )
    require_client_cert: bool = attrs.field(
        metadata=doc("refuse clients that show no certificate", default="`true` if `clientCa` is given")
    )
    min_version: TlsVersion = attrs.field(default="TLSv1.2", metadata=doc("oldest TLS version spoken"))
    certificates: tuple[NamedCertificate, ...] = attrs.field(
        default=(),
        metadata=doc(
            "further certificates, chosen by the name that the client asks for (SNI); others get `cert`",
            default="none",
        ),
    )

    @require_client_cert.default
    def _require_client_cert(self) -> bool:
        return self.client_ca is not None

    def __attrs_post_init__(self) -> None:
        if self.require_client_cert and self.client_ca is None:
            raise Invalid("requireClientCert needs clientCa to check them against", "require_client_cert")
        taken: set[str] = set()
        for index, certificate in enumerate(self.certificates):
            for position, name in enumerate(certificate.server_names):
                if name.lower() in taken:
                    raise Invalid(
                        f"'{name}' has a certificate already", "certificates", index, "server_names", position
                    )
                taken.add(name.lower())


@frozen(kw_only=True)
class Listener:
    """One address where clients connect."""

    name: str = attrs.field(validator=not_empty(), metadata=doc("name in logs, metrics and policies"))
    bind: Address = attrs.field(metadata=doc("address and port; port 0 takes a free one"))
    upstream: str | None = attrs.field(
        default=None, metadata=doc("name of the upstream", default="the only upstream there is")
    )
    tls: ListenerTls | None = attrs.field(default=None, metadata=doc("TLS towards clients (amqps)"))
    proxy_protocol: ProxyProtocol = attrs.field(
        default="none",
        metadata=doc(
            "PROXY protocol header that every connection must start with; `any` is v1 or v2. "
            "Whoever can reach such a listener can claim any client address"
        ),
    )
    allow_anonymous: bool = attrs.field(
        default=False,
        metadata=doc(
            "let clients that prove nothing use an upstream that has a login of its own, "
            "although they come from other machines"
        ),
    )
    frame_max: Size | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(FRAME_MAX_SPAN),
        metadata=doc("largest frame offered to clients, in bytes", default=THE_BROKERS),
    )
    channel_max: int | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(1, 65535)),
        metadata=doc("most channels per connection offered to clients", default=THE_BROKERS),
    )
    heartbeat: WholeSeconds | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(between(0, 65535)),
        metadata=doc("heartbeat offered to clients; 0 for none", default=THE_BROKERS),
    )
    channel_flow: ChannelFlow = attrs.field(
        default="broker",
        metadata=doc(
            "`channel.flow` off of clients of AMQP 0-9-1: `broker` passes it on, and RabbitMQ closes the "
            "connection with 540; `gateway` keeps deliveries, as it does for Qpid's clients and those of 0-8 "
            "and 0-9"
        ),
    )

    oauth: OAuth | None = attrs.field(
        default=None,
        metadata=doc("tokens that are verified here, in the place of `identity.oauth`", default="those"),
    )

    @property
    def keeps_deliveries(self) -> bool:
        """Whether channel.flow off is done here, whatever version a client speaks."""
        return self.channel_flow == "gateway"

    @property
    def proves_clients(self) -> bool:
        """Whether a client is known to be local, or has shown a certificate, before it logs in.

        A PROXY header on a loopback address means that connections come from elsewhere.
        """
        if self.tls is not None and self.tls.require_client_cert:
            return True
        return self.bind.is_loopback and self.proxy_protocol == "none"


@frozen(kw_only=True)
class AdminTls:
    """TLS of the admin interface; the files are read again when they change."""

    cert: FilePath = attrs.field(metadata=doc("certificate chain, PEM"))
    key: FilePath = attrs.field(metadata=doc("private key of the certificate, PEM"))


@frozen(kw_only=True)
class Admin:
    """Health, metrics and live state over HTTP."""

    bind: Address = attrs.field(default=Address("127.0.0.1", 15680), metadata=doc("address and port"))
    token_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc("file with the bearer token that requests must carry; needed unless `bind` is loopback"),
    )
    tls: AdminTls | None = attrs.field(
        default=None,
        metadata=doc("serve HTTPS; needed unless `bind` is loopback, or `allowPlaintext`", default="off"),
    )
    allow_plaintext: bool = attrs.field(
        default=False,
        metadata=doc("without `tls`, let other machines send the token in the clear: on trusted networks"),
    )
    probes: Address | None = attrs.field(
        default=None,
        metadata=doc(
            "another address, with `/livez`, `/readyz`, `/startupz` and `/metrics` only, no token needed: "
            "for kubelets and Prometheus",
            default="off",
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.probes is not None and self.probes == self.bind and self.bind.port:
            raise Invalid("bind is that address already", "probes")
        if self.token_file is None and not self.bind.is_loopback:
            raise Invalid("an admin address that other machines can reach needs tokenFile", "bind")
        if self.tls is None and not self.bind.is_loopback and not self.allow_plaintext:
            raise Invalid(
                "the token would cross the network in the clear: give tls (cert and key), or say "
                "allowPlaintext: true where the network is trusted",
                "bind",
            )
        if self.token_file is not None and not read_secret(self.token_file):
            raise Invalid("the token file is empty", "token_file")

    def token(self) -> Secret | None:
        """The bearer token, read from its file now; `ConfigError` if it cannot be read or is empty."""
        if self.token_file is None:
            return None
        text = read_secret(self.token_file)
        if not text:
            raise ConfigError("the token file is empty", file=str(self.token_file))
        return Secret(text)


@frozen(kw_only=True)
class Limits:
    """What the gateway may hold, and how long it waits."""

    max_connections: int = attrs.field(
        default=10_000,
        validator=between(1),
        metadata=doc("client connections at once; more are closed at accept"),
    )
    max_handshakes: int = attrs.field(
        default=500,
        validator=between(1),
        metadata=doc(
            "connections at once that are not logged in yet; a new one takes the place of the one that has "
            "been silent for longest"
        ),
    )
    handshakes_per_address: int = attrs.field(
        default=250,
        validator=between(1),
        metadata=doc("of these, from one source address (IPv6: from one /64), likewise"),
    )
    handshake_timeout: Seconds = attrs.field(
        default=Seconds(10.0),
        validator=between(0.001, 3600),
        metadata=doc("time from accept to connection.open"),
    )
    handshake_frame_max: Size = attrs.field(
        default=Size(4096), validator=FRAME_MAX_SPAN, metadata=doc("largest frame before tune-ok")
    )
    buffer_high: Size = attrs.field(
        default=Size(256 << 10),
        validator=between(8192, 1 << 30),
        metadata=doc("bytes waiting for a slow reader, per direction, above which its sender is not read"),
    )
    buffer_low: Size = attrs.field(
        default=Size(64 << 10), validator=between(0, 1 << 30), metadata=doc("bytes at which it is read again")
    )
    max_message_bytes: Size = attrs.field(
        default=Size(128 << 20),
        validator=between(1, 1 << 40),
        metadata=doc(
            "largest body of a message that a client may publish; beyond it the channel closes with 406, as "
            "RabbitMQ does at its `max_message_size`"
        ),
    )
    close_timeout: Seconds = attrs.field(
        default=Seconds(5.0), validator=between(0.001, 3600), metadata=doc("time for close-ok after a close")
    )
    drain_timeout: Seconds = attrs.field(
        default=Seconds(25.0),
        validator=between(0, 86400),
        metadata=doc(
            "the whole of a drain: sessions are closed in slices over it; `closeTimeout` of it is for closing"
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.buffer_low >= self.buffer_high:
            raise Invalid("bufferLow must be less than bufferHigh", "buffer_low")


@frozen(kw_only=True)
class Log:
    """What is written to standard error."""

    format: LogFormat = attrs.field(
        default="console", metadata=doc("for people, or one JSON object per line")
    )
    level: LogLevel = attrs.field(default="info", metadata=doc("least important message written"))


@frozen(kw_only=True)
class Settings:
    """The configuration of one gateway."""

    listeners: tuple[Listener, ...] = attrs.field(
        validator=not_empty(), metadata=doc("where clients connect")
    )
    upstreams: tuple[Upstream, ...] = attrs.field(validator=not_empty(), metadata=doc("the brokers behind"))
    policies: FolderPath | None = attrs.field(
        default=None, metadata=doc("folder of policy documents; without it everything is allowed")
    )
    default_access: DefaultAccess = attrs.field(
        default="allow",
        metadata=doc(
            "what users may do whom no access policy selects: everything (`allow`), or nothing, so that they "
            "cannot even open a connection (`deny`)"
        ),
    )
    watch_policies: bool = attrs.field(
        default=True, metadata=doc("read the policies again when their files have changed")
    )
    admin: Admin | None = attrs.field(
        default=None,
        metadata=doc("health, metrics and live state over HTTP; `{}` for the defaults", default="off"),
    )
    workers: int = attrs.field(
        default=1,
        validator=between(1, 256),
        metadata=doc("processes that share the listeners; the kernel spreads new connections over them"),
    )
    limits: Limits = attrs.field(factory=Limits, metadata=doc("what is held, and for how long"))
    shared_limits: SharedLimits | None = attrs.field(
        default=None,
        metadata=doc("where limits of rate policies that say `shared` are counted", default="nowhere"),
    )
    audit: Audit | None = attrs.field(
        default=None, metadata=doc("records of what passed and what happened", default="off")
    )
    tracing: Tracing | None = attrs.field(
        default=None, metadata=doc("where the spans of trace policies go", default="nowhere: there are none")
    )
    otlp: Otlp | None = attrs.field(
        default=None,
        metadata=doc("where metrics and log lines go by OpenTelemetry's protocol as well", default="nowhere"),
    )
    metrics: MetricLabels | None = attrs.field(
        default=None,
        metadata=doc("metrics by virtual host, listener and user, beside the others", default="off"),
    )
    identity: Identity = attrs.field(factory=Identity, metadata=doc("who clients are"))
    log: Log = attrs.field(factory=Log, metadata=doc("what is written to standard error"))

    def __attrs_post_init__(self) -> None:
        if self.default_access == "deny" and self.policies is None:
            raise Invalid("nobody may do anything without policies: name their folder", "default_access")
        names = [upstream.name for upstream in self.upstreams]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise Invalid(f"two upstreams are named '{name}'", "upstreams", index, "name")
        errors: list[Invalid] = []
        for index, listener in enumerate(self.listeners):
            try:
                self._check_listener(index, listener, names)
            except Invalid as error:
                errors.append(error)
        if errors:
            raise Invalid.together(errors)

    def _check_listener(self, index: int, listener: Listener, upstreams: list[str]) -> None:
        for other in self.listeners[:index]:
            if listener.name == other.name:
                raise Invalid(f"two listeners are named '{listener.name}'", "listeners", index, "name")
            if listener.bind == other.bind and listener.bind.port:
                raise Invalid(f"listener '{other.name}' has this address already", "listeners", index, "bind")
        admin = self.admin
        if admin is not None and listener.bind.port and listener.bind in (admin.bind, admin.probes):
            raise Invalid("the admin interface has this address already", "listeners", index, "bind")
        if listener.upstream is None:
            if len(upstreams) > 1:
                raise Invalid("which upstream? There are several", "listeners", index)
        elif listener.upstream not in upstreams:
            hint = f"{nearest(listener.upstream, upstreams)}; there are {', '.join(upstreams)}"
            raise Invalid(f"no upstream is named '{listener.upstream}'{hint}", "listeners", index, "upstream")
        upstream = self.upstream_of(listener)
        if upstream.has_login and not self.proves_clients(listener) and not listener.allow_anonymous:
            raise Invalid(
                f"upstream '{upstream.name}' logs in with its own user, so everyone who reaches this "
                "listener has that user's rights: bind to 127.0.0.1 without PROXY protocol, require client "
                "certificates (tls.requireClientCert) or tokens (identity.oauth), or say allowAnonymous: "
                "true",
                "listeners",
                index,
                "bind",
            )

    def oauth_of(self, listener: Listener) -> OAuth | None:
        """The tokens that are verified at ``listener``; None: passwords are the broker's matter alone."""
        return listener.oauth or self.identity.oauth

    def proves_clients(self, listener: Listener) -> bool:
        """Whether a client is known to be local, or has shown a certificate or a token, before a broker hears
        of it."""
        oauth = self.oauth_of(listener)
        return listener.proves_clients or (oauth is not None and oauth.require)

    @cached_property
    def largest_frame(self) -> int:
        """The most that any hop may agree on for one frame, in bytes."""
        hops = [listener.frame_max for listener in self.listeners]
        hops += [upstream.frame_max for upstream in self.upstreams]
        return max(USUAL_FRAME_MAX, *(size or 0 for size in hops))

    def upstream_of(self, listener: Listener) -> Upstream:
        """The upstream that ``listener`` leads to."""
        if listener.upstream is None:
            return self.upstreams[0]
        return next(upstream for upstream in self.upstreams if upstream.name == listener.upstream)
