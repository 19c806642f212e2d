"""Who gets audit records as they are written, as events of OCSF: a collector, OpenSearch, a broker."""

from __future__ import annotations

import re
from typing import ClassVar, Final, Literal, TypeAlias

import attrs

from amqpgate.config.address import AmqpUrl, Login
from amqpgate.config.tracing import HttpUrl, ToCollector
from amqpgate.config.upstream import read_secret
from amqpgate.errors import ConfigError
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Seconds, Secret, between, doc, not_empty

WhenFull: TypeAlias = Literal["wait", "drop"]

_WHEN_FULL: Final = doc(
    "when more than `audit.maxQueue` wait for it: `wait`, who causes an event waits, new connections first, "
    "and `/readyz` fails; `drop`, what comes then is dropped and counted"
)
_CA: Final = doc("authorities that may sign its certificate, PEM; with TLS", default="the system's")
_TIMEOUT: Final = doc("time for an answer, from the first byte that is sent to the last that comes")
#: Names of indices and data streams that OpenSearch and Elasticsearch take.
_INDEX: Final = re.compile(r"(?!\.\.?\Z)[a-z0-9.][a-z0-9._-]{0,254}")
#: What may stand in a header (RFC 9110, section 5.5), where it is a token.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+( [\x21-\x7e]+)?")


@frozen(kw_only=True)
class AuditOtlp(ToCollector):
    """A collector that takes log records by OTLP over HTTP: each audit record is one."""

    NAME: ClassVar[str] = "otlp"

    url: HttpUrl = attrs.field(
        metadata=doc("where log records are taken, such as `https://collector:4318/v1/logs`")
    )
    headers_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc("file with HTTP headers for it, one `name: value` a line; logins belong there"),
    )
    ca: FilePath | None = attrs.field(default=None, metadata=_CA)
    timeout: Seconds = attrs.field(default=Seconds(10), validator=between(0.1, 300), metadata=_TIMEOUT)
    service_name: str = attrs.field(
        default="amqpgate", validator=not_empty(), metadata=doc("`service.name` of the gateway there")
    )
    when_full: WhenFull = attrs.field(default="wait", metadata=_WHEN_FULL)

    def __attrs_post_init__(self) -> None:
        self.check(self.url)

    @property
    def shown(self) -> str:
        """For people."""
        return str(self.url)


@frozen(kw_only=True)
class AuditOpenSearch:
    """OpenSearch or Elasticsearch, by its `_bulk` interface: each record is a document with its id."""

    NAME: ClassVar[str] = "openSearch"

    url: HttpUrl = attrs.field(metadata=doc("its address, such as `https://search:9200`"))
    index: str = attrs.field(
        default="amqpgate-audit", metadata=doc("index or data stream that the documents are created in")
    )
    user: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("user name (basic authentication)", default="none"),
    )
    password: Secret | None = attrs.field(default=None, metadata=doc("its password; best as `${NAME}`"))
    password_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file that holds the password, read each time")
    )
    token_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc(
            "file that holds a token, read each time: `TOKEN` is sent as `Bearer TOKEN`, or `ApiKey KEY`"
        ),
    )
    ca: FilePath | None = attrs.field(default=None, metadata=_CA)
    timeout: Seconds = attrs.field(default=Seconds(30), validator=between(0.1, 300), metadata=_TIMEOUT)
    when_full: WhenFull = attrs.field(default="wait", metadata=_WHEN_FULL)

    def __attrs_post_init__(self) -> None:
        if _INDEX.fullmatch(self.index) is None:
            raise Invalid(
                "lower case letters, digits, '.', '_', '-', at most 255, not '_' or '-' first", "index"
            )
        if self.ca is not None and not self.url.is_tls:
            raise Invalid("is for https:// only", "ca")
        _check_login(self.user, self.password, self.password_file)
        if self.token_file is not None and self.user is not None:
            raise Invalid("user and tokenFile exclude each other", "token_file")
        try:
            self.authorization()
        except ConfigError as error:
            raise Invalid(error.message, "token_file" if self.token_file else "password_file") from None

    @property
    def shown(self) -> str:
        """For people."""
        return f"{self.url} index {self.index}"

    def login(self) -> Login | None:
        """Read now; `ConfigError`, which shows none of it."""
        return _login(self.user, self.password, self.password_file)

    def authorization(self) -> str | None:
        """The scheme and credentials, read now; None: there are none. `ConfigError` shows none of them."""
        if self.token_file is not None:
            token = read_secret(self.token_file).strip()
            if _TOKEN.fullmatch(token) is None:
                raise ConfigError("expected one token, or its scheme and it", file=str(self.token_file))
            return token if " " in token else f"Bearer {token}"
        login = self.login()
        if login is None:
            return None
        from base64 import b64encode

        return "Basic " + b64encode(f"{login.user}:{login.password.reveal()}".encode()).decode()


@frozen(kw_only=True)
class AuditAmqp:
    """A broker of AMQP 0-9-1: each record is a persistent message that it confirms."""

    NAME: ClassVar[str] = "amqp"

    url: AmqpUrl = attrs.field(
        metadata=doc("`amqp[s]://[user[:password]@]host[:port][/vhost]`; without a virtual host it is `/`")
    )
    exchange: str = attrs.field(
        validator=not_empty(), metadata=doc("exchange that they are published to; it has to be there")
    )
    user: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("user name", default="the URL's, or `guest`"),
    )
    password: Secret | None = attrs.field(
        default=None, metadata=doc("its password; best as `${NAME}`", default="the URL's")
    )
    password_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file that holds the password, read at every login")
    )
    ca: FilePath | None = attrs.field(default=None, metadata=_CA)
    timeout: Seconds = attrs.field(
        default=Seconds(10),
        validator=between(0.1, 300),
        metadata=doc("time for an answer: of the login, and of the confirms of a batch"),
    )
    when_full: WhenFull = attrs.field(default="wait", metadata=_WHEN_FULL)

    def __attrs_post_init__(self) -> None:
        if len(self.exchange.encode(errors="replace")) > 127:
            raise Invalid("at most 127 bytes", "exchange")
        if self.ca is not None and self.url.scheme != "amqps":
            raise Invalid("is for amqps:// only", "ca")
        if self.url.password is not None and (self.password is not None or self.password_file is not None):
            raise Invalid("there is a password in the URL", "password" if self.password else "password_file")
        _check_login(self.user or self.url.user, self.password or self.url.password, self.password_file)

    @property
    def shown(self) -> str:
        """For people."""
        return f"{self.url} exchange {self.exchange}"

    def login(self) -> Login:
        """Read now; `ConfigError`, which shows none of it."""
        found = _login(self.user or self.url.user, self.password or self.url.password, self.password_file)
        return found or Login("guest", Secret("guest"))


AuditSinkSettings: TypeAlias = AuditOtlp | AuditOpenSearch | AuditAmqp


def _check_login(user: str | None, password: Secret | None, file: FilePath | None) -> None:
    if password is not None and file is not None:
        raise Invalid("password and passwordFile exclude each other", "password_file")
    if user is not None and password is None and file is None:
        raise Invalid("a user needs password or passwordFile", "user")
    if user is None and (password is not None or file is not None):
        raise Invalid("a password needs a user", "password" if file is None else "password_file")


def _login(user: str | None, password: Secret | None, file: FilePath | None) -> Login | None:
    if user is None:
        return None
    return Login(user, Secret(read_secret(file)) if file is not None else password or Secret(""))
