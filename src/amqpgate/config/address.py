"""Where to listen and whom to call: ``host:port`` and AMQP URLs.

No error here repeats a URL, because a URL may hold a password.
"""

from __future__ import annotations

import ipaddress
import re
from typing import ClassVar, Literal, Self
from urllib.parse import unquote_to_bytes

from amqpgate.values import frozen
from amqpgate.yamldoc import Secret, TextValue

#: The registered ports (AMQP 0-9-1, section 4.1; AMQP URI specification, section 3).
PORTS = {"amqp": 5672, "amqps": 5671}

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?\Z")


@frozen
class Address(TextValue):
    """A host and a TCP port."""

    host: str
    port: int

    FORM: ClassVar[str] = "host:port"
    PATTERN: ClassVar[str | None] = r"^(\[[0-9A-Fa-f:.%]+\]|[^:\s\[\]]+):[0-9]{1,5}$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``127.0.0.1:5672``, ``localhost:5672`` or ``[::1]:5672``; port 0 means any free one."""
        host, colon, port = text.rpartition(":")
        if not colon or not host:
            raise ValueError("expected host:port, such as 127.0.0.1:5672, [::1]:5672 or 0.0.0.0:5672")
        return cls(parse_host(host), parse_port(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class HttpsAddress(Address):
    """One where HTTP is spoken over TLS."""


def is_loopback(host: str) -> bool:
    """Whether ``host`` is ``localhost`` or an address in 127.0.0.0/8 or ::1."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def parse_host(text: str) -> str:
    """A name or address; an IPv6 address stands in brackets, which are taken off. ValueError for others."""
    if text.startswith("[") and text.endswith("]"):
        if not is_ipv6(text[1:-1]):
            raise ValueError("what stands in [ ] is not an IPv6 address")
        return text[1:-1]
    if ":" in text:
        raise ValueError("an IPv6 address is written in brackets: [::1]:5672")
    if not is_name(text):
        raise ValueError("the host is neither a name nor an address")
    return text


def is_name(text: str) -> bool:
    """Whether ``text`` can be a host name or an IPv4 address (RFC 1123, section 2.1, and ``_``): 253
    characters at most, in labels of 1 to 63."""
    labels = text.removesuffix(".").split(".")
    is_short = len(text) <= 253 and all(0 < len(label) < 64 for label in labels)
    return is_short and _HOST.match(text) is not None


def is_ipv6(text: str) -> bool:
    """Whether ``text`` is an IPv6 address without brackets."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def parse_port(text: str) -> int:
    """A port, 0 to 65535; ValueError for anything else."""
    if not re.match(r"[0-9]{1,5}\Z", text) or int(text) > 65535:
        raise ValueError("the port is not a number from 0 to 65535")
    return int(text)


@frozen
class Login:
    """A user name and its password."""

    user: str
    password: Secret


@frozen
class AmqpUrl(TextValue):
    """An AMQP URL: ``amqp[s]://[user[:password]@]host[:port][/vhost]``.

    Everything in it may be percent-encoded. ``amqp://host`` and ``amqp://host/`` name no virtual host
    (the client's own is kept); ``/%2f`` and ``//`` name the virtual host ``/``.
    The AMQP URI specification reads the bare trailing slash as the virtual host with an empty name;
    nobody has one, and many people write that slash.
    """

    scheme: Literal["amqp", "amqps"]
    host: str
    port: int
    vhost: str | None = None
    user: str | None = None
    password: Secret | None = None

    FORM: ClassVar[str] = "URL"
    PATTERN: ClassVar[str | None] = r"^[aA][mM][qQ][pP][sS]?://"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The URL's parts; ValueError, which repeats none of it, says what to change."""
        name, separator, rest = text.partition("://")
        scheme: Literal["amqp", "amqps"] = "amqps" if name.lower() == "amqps" else "amqp"
        if not separator or name.lower() != scheme:
            raise ValueError("expected amqp://[user:password@]host[:port][/vhost], or amqps:// for TLS")
        if re.search(r"[\s\x00-\x1f\x7f]", text):
            raise ValueError("the URL has a space or control character in it; percent-encode it")
        if "?" in rest or "#" in rest:
            raise ValueError(
                "the URL has ? or # in it: options belong in keys of their own (tls, heartbeat, ...), "
                "and in a password write %3F and %23"
            )
        authority, slash, path = rest.partition("/")
        userinfo, at, server = authority.rpartition("@")
        if "@" in path or "@" in userinfo:
            raise ValueError("write @ in a password as %40 and / as %2F")
        user = password = None
        if at:
            raw_user, colon, raw_password = userinfo.partition(":")
            if not raw_user:
                raise ValueError("the URL has an @ but no user name before it")
            user = _decode(raw_user)
            password = Secret(_decode(raw_password)) if colon else None
        host, port = _server(server, PORTS[scheme])
        vhost = _vhost(path) if slash else None
        return cls(scheme, host, port, vhost, user, password)

    def __str__(self) -> str:
        """For people: the password masked."""
        login = "" if self.user is None else f"{self.user}:***@" if self.password else f"{self.user}@"
        vhost = "" if self.vhost is None else "/" + self.vhost.replace("/", "%2F")
        return f"{self.scheme}://{login}{Address(self.host, self.port)}{vhost}"


def _server(text: str, default_port: int) -> tuple[str, int]:
    if text.endswith("]") or ":" not in text:
        if not text:
            raise ValueError("the URL names no host")
        return parse_host(text), default_port
    host, _, port = text.rpartition(":")
    if not host:
        raise ValueError("the URL names no host")
    return parse_host(host), parse_port(port)


def _vhost(path: str) -> str | None:
    if path == "/":
        return "/"
    if "/" in path:
        raise ValueError("the virtual host has a / in it; write it as %2F")
    return _decode(path) if path else None


def _decode(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError("a % in the URL is not followed by two hexadecimal digits; write % as %25")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ValueError("the URL's percent-encoding is not UTF-8") from None
