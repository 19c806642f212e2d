"""Where spans go (OpenTelemetry, OTLP over HTTP)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final, Self
from urllib.parse import urlsplit

import attrs

from amqpgate.config.address import is_ipv6, is_name
from amqpgate.config.upstream import read_secret
from amqpgate.errors import ConfigError
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Seconds, TextValue, between, doc, not_empty

#: One line of the headers' file: a token (RFC 9110, section 5.6.2), and visible text.
_HEADER: Final = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*"
)


@frozen
class HttpUrl(TextValue):
    """``http[s]://host[:port][/path]``."""

    text: str
    is_tls: bool

    FORM: ClassVar[str] = "URL"
    PATTERN: ClassVar[str | None] = r"^https?://[^@?#]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError, which does not repeat it."""
        form = "expected http://host:port/path, or https://"
        try:
            parts = urlsplit(text)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise ValueError(form) from None
        if parts.username is not None or parts.password is not None:
            raise ValueError("a login belongs in headersFile, as a header")
        if parts.scheme not in ("http", "https") or not (is_name(host) or is_ipv6(host)):
            raise ValueError(form)
        if parts.query or parts.fragment:
            raise ValueError(form)
        return cls(text, parts.scheme == "https")

    def __str__(self) -> str:
        return self.text


class ToCollector:
    """What settings of who takes OTLP have in common."""

    __slots__ = ()

    headers_file: FilePath | None
    ca: FilePath | None

    def check(self, *urls: HttpUrl | None) -> None:
        """Raises `Invalid`; of the headers' file it shows no value."""
        if self.ca is not None and not any(url is not None and url.is_tls for url in urls):
            raise Invalid("is for https:// only", "ca")
        try:
            self.headers()
        except ConfigError as error:
            raise Invalid(error.message, "headers_file") from None

    def headers(self) -> Mapping[str, str]:
        """What the file says, read now; `ConfigError`, which shows no value."""
        return headers_in(self.headers_file)


@frozen(kw_only=True)
class Tracing(ToCollector):
    """Where the spans of trace policies go. Nobody waits: what does not fit is dropped and counted."""

    endpoint: HttpUrl = attrs.field(
        metadata=doc("where OTLP over HTTP is taken, such as `http://127.0.0.1:4318/v1/traces`")
    )
    headers_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc("file with HTTP headers for it, one `name: value` a line; logins belong there"),
    )
    ca: FilePath | None = attrs.field(
        default=None,
        metadata=doc(
            "authorities that may sign its certificate, PEM; with `https://`", default="those of certifi"
        ),
    )
    timeout: Seconds = attrs.field(
        default=Seconds(10),
        validator=between(0.1, 300),
        metadata=doc("time for its answer, second tries included"),
    )
    interval: Seconds = attrs.field(
        default=Seconds(2), validator=between(0.01, 60), metadata=doc("time that ended spans wait for others")
    )
    queue: int = attrs.field(
        default=8192,
        validator=between(1, 1_000_000),
        metadata=doc("ended spans that wait to be sent, at most; some 4 KiB each"),
    )
    service_name: str = attrs.field(
        default="amqpgate", validator=not_empty(), metadata=doc("`service.name` of the gateway in traces")
    )

    def __attrs_post_init__(self) -> None:
        self.check(self.endpoint)


def headers_in(file: FilePath | None) -> Mapping[str, str]:
    """The headers that a file has, read now; `ConfigError`, which shows no value."""
    found: dict[str, str] = {}
    for number, line in enumerate([] if file is None else read_secret(file).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _HEADER.fullmatch(line)
        if match is None:
            raise ConfigError(f"line {number}: expected 'name: value'", file=str(file))
        found[match[1].lower()] = match[2]
    return found
